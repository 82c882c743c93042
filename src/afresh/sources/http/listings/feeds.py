"""Read feeds (RSS, Atom). A new or updated entry is a notice that an item may have changed. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from typing import Any

from afresh.sources.http.urls import resolve_link
from afresh.values.listing import ListingEntry

MAX_ENTRIES = 10_000
SMALL_FEED_BYTES = (
    2048  # its parser takes a second for 16 KiB of blank lines and tags, the square of the size
)
_ENTITIES = re.compile(rb"<!ENTITY", re.IGNORECASE)
_PERIOD_S = {
    "hourly": 3600.0,
    "daily": 86400.0,
    "weekly": 604800.0,
    "monthly": 2629800.0,
    "yearly": 31557600.0,
}
_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_RELATION = re.compile(r"""\brel\s*=\s*(?:"([^"]*)"|([^\s";,]+))""", re.IGNORECASE)
_LONGEST_HEADER, _LONGEST_ADDRESS = 8000, 2000
_LONGEST_TTL_S = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """The entries of a feed. ``again_after_s`` is the time in seconds after which the feed asks to be read
    again (ttl, syndication period); None if it states none. ``problem`` describes what could not be read.
    ``hub`` is the address of the hub that announces new entries (WebSub), and ``topic`` the feed's own."""

    entries: tuple[ListingEntry, ...]
    again_after_s: float | None = None
    problem: str = ""
    hub: str = ""
    topic: str = ""


def read_feed(body: bytes, url: str, media_type: str = "") -> ParsedFeed:
    """Parse the feed ``body`` that was fetched from ``url``. This opens no file and sends no request.

    >>> rss = b"<rss version='2.0'><channel><ttl>60</ttl><item><link>http://a.test/1</link></item></channel></rss>"
    >>> feed = read_feed(rss, "http://a.test/feed")
    >>> [entry.key for entry in feed.entries], feed.again_after_s
    (['http://a.test/1'], 3600.0)
    """
    import feedparser  # type: ignore[import-untyped]

    if _ENTITIES.search(body):
        return ParsedFeed((), problem="refused: XML with a DTD or entities")
    # Pass a stream, because feedparser would take bytes for the name of a file.
    headers = {"content-location": url, "content-type": media_type or "application/xml"}
    try:
        parsed = feedparser.parse(BytesIO(body), response_headers=headers, sanitize_html=False)
    except Exception as error:  # noqa: BLE001  (the parser raises many kinds of errors for broken input)
        return ParsedFeed((), problem=f"not a readable feed: {type(error).__name__}")
    listed = [_to_entry(entry, url) for entry in parsed.entries[:MAX_ENTRIES]]
    entries = tuple({entry.key: entry for entry in reversed(listed) if entry is not None}.values())[::-1]
    problem = ""
    if not parsed.get("version"):
        problem = "not a feed: neither RSS nor Atom"
    elif len(parsed.entries) > MAX_ENTRIES:
        problem = f"more than {MAX_ENTRIES} entries: the rest is not read"
    elif len(listed) > len(entries):
        problem = "some entries have no address of their own"
    links = [(str(link.get("rel", "")), str(link.get("href", ""))) for link in parsed.feed.get("links", ())]
    hub, topic = (choose_link(links, relation, url) for relation in ("hub", "self"))
    hub = "" if hub == url else hub  # an empty address is read as that of the document
    return ParsedFeed(entries, _again_after_s(parsed.feed), problem, hub, topic)


def links_in_header(text: str) -> list[tuple[str, str]]:
    """Return the (relation, address) of each link in an HTTP header ``Link`` (RFC 8288).

    >>> links_in_header('<https://hub.test/>; rel="hub", </feed>; rel=self')
    [('hub', 'https://hub.test/'), ('self', '/feed')]
    """
    found = []
    for address, parameters in _LINK.findall(text[:_LONGEST_HEADER]):
        relation = _RELATION.search(parameters)
        if relation is not None:
            found += [(one, address) for one in (relation[1] or relation[2]).lower().split()]
    return found


def choose_link(links: Iterable[tuple[str, str]], relation: str, url: str) -> str:
    """Return the first address of a relation that can be asked, as seen from the document ``url``; empty
    without one. An address with TLS comes before others, because a subscription is sent with a secret."""
    found = [resolve_link(url, address) for name, address in links if name.lower() == relation and address]
    whole = [address for address in found if address is not None and len(address) <= _LONGEST_ADDRESS]
    return next((one for one in whole if one.startswith("https:")), whole[0] if whole else "")


def _to_entry(entry: Any, url: str) -> ListingEntry | None:
    # A plain dict: feedparser's own class returns the publishing date if there is no update, and warns.
    entry = dict(entry)
    link = str(entry.get("link", ""))
    key = resolve_link(url, link) if link else None
    if key is None:
        return None
    date = entry.get("updated_parsed") or entry.get("published_parsed")
    stated = entry.get("updated") or entry.get("published") or ""
    # The title and text count as well, because many feeds change an entry but not its date.
    text = "\n".join(str(entry.get(name, "")) for name in ("id", "title", "summary"))
    mark = blake2b(f"{stated}\n{text}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    return ListingEntry(key, mark=mark, modified_s=float(calendar.timegm(date)) if date else None)


def _again_after_s(feed: Any) -> float | None:
    ttl = str(feed.get("ttl", "")).strip()
    if ttl.isascii() and ttl.isdigit():
        return min(60.0 * int(ttl[:9]), _LONGEST_TTL_S)
    period = _PERIOD_S.get(str(feed.get("sy_updateperiod", "")).strip().lower())
    times = str(feed.get("sy_updatefrequency", "1")).strip()
    often = int(times[:6]) if times.isascii() and times.isdigit() else 1
    return period / max(1, often) if period else None
