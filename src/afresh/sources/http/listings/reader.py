"""Read the sitemaps and feeds of a site, including those that robots.txt or a start page names."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from afresh.sources.http.listings.feeds import (
    SMALL_FEED_BYTES,
    ParsedFeed,
    choose_link,
    links_in_header,
    read_feed,
)
from afresh.sources.http.listings.sitemaps import ParsedSitemap, read_sitemap
from afresh.sources.http.settings import HttpSettings
from afresh.sources.http.urls import resolve_link
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.text_decoding import decode
from afresh.values.listing import Listing, ListingEntry, ListingKind

_FEED_TYPES = ("application/rss+xml", "application/atom+xml")
_NOTHING_FOUND = "no sitemap or feed found: add pages with --file, or follow links with --follow"
_MAX_DEPTH = 3  # more than the protocol needs, which allows no index of indexes


@dataclass(frozen=True, slots=True)
class Document:
    """A fetched document, or the problem with it, and the cost of fetching it. ``links`` is its HTTP header
    ``Link``."""

    url: str
    body: bytes = field(repr=False)
    media_type: str = ""
    status: int | None = None
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    problem: str = ""
    links: str = ""


class DocumentFetcher(Protocol):
    """Fetches documents within the limits of their hosts. ``parsers`` parse them within limits, too."""

    parsers: ParserPool

    async def document(self, url: str) -> Document:
        """Fetch one document. ``Document.problem`` describes what went wrong."""

    async def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the sitemaps that the robots.txt for ``url`` names."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One document to read. Only pages of ``hosts`` that it lists are used. ``depth`` is the number of
    sitemap indexes above it. If no document names this one, but sites often have it, ``guessed`` is what
    its start page says if the site does not."""

    url: str
    kind: ListingKind
    hosts: frozenset[str]
    depth: int = 0
    guessed: Listing | None = None


async def read_listings(settings: HttpSettings, reader: DocumentFetcher) -> AsyncIterator[Listing]:
    """Read every document that the settings or another document name, each once. The start pages whose links
    are followed are items; they are listed without a request."""
    tasks = deque(
        [
            *(_Task(url, "sitemap", _hosts(url)) for url in settings.sitemaps),
            *(_Task(url, "feed", _hosts(url)) for url in settings.feeds),
            *(_Task(url, "page", _hosts(url)) for url in settings.discover),
        ]
    )
    if settings.follow.start:
        starts = tuple(ListingEntry(start) for start in settings.follow.start)
        yield Listing("the start pages", "page", starts, complete=False)
    seen: set[str] = set()
    while tasks:
        task = tasks.popleft()
        if task.url in seen:
            continue
        if len(seen) >= settings.max_listings:
            problem = f"more than {settings.max_listings} documents: the rest is not read"
            yield Listing(task.url, task.kind, (), complete=False, problem=problem)
            return
        seen.add(task.url)
        document = await reader.document(task.url)
        try:
            listing, more = await _read(task, document, reader)
        except ParseBudgetError as error:
            listing, more = _listing(task, document, (), str(error)), []
        tasks.extend(more)
        if task.guessed is not None and document.status == 404:
            listing = replace(
                task.guessed,
                requests=document.requests,
                bytes=document.bytes,
                seconds=document.seconds,
            )
        yield listing


async def _read(task: _Task, document: Document, reader: DocumentFetcher) -> tuple[Listing, list[_Task]]:
    if document.problem:
        return _listing(task, document, (), document.problem), []
    host = _host(document.url)
    if task.kind == "page":
        return await _start_page(task, document, reader)
    if task.kind == "feed":
        feed = await reader.parsers.parse(
            read_feed, document.body, document.url, document.media_type, small=SMALL_FEED_BYTES, party=host
        )
        found = _listing(task, document, feed.entries, feed.problem, again_after_s=feed.again_after_s)
        return _with_hub(found, document, feed), []
    # A sitemap may name 50,000 URLs: their hosts are compared in the parser process too.
    sitemap, foreign = await reader.parsers.parse(
        read_own_sitemap, document.body, document.url, document.bytes, task.hosts, party=host
    )
    return _sitemap(task, document, sitemap, foreign)


def _with_hub(listing: Listing, document: Document, feed: ParsedFeed) -> Listing:
    """Return a listing with the hub that the document names. Links in its header come before those in it."""
    links = links_in_header(document.links)
    hub = choose_link(links, "hub", document.url) or feed.hub
    topic = choose_link(links, "self", document.url) or feed.topic or document.url
    return replace(listing, hub=hub, topic=topic if hub else "")


def read_own_sitemap(
    body: bytes, url: str, wire_bytes: int, hosts: frozenset[str]
) -> tuple[ParsedSitemap, int]:
    """Return what the sitemap ``url`` says of ``hosts``, and the number of entries of other hosts."""
    found = read_sitemap(body, url, wire_bytes)
    entries = tuple(entry for entry in found.entries if _host(entry.key) in hosts)
    children = tuple(child for child in found.children if _host(child) in hosts)
    foreign = len(found.entries) + len(found.children) - len(entries) - len(children)
    return replace(found, entries=entries, children=children), foreign


def _sitemap(
    task: _Task, document: Document, sitemap: ParsedSitemap, foreign: int
) -> tuple[Listing, list[_Task]]:
    problems = [sitemap.problem] if sitemap.problem else []
    if foreign:
        problems.append(f"{foreign} entries of other hosts left out")
    more = [_Task(child, "sitemap", task.hosts, task.depth + 1) for child in sitemap.children]
    if more and task.depth >= _MAX_DEPTH:
        problems.append(f"sitemaps nested more than {_MAX_DEPTH} deep are not read")
        more = []
    complete = not sitemap.problem and not sitemap.children
    return _listing(task, document, sitemap.entries, "; ".join(problems), complete=complete), more


async def _start_page(
    task: _Task, document: Document, reader: DocumentFetcher
) -> tuple[Listing, list[_Task]]:
    named = await reader.sitemaps(document.url)
    feeds, linked = await reader.parsers.parse(
        page_links, document.body, document.media_type, document.url, party=_host(document.url)
    )
    hosts = task.hosts | _hosts(document.url)
    page = _listing(task, document, (ListingEntry(document.url),), "")
    # A sitemap named in robots.txt may be on another host and list pages of this site.
    sitemaps = [_Task(url, "sitemap", hosts | _hosts(url)) for url in (*named, *linked)]
    if not sitemaps:
        none = page if feeds else replace(page, problem=_NOTHING_FOUND)
        sitemaps = [_Task(urljoin(document.url, "/sitemap.xml"), "sitemap", hosts, guessed=none)]
    more = [*sitemaps, *(_Task(url, "feed", hosts) for url in feeds)]
    return page, more


def page_links(body: bytes, media_type: str, url: str) -> tuple[list[str], list[str]]:
    """Return a tuple (URLs of feeds, URLs of sitemaps) from the ``link`` elements of the page ``url``.

    >>> page = b'<link rel="alternate" type="application/rss+xml" href="/feed"><link rel=sitemap href=s.xml>'
    >>> page_links(page, "text/html", "http://a.test/")
    (['http://a.test/feed'], ['http://a.test/s.xml'])
    """
    from selectolax.lexbor import LexborHTMLParser

    feeds: dict[str, None] = {}
    sitemaps: dict[str, None] = {}
    for link in LexborHTMLParser(decode(body, media_type)).css("link[href][rel]"):
        relation = (link.attributes.get("rel") or "").lower().split()
        kind = (link.attributes.get("type") or "").lower().strip()
        target = resolve_link(url, link.attributes.get("href") or "")
        if target is not None and "sitemap" in relation:
            sitemaps[target] = None
        elif target is not None and "alternate" in relation and kind in _FEED_TYPES:
            feeds[target] = None
    return list(feeds), list(sitemaps)


def _listing(
    task: _Task,
    document: Document,
    entries: Iterable[ListingEntry],
    problem: str,
    *,
    complete: bool = False,
    again_after_s: float | None = None,
) -> Listing:
    return Listing(
        task.url,
        task.kind,
        tuple(entries),
        complete,
        again_after_s,
        document.requests,
        document.bytes,
        document.seconds,
        problem,
    )


def _hosts(url: str) -> frozenset[str]:
    return frozenset({_host(url)})


def _host(url: str) -> str:
    """Return the host without ``www.``, because both names of a site may list each other's pages."""
    return (urlsplit(url).hostname or "").removeprefix("www.")
