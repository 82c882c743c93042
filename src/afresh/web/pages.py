"""Renders the HTML pages. All text is escaped; scripts only add charts, live updates and actions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from afresh.values.errors import StoreError
from afresh.values.formatting import format_count
from afresh.values.items import SORTS, STATUSES, ItemQuery
from afresh.values.objective_names import OBJECTIVE_TITLES
from afresh.version import __version__
from afresh.web import assets, text_formats
from afresh.web.api_reference import list_operations, list_types
from afresh.web.content_access import ContentAccess
from afresh.web.dashboard_data import DashboardData, ProjectData
from afresh.web.error_responses import RequestError
from afresh.web.guard import BASIC_CHALLENGE
from afresh.web.reports.chart_series import compute_series
from afresh.web.reports.copy_diff import DiffRequest, decode_text
from afresh.web.reports.dashboard_figures import CARDS, STATE_TITLES, VIEWS_SHOWN, page_texts
from afresh.web.reports.source_report import MOST_FAILING, report_sources
from afresh.web.snapshot_cache import StatusSnapshot

ITEMS_PER_PAGE = 50
_SORT_TITLES = {
    "id": "order of adding",
    "key": "name",
    "due": "next poll",
    "changed": "last change",
    "failures": "failures in a row",
    "weight": "weight",
}
_MENU = {"/": "Now", "/items": "Items", "/changes": "Changes", "/plan": "Plan", "/sources": "Sources"}
_ERROR_TITLES = {401: "Token needed", 404: "Not found", 503: "Out of reach"}
_COPY_SHOWN, _BACKOFFS_SHOWN = 20_000, 10
Word = Annotated[str, Query(max_length=500)]


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("afresh.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals.update(
        asset=assets.asset_url,
        text=text_formats,
        counted=format_count,
        version=__version__,
        item_link=item_link,
        diff_link=diff_link,
        fill_detail=fill_detail,
    )
    return templates


class Pages:
    """Renders pages inside their common frame, which has the menu, the engine's state and the time. ``menu``
    maps paths to titles. ``read_only`` says why nobody can change anything here; it is empty if somebody
    can."""

    def __init__(self, data: ProjectData, menu: Mapping[str, str], read_only: str) -> None:
        self._data, self._menu, self._read_only = data, menu, read_only
        self._menu_entries = {path: path for path in menu} | {
            "/item": "/items",
            "/diff": "/changes",
        }  # of each page

    def render(
        self,
        template: str,
        menu_entry: str,
        *,
        snapshot: StatusSnapshot | None = None,
        now_s: float | None = None,
        status: int = 200,
        **values: Any,
    ) -> HTMLResponse:
        """Return a page. ``menu_entry`` is the path of its entry in the menu. The frame shows the state of
        ``snapshot`` (default: the newest). Times are shown relative to ``now_s`` (default: the time of the
        snapshot). ``status`` is the HTTP status, ``values`` are variables of the template."""
        try:
            snapshot = snapshot or self._data.snapshots.get()
            now = page_texts(snapshot)
        except StoreError as error:
            state = "no store"
            now = {"state": state, "state-words": STATE_TITLES[state], "state-detail": str(error)}
        if now_s is None:
            now_s = snapshot.time_s if snapshot else self._data.clock.now_s()
        frame = {"menu": self._menu, "menu_entry": menu_entry, "now": now, "now_s": now_s}
        frame |= {"read_only": self._read_only, "is_cluster": "/shards" in self._menu}
        return HTMLResponse(_templates().get_template(template).render(**frame, **values), status)

    def render_error(self, request: Request, error: RequestError) -> HTMLResponse | None:
        """Return an error page if the request was for a page or from a browser. Return None for the API."""
        path = request.url.path
        wants_page = path in self._menu_entries or "text/html" in request.headers.get("accept", "")
        if request.method != "GET" or path.startswith("/api/v1") or not wants_page:
            return None
        page = self.render(
            "problem.html",
            self._menu_entries.get(path, "/"),
            status=error.status,
            title=_ERROR_TITLES.get(error.status, "Refused"),
            message=error.message,
            hint=error.hint,
            recovers=error.status == 503,
        )
        if error.status == HTTPStatus.UNAUTHORIZED:
            page.headers["WWW-Authenticate"] = BASIC_CHALLENGE  # the browser asks its user for the token
        return page


def engine_pages(data: DashboardData) -> Pages:
    """Return what renders the pages of one engine."""
    return Pages(data, _MENU, "" if data.token is not None else "Read only: the project has no token.")


def make_pages(data: DashboardData, pages: Pages, access: ContentAccess) -> APIRouter:
    """Return the routes. ``access`` decides who may see copies."""
    router = APIRouter(include_in_schema=False)
    add_common_pages(router, data, pages, access)
    _add_engine_pages(router, data, pages)
    return router


def add_common_pages(router: APIRouter, data: ProjectData, pages: Pages, access: ContentAccess) -> None:
    """Add the pages that every project has."""
    _add_overview(router, data, pages)
    _add_items(router, data, pages)
    _add_item(router, data, pages, access)


def _add_overview(router: APIRouter, data: ProjectData, pages: Pages) -> None:
    @router.get("/")
    def now() -> HTMLResponse:
        snapshot = data.snapshots.get()
        return pages.render(
            "now.html",
            "/",
            snapshot=snapshot,
            cards=CARDS,
            series=compute_series(snapshot).model_dump(),
            failing=snapshot.failing,
            backoffs=snapshot.backoffs[:_BACKOFFS_SHOWN],
            item_views=snapshot.status.item_views[:VIEWS_SHOWN],
            noise=snapshot.status.noise,
            hook_failures=snapshot.status.hook_failures,
            notify_failures=snapshot.status.notify_failures,
            target=snapshot.status.target,
        )

    @router.get("/api/docs")
    def docs(request: Request) -> HTMLResponse:
        api = request.app.openapi()
        about, operations, types = api["info"]["description"], list_operations(api), list_types(api)
        return pages.render("docs.html", "/api/docs", about=about, operations=operations, types=types)


def _add_engine_pages(router: APIRouter, data: DashboardData, pages: Pages) -> None:
    @router.get("/plan")
    def plan(objective: Word = "") -> HTMLResponse:
        plan = data.report_plan(objective or data.engine.current().plan.objective)
        return pages.render(
            "plan.html", "/plan", view=plan, data=plan.model_dump(), objectives=OBJECTIVE_TITLES
        )

    @router.get("/sources")
    def sources() -> HTMLResponse:
        snapshot = data.snapshots.get()
        found = report_sources(data.engine, snapshot)
        return pages.render(
            "sources.html", "/sources", snapshot=snapshot, sources=found, most_failing=MOST_FAILING
        )


def _add_items(router: APIRouter, data: ProjectData, pages: Pages) -> None:
    @router.get("/items")
    def items(
        text: Word = "",
        status: Word = "",
        source: Word = "",
        sort: Word = "id",
        order: Word = "",
        cursor: Annotated[str, Query(max_length=9000)] = "",
    ) -> HTMLResponse:
        query = ItemQuery(
            text,
            status or None,  # type: ignore[arg-type]  # ItemQuery checks it
            source or None,
            None,
            sort,  # type: ignore[arg-type]
            order == "down",
        )
        found = data.page_items(query, ITEMS_PER_PAGE, cursor or None)
        page = found.page
        asked = {"text": text, "status": status, "source": source, "sort": sort, "order": order}
        return pages.render(
            "items.html",
            "/items",
            now_s=found.time_s,
            rows=list(zip(page.items, found.estimates, strict=True)),
            asked=asked,
            first=f"/items?{urlencode(asked)}" if cursor else None,
            following=f"/items?{urlencode(asked | {'cursor': page.cursor})}" if page.cursor else None,
            sorts={name: _SORT_TITLES.get(name, name) for name in SORTS},
            statuses=STATUSES,
            sources=data.project.source_names(),
            sort_link=lambda name: _sort_link(asked, name),
        )


def _add_item(router: APIRouter, data: ProjectData, pages: Pages, access: ContentAccess) -> None:
    @router.get("/item")
    def item(
        request: Request, key: Annotated[str, Query(max_length=8192)] = "", source: Word = ""
    ) -> HTMLResponse:
        report = data.report_item(key, source or None)
        item = report.why.item
        may_read = access.allows(request)
        found = data.comparer.compare(DiffRequest(item.key, item.source)) if may_read else None
        copy = data.project.get(item.key, source=item.source) if may_read else None
        text = None if copy is None else decode_text(copy)
        polls = {
            name: [getattr(poll, name) for poll in report.polls] for name in ("time_s", "changed", "audit")
        }
        return pages.render(
            "item.html",
            "/items",
            now_s=report.why.time_s,
            view=report,
            item=item,
            data={"curves": report.drawn and report.drawn.model_dump(), "polls": polls},
            found=found,
            copy_text=None if text is None else text[:_COPY_SHOWN],
            copy_cut=copy is not None and len(copy.content) > _COPY_SHOWN,
            copy_link=None if copy is None else f"/api/v1/copy?{_item_query(item.key, item.source)}",
        )


def item_link(key: str, source: str) -> str:
    """Return the address of an item's page.

    >>> item_link("https://example.org/?a=1", "web")
    '/item?key=https%3A%2F%2Fexample.org%2F%3Fa%3D1&source=web'
    """
    return f"/item?{_item_query(key, source)}"


def diff_link(key: str, source: str, old: int | None = None, new: int | None = None) -> str:
    """Return the address of the page with the difference between two versions of an item.

    >>> diff_link("https://a.test/?b=1", "web", 1, 2)
    '/diff?key=https%3A%2F%2Fa.test%2F%3Fb%3D1&source=web&old=1&new=2'
    """
    numbers = {name: number for name, number in (("old", old), ("new", new)) if number is not None}
    return f"/diff?{urlencode({'key': key, 'source': source} | numbers)}"


def _item_query(key: str, source: str) -> str:
    return urlencode({"key": key, "source": source})


def fill_detail(detail: str, texts: dict[str, str]) -> Markup:
    """Return the detail line of a card, with each ``{name}`` replaced by a text that live updates can change.

    >>> str(fill_detail("{due} due", {"due": "<7"}))
    '<span data-field="due">&lt;7</span> due'
    """
    span = Markup('<span data-field="{}">{}</span>')
    return Markup(detail).format_map({name: span.format(name, text) for name, text in texts.items()})


def _sort_link(asked: dict[str, str], name: str) -> str:
    """Return the link that sorts the page by a column, or reverses the order if it is sorted so already."""
    down = asked["sort"] == name and asked["order"] != "down"
    return f"/items?{urlencode(asked | {'sort': name, 'order': 'down' if down else ''})}"
