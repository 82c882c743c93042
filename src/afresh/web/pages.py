"""The pages: HTML rendered here, with every text escaped; scripts only bring it to life."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from afresh.values.errors import AfreshError, StoreError
from afresh.values.formatting import format_count
from afresh.values.items import SORTS, STATUSES, ItemQuery
from afresh.values.objective_names import OBJECTIVE_TITLES
from afresh.version import __version__
from afresh.web import assets, wording
from afresh.web.context import Context
from afresh.web.copies_view import last_difference, text_of
from afresh.web.now_view import fields, series
from afresh.web.problems import ProblemError, status_of
from afresh.web.sources_view import sources_view
from afresh.web.watching import Look
from afresh.web.wording import plain

PAGE_ITEMS = 50
_SORT_WORDS = {
    "id": "order of adding",
    "key": "name",
    "due": "next poll",
    "changed": "last change",
    "failures": "failures in a row",
    "weight": "weight",
}
_NAV = (("/", "Now"), ("/items", "Items"), ("/plan", "Plan"), ("/sources", "Sources"))
_COPY_SHOWN, _RESTS_SHOWN = 20_000, 10
Word = Annotated[str, Query(max_length=500)]


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("afresh.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(
        asset=assets.address, words=wording, counted=format_count, nav=_NAV, version=__version__
    )
    return found


class Pages:
    """Renders; knows what every page has in common."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def render(
        self,
        template: str,
        place: str,
        *,
        look: Look | None = None,
        now_s: float | None = None,
        status: int = 200,
        **values: Any,
    ) -> HTMLResponse:
        """One page. ``place`` is the entry of the menu that it belongs to.

        The content of a page says from which ``look`` it was made, and of which time it is (``now_s``, by
        default the look's): then the frame around it says the same.
        """
        try:
            look = look or self._context.watcher.look()
            now = fields(look)
        except StoreError as error:
            now = {"state": "no store", "state-words": "Store lost", "state-detail": str(error)}
        if now_s is None:
            now_s = look.time_s if look else self._context.clock.now_s()
        common = {"place": place, "now": now, "now_s": now_s, "writable": self._context.token is not None}
        return HTMLResponse(_templates().get_template(template).render(**common, **values), status)

    def failed(self, place: str, error: AfreshError | ProblemError) -> HTMLResponse:
        """A page that says what is wrong."""
        status = error.status if isinstance(error, ProblemError) else status_of(error)
        hint = error.hint if isinstance(error, ProblemError) else ""
        title = {404: "Not found", 503: "Out of reach"}.get(status, "Refused")
        told: dict[str, Any] = {"title": title, "message": str(error), "hint": hint}
        return self.render("problem.html", place, status=status, recovers=status == 503, **told)


def make_pages(context: Context, pages: Pages) -> APIRouter:
    """All pages."""
    router = APIRouter(include_in_schema=False)
    _add_now(router, context, pages)
    _add_items(router, context, pages)
    _add_item(router, context, pages)
    _add_plan(router, context, pages)
    return router


def _add_now(router: APIRouter, context: Context, pages: Pages) -> None:
    @router.get("/")
    def now() -> HTMLResponse:
        try:
            look = context.watcher.look()
        except StoreError as error:
            return pages.failed("/", error)
        return pages.render(
            "now.html",
            "/",
            look=look,
            series=series(look),
            failing=look.failing,
            rests=look.rests[:_RESTS_SHOWN],
            target=look.status.target,
        )

    @router.get("/sources")
    def sources() -> HTMLResponse:
        try:
            look = context.watcher.look()
            found = sources_view(context.engine, look)
        except AfreshError as error:
            return pages.failed("/sources", error)
        return pages.render("sources.html", "/sources", look=look, sources=found)

    @router.get("/api/docs")
    def docs() -> HTMLResponse:
        return pages.render("docs.html", "/api/docs")


def _add_items(router: APIRouter, context: Context, pages: Pages) -> None:
    @router.get("/items")
    def items(
        text: Word = "",
        status: Word = "",
        source: Word = "",
        sort: Word = "id",
        order: Word = "",
        cursor: Annotated[str, Query(max_length=9000)] = "",
    ) -> HTMLResponse:
        try:
            query = ItemQuery(
                text,
                status or None,  # type: ignore[arg-type]  # checked there
                source or None,
                None,
                sort,  # type: ignore[arg-type]
                order == "down",
            )
            page, beliefs, now_s = context.page(query, PAGE_ITEMS, cursor or None)
        except (AfreshError, ProblemError) as error:
            return pages.failed("/items", error)
        asked = {"text": text, "status": status, "source": source, "sort": sort, "order": order}
        return pages.render(
            "items.html",
            "/items",
            now_s=now_s,
            rows=list(zip(page.items, beliefs, strict=True)),
            asked=asked,
            first=f"/items?{urlencode(asked)}" if cursor else None,
            following=f"/items?{urlencode(asked | {'cursor': page.cursor})}" if page.cursor else None,
            sorts={name: _SORT_WORDS.get(name, name) for name in SORTS},
            statuses=STATUSES,
            sources=[table.settings.name for table in context.engine.settings.sources],
            sort_link=lambda name: _sort_link(asked, name),
            item_link=item_link,
        )


def _add_item(router: APIRouter, context: Context, pages: Pages) -> None:
    @router.get("/item")
    def item(key: Annotated[str, Query(max_length=8192)] = "") -> HTMLResponse:
        try:
            view = context.item(key)
            lines, diff_words = last_difference(context.engine.store, view.why.item.id)
            copy = context.engine.store.copies.get(view.why.item.id)
        except (AfreshError, ProblemError) as error:
            return pages.failed("/items", error)
        text = None if copy is None else text_of(copy)
        polls = {
            name: [getattr(poll, name) for poll in view.polls] for name in ("time_s", "changed", "audit")
        }
        return pages.render(
            "item.html",
            "/items",
            now_s=view.why.time_s,
            view=view,
            item=view.why.item,
            data=plain({"curves": view.curves and asdict(view.curves), "polls": polls}),
            diff=lines,
            diff_words=diff_words,
            copy_text=None if text is None else text[:_COPY_SHOWN],
            copy_cut=copy is not None and len(copy.content) > _COPY_SHOWN,
            copy_link=f"/api/v1/copy?{urlencode({'key': key})}" if copy is not None else None,
        )


def _add_plan(router: APIRouter, context: Context, pages: Pages) -> None:
    @router.get("/plan")
    def plan(objective: Word = "") -> HTMLResponse:
        try:
            wanted = objective or context.engine.current().plan.objective
            view = context.plan(wanted)
        except AfreshError as error:
            return pages.failed("/plan", error)
        return pages.render(
            "plan.html",
            "/plan",
            view=view,
            data=plain(asdict(view)),
            objectives=OBJECTIVE_TITLES,
        )


def item_link(key: str) -> str:
    """The address of an item's page.

    >>> item_link("https://example.org/?a=1")
    '/item?key=https%3A%2F%2Fexample.org%2F%3Fa%3D1'
    """
    return f"/item?{urlencode({'key': key})}"


def _sort_link(asked: dict[str, str], name: str) -> str:
    """Sort by this; again, the other way round."""
    down = asked["sort"] == name and asked["order"] != "down"
    return f"/items?{urlencode(asked | {'sort': name, 'order': 'down' if down else ''})}"
