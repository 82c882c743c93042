"""The pages of changes: what changed lately, and the difference between any two versions of an item."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from afresh.engine.feed.change_search import ChangeFilter, search_changes
from afresh.engine.feed.content_forms import RAW
from afresh.values.changes import FeedEntry
from afresh.values.outcome import EVENT_KINDS
from afresh.web.content_access import ContentAccess
from afresh.web.dashboard_data import ProjectData
from afresh.web.feed.feed_api import LONGEST_CURSOR
from afresh.web.pages import Pages, Word, diff_link
from afresh.web.reports.copy_diff import DiffRequest

CHANGES_PER_PAGE = 50
_LEAST_CHANGES = {"0": "any", "0.01": "1 %", "0.05": "5 %", "0.2": "20 %", "0.5": "50 %"}
_FORM_TITLES = {RAW: "content", "text": "main text"}
_LAYOUT_TITLES = {"lines": "below each other", "sides": "side by side"}
Number = Annotated[int | None, Query(ge=1, le=2**31)]
Share = Annotated[float, Query(ge=0, le=1)]
Cursor = Annotated[str, Query(max_length=LONGEST_CURSOR)]


def make_change_pages(data: ProjectData, pages: Pages, access: ContentAccess) -> APIRouter:
    """Return the routes. ``access`` decides who may see differences, which are contents."""
    router = APIRouter(include_in_schema=False)
    _add_changes(router, data, pages)
    _add_diff(router, data, pages, access)
    return router


def _add_changes(router: APIRouter, data: ProjectData, pages: Pages) -> None:
    @router.get("/changes")
    def changes(
        text: Word = "", source: Word = "", kind: Word = "", min_change: Share = 0.0, before: Cursor = ""
    ) -> HTMLResponse:
        data.check_source(source or None)
        wanted = ChangeFilter(source, kind, text, min_change)
        # Taken before the search: a change between the two is announced, so that the page asks again.
        now_s, mark = data.clock.now_s(), data.project.feed.last()
        found = search_changes(data.project.feed, wanted, CHANGES_PER_PAGE, before or None)
        asked = {"text": text, "source": source, "kind": kind, "min_change": f"{min_change:g}"}
        return pages.render(
            "changes.html",
            "/changes",
            now_s=now_s,
            entries=found.entries,
            mark=mark,
            asked=asked,
            is_filtered=wanted != ChangeFilter(),
            first=f"/changes?{urlencode(asked)}" if before else None,
            following=f"/changes?{urlencode(asked | {'before': found.cursor})}" if found.cursor else None,
            kinds=EVENT_KINDS,
            least_changes=_LEAST_CHANGES | {asked["min_change"]: f"{100 * min_change:g} %"}
            if asked["min_change"] not in _LEAST_CHANGES
            else _LEAST_CHANGES,
            sources=data.project.source_names(),
            change_link=_link_of_change,
        )


def _add_diff(router: APIRouter, data: ProjectData, pages: Pages, access: ContentAccess) -> None:
    @router.get("/diff")
    def diff(
        request: Request,
        key: Annotated[str, Query(max_length=8192)],
        source: Word = "",
        old: Number = None,
        new: Number = None,
        layout: Literal["lines", "sides"] = "lines",
        form: Literal["raw", "text"] = "raw",
    ) -> HTMLResponse:
        access.check(request)
        wanted = DiffRequest(key, source or None, old, new, form)
        return pages.render(
            "diff.html",
            "/changes",
            key=key,
            source=source,
            found=data.comparer.compare(wanted),
            layout=layout,
            form=form,
            layouts=_LAYOUT_TITLES,
            forms={name: _FORM_TITLES[name] for name in data.comparer.forms},
        )


def _link_of_change(entry: FeedEntry) -> str | None:
    """Return where the difference is that a change made, None if there is none."""
    if entry.kind != "changed" or entry.version < 2:
        return None
    return diff_link(entry.key, entry.source, entry.version - 1, entry.version)
