"""Reads the links of a page, and what it says about being followed and copied. Parser processes call this."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from afresh.sources.http.urls import resolve_link
from afresh.sources.text_decoding import decode

MOST_LINKS = 20_000
_REFRESH = re.compile(r"\s*[\d.]+\s*[;,]\s*(?:url\s*=\s*)?['\"]?(?P<url>[^'\"]+)", re.IGNORECASE)
_SELECTOR = "a[href], area[href], base[href], link[rel][href], meta[content], iframe[src], frame[src]"
_ROBOTS = ("robots", "afresh")


@dataclass(frozen=True, slots=True)
class PageReading:
    """What one page links to: absolute addresses in the order of the page, each once. ``canonical`` is the
    address that the page names as its own. ``is_followed`` is False if the page asks not to follow its links,
    ``is_indexed`` is False if it asks not to be kept by others."""

    links: tuple[str, ...] = ()
    canonical: str | None = None
    is_followed: bool = True
    is_indexed: bool = True


def read_page(body: bytes, media_type: str, url: str, respect_nofollow: bool = True) -> PageReading:
    """Return what the HTML page at ``url`` links to.

    >>> page = b'<base href="/x/"><a href="b#c">B</a><a href=d rel=nofollow>D</a><a href="b">again</a>'
    >>> read_page(page, "text/html", "http://a.test/").links
    ('http://a.test/x/b',)
    """
    from selectolax.lexbor import LexborHTMLParser

    base, canonical = url, None
    found: list[str] = []
    robots: list[str] = []
    for node in LexborHTMLParser(decode(body, media_type)).css(_SELECTOR):
        given = node.attributes
        tag, target = node.tag, given.get("href") or given.get("src") or ""
        relation = (given.get("rel") or "").lower().split()
        if tag == "meta":
            name = (given.get("name") or given.get("http-equiv") or "").lower()
            content = given.get("content") or ""
            if name in _ROBOTS:
                robots.append(content)
            elif name == "refresh" and (match := _REFRESH.match(content)):
                found.append(match["url"])
        elif tag == "base":
            base = resolve_link(url, target) or base if base == url else base
        elif tag == "link":
            if "canonical" in relation:
                canonical = canonical or target
            elif "next" in relation or "prev" in relation:
                found.append(target)
        elif not (respect_nofollow and "nofollow" in relation) and len(found) < MOST_LINKS:
            found.append(target)
    asked = directives(robots)
    links = dict.fromkeys(link for each in found if (link := resolve_link(base, each)) is not None)
    named = None if canonical is None else resolve_link(base, canonical)
    return PageReading(tuple(links), named, "nofollow" not in asked, "noindex" not in asked)


def directives(texts: Iterable[str]) -> frozenset[str]:
    """Return the robots directives of meta tags or of X-Robots-Tag headers. Those for one named robot count
    only if it is ours.

    >>> sorted(directives(["NOINDEX, nofollow", "otherbot: noarchive", "afresh: noindex"]))
    ['nofollow', 'noindex']
    >>> sorted(directives(["none"]))
    ['nofollow', 'noindex']
    """
    found: set[str] = set()
    for text in texts:
        is_ours = True
        for part in text.lower().split(","):
            name, colon, rest = part.partition(":")
            if colon and name.strip() not in ("unavailable_after", "max-snippet", "max-image-preview"):
                is_ours = name.strip() in _ROBOTS
                part = rest
            if is_ours:
                found.add(part.strip())
    if "none" in found:
        found |= {"noindex", "nofollow"}
    return frozenset(found & {"noindex", "nofollow"})
