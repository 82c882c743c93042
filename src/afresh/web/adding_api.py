"""Adds items over the API, and shows before what would be added: addresses, sitemaps, feeds, followed links.

A preview asks foreign servers, like adding does. So both need the token; one request at a time reads
documents, for a minute at most, within the budget. The address of a document is checked like that of an item.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from afresh.engine.engine import Engine
from afresh.engine.reporting.preview import Preview
from afresh.values.errors import ListingError, UsageError
from afresh.web.dashboard_data import DashboardData
from afresh.web.error_responses import RequestError
from afresh.web.schemas import Key, Model

READING_S = 60.0
_MOST_DOCUMENTS, _MOST_SHOWN = 20, 200
Documents = Annotated[tuple[Key, ...], Field(max_length=_MOST_DOCUMENTS)]


class AddIn(Model):
    """Items to register: their keys, and documents that name them. ``sitemaps`` and ``feeds`` are addresses
    of documents, ``discover`` of sites whose documents are to be found, ``follow`` of pages whose links are
    followed. ``weight`` is that of the items of ``keys``."""

    keys: tuple[Key, ...] = Field(default=(), max_length=10_000)
    sitemaps: Documents = ()
    feeds: Documents = ()
    discover: Documents = ()
    follow: Documents = ()
    source: str | None = Field(default=None, max_length=500)
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)

    def documents(self) -> dict[str, Sequence[str]]:
        """Return the documents by their kind; raise ``UsageError`` if nothing at all is to be added."""
        found: dict[str, Sequence[str]] = {
            "sitemaps": self.sitemaps,
            "feeds": self.feeds,
            "discover": self.discover,
            "follow": self.follow,
        }
        found = {kind: addresses for kind, addresses in found.items() if addresses}
        if not self.keys and not found:
            raise UsageError("nothing to add: give keys, sitemaps, feeds, discover or follow")
        return found


class AddedOut(Model):
    """The number of items that were new. ``problems`` has the reason, by address, why a document was not
    added, or why an item that was registered will not be polled."""

    new: int
    problems: dict[str, str]


class LeftOutOut(Model):
    """Links that would not be followed: the reason, how many there are, and the address of one."""

    reason: str
    links: int
    example: str


class PreviewOut(Model):
    """What would be added: the number of ``new`` items and of ``known`` ones, and the first of the new ones
    (``shown``). Of followed pages only the start pages were read: with ``more``, pages may show more."""

    new: int
    known: int
    shown: list[str]
    more: bool
    left_out: list[LeftOutOut]
    problems: dict[str, str]


def add_adding(router: APIRouter, data: DashboardData, options: dict[str, Any]) -> None:
    """Add the routes; ``options`` are those of every request that needs the token."""
    engine, reading = data.engine, threading.Lock()

    @router.post("/items", **options, summary="Register items, and documents that name them")
    def add(wanted: AddIn) -> AddedOut:
        documents, problems = wanted.documents(), _refused_keys(engine, wanted)
        new = engine.add(wanted.keys, source=wanted.source, weight=wanted.weight)
        try:
            if documents:
                with _alone(reading):
                    new += engine.add_listings(source=wanted.source, limit_s=READING_S, **documents)
        except ListingError as error:
            new, problems = new + error.new, problems | error.problems
        data.forget()
        return AddedOut(new=new, problems=problems)

    @router.post("/items/preview", **options, summary="What would be registered")
    def preview(wanted: AddIn) -> PreviewOut:
        documents, problems = wanted.documents(), _refused_keys(engine, wanted)
        found = Preview((), 0)
        if documents:
            with _alone(reading):
                found = engine.preview(source=wanted.source, limit_s=READING_S, **documents)
        keys = list(dict.fromkeys(wanted.keys))
        known = engine.store.items.ids(keys, wanted.source)
        new = list(dict.fromkeys([*(key for key in keys if key not in known), *found.new]))
        return PreviewOut(
            new=len(new),
            known=len(known) + found.known,
            shown=new[:_MOST_SHOWN],
            more="follow" in documents,
            left_out=[LeftOutOut.model_validate(one) for one in found.left_out],
            problems=problems | dict(found.problems),
        )


def _refused_keys(engine: Engine, wanted: AddIn) -> dict[str, str]:
    """Return why some of the keys would not be polled; raise ``UsageError`` for one that is no key."""
    name = wanted.source or (engine.settings.sources[0].settings.name if engine.settings.sources else None)
    table = None if name is None else engine.settings.source(name)
    for key in wanted.keys if table is not None else ():
        assert table is not None
        table.kind.group(table.settings, key)
    found = ((key, engine.refusal(key, source=wanted.source)) for key in wanted.keys)
    return {key: problem for key, problem in found if problem}


@contextmanager
def _alone(lock: threading.Lock) -> Iterator[None]:
    """Answer with 409 if documents are being read for another request."""
    if not lock.acquire(blocking=False):
        raise RequestError(409, "documents are being read for another request", "try again in a minute")
    try:
        yield
    finally:
        lock.release()
