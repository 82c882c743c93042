"""``/changes.atom``: the newest changes for feed readers, in the Atom format (RFC 4287)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import quote
from xml.etree import ElementTree

from fastapi import FastAPI, Query, Request, Response

from afresh.engine.project_interface import ChangeFeed
from afresh.values.changes import FeedEntry
from afresh.values.formatting import format_iso_time
from afresh.values.printable_text import printable
from afresh.web.content_access import ContentAccess
from afresh.web.pages import item_link

_MEDIA_TYPE = "application/atom+xml"
_NAMESPACE = "http://www.w3.org/2005/Atom"
_MOST_LINES = 40
_NO_XML = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")  # characters that XML does not allow
Source = Annotated[str | None, Query(max_length=500)]
Limit = Annotated[int, Query(ge=1, le=200)]


def add_atom_feed(app: FastAPI, reader: ChangeFeed, access: ContentAccess) -> None:
    """Add the route. ``access`` decides who may read differences."""

    @app.get("/changes.atom", include_in_schema=False)
    def changes(
        request: Request, source: Source = None, limit: Limit = 50, content: Literal["diff"] | None = None
    ) -> Response:
        if content is not None:
            access.check(request)
        entries = reader.newest(limit, source)
        diffs = [reader.diff(entry, _MOST_LINES) if content else "" for entry in entries]
        address, query = str(request.base_url).rstrip("/"), request.url.query
        epoch = reader.cursor().partition("-")[0]  # of the first shard, in a cluster
        place = FeedPlace(
            address, f"{request.url.path}?{query}" if query else request.url.path, epoch, source
        )
        return Response(write_atom(entries, diffs, place), media_type=_MEDIA_TYPE)


@dataclass(frozen=True, slots=True)
class FeedPlace:
    """Where a feed is read: the ``address`` of this server, and the ``path`` of the feed there. The ``epoch``
    tells the changes of this project from those of others; they are those of ``source``, or all."""

    address: str
    path: str
    epoch: str
    source: str | None = None

    @property
    def id(self) -> str:
        """The name of the feed, which no other feed in the world has: readers know it by this."""
        return f"urn:afresh:changes:{self.epoch}:{quote(self.source or '', safe='')}"


def write_atom(entries: Sequence[FeedEntry], diffs: Sequence[str], place: FeedPlace) -> bytes:
    """Return a feed of changes, the newest first, each with its difference."""
    of_source = f" of {place.source}" if place.source else ""
    feed = ElementTree.Element("feed", xmlns=_NAMESPACE)
    _add(feed, "id", place.id)
    _add(feed, "title", f"afresh: changes{of_source}")
    _add(feed, "updated", format_iso_time(entries[0].time_s if entries else 0.0))
    _add(_add(feed, "author"), "name", "afresh")
    _add(feed, "link", rel="self", type=_MEDIA_TYPE, href=place.address + place.path)
    _add(feed, "link", rel="alternate", type="text/html", href=f"{place.address}/changes")
    for entry, diff in zip(entries, diffs, strict=True):
        _add_entry(feed, entry, diff, place.address)
    return bytes(ElementTree.tostring(feed, "utf-8", xml_declaration=True))


def _add_entry(feed: ElementTree.Element, entry: FeedEntry, diff: str, address: str) -> None:
    one = _add(feed, "entry")
    own = entry.cursor.partition(".")[0]  # of the places in several shards, only that of its own stays
    _add(one, "id", f"urn:afresh:change:{own}")
    _add(one, "title", f"{entry.kind}: {entry.key}")
    _add(one, "updated", format_iso_time(entry.time_s))
    is_page = entry.key.startswith(("http://", "https://"))
    href = entry.key if is_page else address + item_link(entry.key, entry.source)
    _add(one, "link", rel="alternate", href=href)
    _add(one, "category", term=entry.kind)
    if diff:
        _add(one, "content", diff, type="text")
    else:
        _add(one, "summary", f"{entry.kind}, source {entry.source}, version {entry.version}")


def _add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> ElementTree.Element:
    safe = {key: printable(value).translate(_NO_XML) for key, value in attributes.items()}
    found = ElementTree.SubElement(parent, name, safe)
    found.text = printable(text, lines=True).translate(_NO_XML)
    return found
