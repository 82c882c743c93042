"""The part of the API for programs that follow the changes: ``/api/v1/changes``, with long polling.

A request with ``wait`` is answered as soon as there is a change for it, or when the time is over. All waiting
requests share one look at the store, every ``LOOK_EVERY_S`` seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from afresh.engine.feed.change_json import change_object
from afresh.engine.feed.change_search import ChangeFilter, search_changes
from afresh.engine.feed.content_forms import CONTENT_FORMS
from afresh.engine.feed.feed_reader import LOOK_EVERY_S, ChangePage, ChangeQuery, plain_change
from afresh.engine.project_interface import ChangeFeed
from afresh.values.clock import SystemClock
from afresh.values.errors import one_of
from afresh.values.outcome import EventKind
from afresh.values.units import parse_duration
from afresh.web import schemas
from afresh.web.content_access import ContentAccess
from afresh.web.dashboard_data import ProjectData
from afresh.web.error_responses import Problem, RequestError
from afresh.web.reports.copy_diff import DiffRequest

MOST_CHANGES, MOST_FOUND, MOST_WAIT_S, MOST_WAITING = 1000, 200, 60.0, 64
MOST_READING = 4  # requests with contents: each may hold many megabytes, and keep a parser process busy
_NOW = "now"
_CURSOR = "^[0-9a-z=.-]*$"  # of an engine, of the shards of a cluster, or now
LONGEST_CURSOR = 50_000  # a cursor of 1,000 shards
_FORMS = ", ".join(CONTENT_FORMS)
Since = Annotated[
    str | None,
    Query(
        max_length=LONGEST_CURSOR,
        pattern=_CURSOR,
        description="Only changes after this cursor; now: only later ones. Default: all.",
    ),
]
SourceName = Annotated[str | None, Query(max_length=500, description="Only changes of this source.")]
Limit = Annotated[int, Query(ge=1, le=MOST_CHANGES)]
Wait = Annotated[
    str, Query(max_length=20, description=f"Wait for a change, at most {MOST_WAIT_S:g} s; such as 30s.")
]
Content = Annotated[str | None, Query(max_length=20, description=f"With the content, as one of {_FORMS}.")]
Searched = Annotated[
    str,
    Query(
        max_length=500, description="Looked for anywhere in the key; with * or ? a pattern for the whole key."
    ),
]
LeastChange = Annotated[float, Query(ge=0, le=1, description="Without changes known to be smaller.")]
SearchLimit = Annotated[int, Query(ge=1, le=MOST_FOUND)]
Before = Annotated[
    str | None,
    Query(max_length=LONGEST_CURSOR, pattern=_CURSOR, description="The cursor of the page before."),
]
VersionNumber = Annotated[
    int | None, Query(ge=1, le=2**31, description="Default: the newest version and the one before.")
]
Responses = dict[int | str, dict[str, Any]]


class FeedWatch:
    """Tells whether there are new changes. Many may ask: the store is asked every ``LOOK_EVERY_S`` seconds
    at most. ``is_closing`` returns true when the server stops, so that nobody waits any longer."""

    def __init__(self, reader: ChangeFeed) -> None:
        self._reader, self._clock = reader, SystemClock()
        self._last, self._asked_s = 0, float("-inf")
        self._lock = asyncio.Lock()
        self._contents = asyncio.Semaphore(MOST_READING)
        self.waiting = 0
        self.is_closing: Callable[[], bool] = lambda: False

    async def last(self) -> int:
        """Return the number of the last change, as it was at most ``LOOK_EVERY_S`` seconds ago."""
        async with self._lock:
            if self._clock.elapsed_s() - self._asked_s >= LOOK_EVERY_S:
                self._last = await run_in_threadpool(self._reader.last)
                self._asked_s = self._clock.elapsed_s()
            return self._last

    async def _read(self, read: Callable[[], ChangePage], *, with_contents: bool) -> ChangePage:
        """Call ``read`` in a thread; with contents, ``MOST_READING`` at a time, while others wait."""
        if not with_contents:
            return await run_in_threadpool(read)
        async with self._contents:
            return await run_in_threadpool(read)

    async def wait_for_page(
        self, read: Callable[[], ChangePage], wait_s: float, *, with_contents: bool = False
    ) -> ChangePage:
        """Return the first page of ``read`` that has changes, or its last one after ``wait_s`` seconds."""
        until_s, clock = self._clock.elapsed_s() + wait_s, self._clock
        seen = await run_in_threadpool(self._reader.last)
        page = await self._read(read, with_contents=with_contents)
        if page.changes or wait_s <= 0:
            return page
        if self.waiting >= MOST_WAITING:
            raise RequestError(503, f"{MOST_WAITING} requests wait for changes already", "try again soon")
        self.waiting += 1
        try:
            while not page.changes and clock.elapsed_s() < until_s and not self.is_closing():
                await asyncio.sleep(min(LOOK_EVERY_S, max(0.0, until_s - clock.elapsed_s())))
                last = await self.last()
                if last > seen:
                    seen, page = last, await self._read(read, with_contents=with_contents)
        finally:
            self.waiting -= 1
        return page


def add_search(router: APIRouter, data: ProjectData, access: ContentAccess, responses: Responses) -> None:
    """Add the routes by which people look at changes. ``access`` decides who may read differences."""

    @router.get(
        "/changes/newest",
        response_model=schemas.NewestChangesOut,
        response_model_exclude_unset=True,
        responses=responses | {410: {"model": Problem}},
        summary="The newest changes first, searched and paged",
    )
    def newest(
        text: Searched = "",
        source: SourceName = None,
        kind: EventKind | None = None,
        min_change: LeastChange = 0.0,
        limit: SearchLimit = 50,
        before: Before = None,
    ) -> schemas.NewestChangesOut:
        data.check_source(source)
        wanted = ChangeFilter(source or "", kind or "", text, min_change)
        found = search_changes(data.project.feed, wanted, limit, before)
        changes = [
            schemas.ChangeOut.model_validate(change_object(plain_change(one))) for one in found.entries
        ]
        return schemas.NewestChangesOut(changes=changes, cursor=found.cursor)

    @router.get(
        "/diff",
        responses=responses | {status: {"model": Problem} for status in (401, 403)},
        summary="The difference between two versions of an item",
    )
    def diff(
        request: Request,
        key: Annotated[str, Query(min_length=1, max_length=8192, description="The item's key.")],
        source: SourceName = None,
        old: VersionNumber = None,
        new: VersionNumber = None,
        form: Annotated[Literal["raw", "text"], Query(description="text: of the main texts.")] = "raw",
    ) -> schemas.DiffOut:
        access.check(request)
        found = data.comparer.compare(DiffRequest(key, source, old, new, form))
        return schemas.DiffOut(
            old=found.old,
            new=found.new,
            words=found.words,
            lines=[schemas.DiffLineOut.model_validate(line) for line in found.diff.lines],
            versions=[schemas.VersionOut.model_validate(version) for version in found.versions],
        )


def add_changes(
    router: APIRouter, watch: FeedWatch, reader: ChangeFeed, access: ContentAccess, responses: Responses
) -> None:
    """Add the routes. ``access`` decides who may read contents."""

    @router.get(
        "/changes",
        response_model=schemas.ChangesOut,
        response_model_exclude_unset=True,
        responses=responses | {410: {"model": Problem}},
        summary="What changed since a cursor, in the order of the commits",
    )
    async def changes(
        request: Request,
        since: Since = None,
        source: SourceName = None,
        limit: Limit = 100,
        wait: Wait = "0s",
        content: Content = None,
    ) -> schemas.ChangesOut:
        if content is not None:
            one_of("form of content", content, CONTENT_FORMS)
            access.check(request)
        wait_s = min(parse_duration(wait), MOST_WAIT_S)
        start = await run_in_threadpool(reader.cursor) if since == _NOW else since
        query = ChangeQuery(source, content)
        page = await watch.wait_for_page(
            lambda: reader.page(start, limit, query), wait_s, with_contents=content is not None
        )
        found = [schemas.ChangeOut.model_validate(change_object(change)) for change in page.changes]
        return schemas.ChangesOut(changes=found, cursor=page.cursor, is_last=page.is_last)
