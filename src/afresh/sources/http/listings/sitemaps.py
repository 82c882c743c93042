"""Read sitemaps (sitemaps.org): lists of pages with hints of when and how often they change. Pure.

A sitemap is parsed as a stream, compressed or not, within limits. DTDs and entities are refused. If there is
an error, the entries before it are used, and the error is reported."""

from __future__ import annotations

import codecs
import re
import xml.sax
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TypeAlias
from xml.sax.handler import ContentHandler, feature_external_ges, feature_namespaces
from xml.sax.xmlreader import AttributesNSImpl

from afresh.sources.http.decompression import BadEncodingError, Inflater, TooLargeError
from afresh.sources.http.urls import resolve_link
from afresh.sources.text_decoding import encoding_of
from afresh.values.listing import ListingEntry
from afresh.values.units import UNIT_SECONDS

MAX_ENTRIES = 50_000  # the protocol's own limit for one file
MAX_PLAIN_BYTES = 100_000_000  # twice the protocol's own limit
_MAX_RATIO = 200.0
_CHUNK = 1 << 16
_COMPRESSED_CHUNK = 1 << 12  # it may become two hundred times as large
_LONGEST_FIELD = 8000
_FIELDS = frozenset({"loc", "lastmod", "changefreq"})
_PER_S = {
    "always": 4 / UNIT_SECONDS["h"],  # "at each access", which means more often than hourly
    "hourly": 1 / UNIT_SECONDS["h"],
    "daily": 1 / UNIT_SECONDS["d"],
    "weekly": 1 / UNIT_SECONDS["w"],
    "monthly": 12 / UNIT_SECONDS["y"],
    "yearly": 1 / UNIT_SECONDS["y"],
    "never": 0.1 / UNIT_SECONDS["y"],  # an archived page; with a rate of 0 it would never be polled
}
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_Name: TypeAlias = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class ParsedSitemap:
    """The content of a sitemap: its pages (``entries``) and the URLs of other sitemaps (``children``).
    ``problem`` describes what could not be read."""

    entries: tuple[ListingEntry, ...]
    children: tuple[str, ...]
    problem: str = ""


def read_sitemap(
    body: bytes, url: str, wire_bytes: int | None = None, *, max_entries: int = MAX_ENTRIES
) -> ParsedSitemap:
    """Read a sitemap, a sitemap index, or a plain list of URLs, which may be compressed by gzip. ``url`` is
    the address of the sitemap. ``wire_bytes`` is the number of bytes that were received for ``body``, which
    is less than its length if the server compressed it, too: what compression gains is limited in all.

    >>> page = b"<urlset><url><loc>/a</loc><lastmod>1970-01-02</lastmod></url></urlset>"
    >>> [entry] = read_sitemap(page, "http://a.test/sitemap.xml").entries
    >>> entry.key, entry.modified_s
    ('http://a.test/a', 86400.0)
    """
    handler = _Handler(url, max_entries)
    try:
        chunks = _decompress(body, len(body) if wire_bytes is None else wire_bytes)
        first = next((chunk for chunk in chunks if chunk), b"")
        if first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            _parse(first, chunks, handler)
        else:
            _parse_lines(first, chunks, handler)
        problem = ""
    except _FullError:
        problem = f"more than {max_entries} entries: the rest is not read"
    except (BadEncodingError, TooLargeError) as error:
        problem = str(error)
    return ParsedSitemap(tuple(handler.entries), tuple(handler.children), problem or handler.problem)


def w3c_date_s(text: str) -> float | None:
    """Return a W3C date (a year, month, day or time) in Unix seconds, or None if it is malformed.

    >>> w3c_date_s("1970-01-02"), w3c_date_s("1970-01-01T01:00:00+01:00"), w3c_date_s("soon")
    (86400.0, 0.0, None)
    """
    text = text.strip()
    try:
        day = _DAY.fullmatch(text)
        if day:
            moment = datetime(int(day[1]), int(day[2] or 1), int(day[3] or 1), tzinfo=UTC)
        else:
            moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


class _FullError(Exception):
    """The file has more entries than allowed."""


class _Handler(ContentHandler):
    """Collects the entries of a sitemap. It ignores namespaces, because many sitemaps have a wrong one."""

    def __init__(self, url: str, max_entries: int) -> None:
        super().__init__()
        self.entries: list[ListingEntry] = []
        self.children: list[str] = []
        self.problem = ""
        self._url, self._max_entries = url, max_entries
        self._fields: dict[str, str] = {}
        self._field = ""
        self._text: list[str] = []
        self._length = 0

    def startElementNS(self, name: _Name, qname: str | None, attrs: AttributesNSImpl) -> None:  # noqa: N802
        del qname, attrs
        tag = name[1].lower()
        if tag in ("url", "sitemap"):
            self._fields = {}
        self._field = tag if tag in _FIELDS and tag not in self._fields else ""
        self._text, self._length = [], 0

    def characters(self, content: str) -> None:
        if self._field and self._length <= _LONGEST_FIELD:
            self._text.append(content)
            self._length += len(content)

    def endElementNS(self, name: _Name, qname: str | None) -> None:  # noqa: N802
        del qname
        tag = name[1].lower()
        if self._field and tag == self._field:
            self._fields[tag] = "".join(self._text).strip()
            self._field = ""
        elif tag == "url":
            self.add(self._fields)
        elif tag == "sitemap":
            self._add_child(self._fields.get("loc", ""))

    def add(self, fields: dict[str, str]) -> None:
        key = resolve_link(self._url, fields.get("loc", "")) if fields.get("loc") else None
        if key is None:
            self.problem = "some entries have no valid address"
            return
        if len(self.entries) >= self._max_entries:
            raise _FullError
        self.entries.append(_to_entry(key, fields))

    def _add_child(self, loc: str) -> None:
        child = resolve_link(self._url, loc) if loc else None
        if child is None:
            self.problem = "some sitemaps have no valid address"
        elif len(self.children) >= self._max_entries:
            raise _FullError
        else:
            self.children.append(child)


def _to_entry(key: str, fields: dict[str, str]) -> ListingEntry:
    lastmod = fields.get("lastmod", "")[:64]
    return ListingEntry(
        key,
        mark=lastmod,
        modified_s=w3c_date_s(lastmod) if lastmod else None,
        prior_rate_per_s=_PER_S.get(fields.get("changefreq", "").lower()),
    )


def _decompress(body: bytes, wire_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed body in chunks, so that a large body is not in memory twice."""
    encoding = "gzip" if body.startswith(b"\x1f\x8b") else ""
    max_ratio = _MAX_RATIO * min(1.0, wire_bytes / max(len(body), 1)) if encoding else _MAX_RATIO
    inflater = Inflater(encoding, max_bytes=MAX_PLAIN_BYTES, max_ratio=max_ratio)
    chunk = _COMPRESSED_CHUNK if encoding else _CHUNK
    for start in range(0, len(body), chunk):
        yield inflater.feed(body[start : start + chunk])
    inflater.finish()


def _parse(first: bytes, rest: Iterator[bytes], handler: _Handler) -> None:
    from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
    from defusedxml.expatreader import DefusedExpatParser  # type: ignore[import-untyped]

    parser = DefusedExpatParser(forbid_dtd=True)
    parser.setFeature(feature_namespaces, True)
    parser.setFeature(feature_external_ges, False)
    parser.setContentHandler(handler)
    try:
        parser.feed(first)
        for chunk in rest:
            parser.feed(chunk)
        parser.close()
    except DefusedXmlException:
        handler.problem = "refused: XML with a DTD or entities"
    except xml.sax.SAXParseException as error:
        handler.problem = f"not well-formed XML: {error.getMessage()} in line {error.getLineNumber()}"
    except (LookupError, ValueError) as error:
        handler.problem = f"not readable XML: {error}"


def _parse_lines(first: bytes, rest: Iterator[bytes], handler: _Handler) -> None:
    """Read a sitemap in plain text, with one absolute address per line."""
    for line in _lines(chain([first], rest)):
        address = line.strip()
        if address.startswith(("http://", "https://")):
            handler.add({"loc": address})
        elif address:
            handler.problem = "neither XML nor a list of addresses"


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a text in chunks. Of a line that is too long for an address, the rest is cut off."""
    decoder: codecs.IncrementalDecoder | None = None
    left = ""
    for chunk in chunks:
        if decoder is None:
            decoder = codecs.getincrementaldecoder(encoding_of(chunk))("replace")
        lines = (left + decoder.decode(chunk)).splitlines(keepends=True)
        left = lines.pop()[: _LONGEST_FIELD + 1] if lines else ""
        yield from lines
    yield left
