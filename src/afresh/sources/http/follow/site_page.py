"""Reads what a page says about the site that is followed. Parser processes call this.

A page may have twenty thousand links of thousands of characters each: to find the one spelling of each takes
many seconds. So a parser process does that too, and only what is kept comes back, limited in number and size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from afresh.sources.http.follow.addresses import trap_of
from afresh.sources.http.follow.page_reading import read_page
from afresh.sources.http.follow.scope import Scope
from afresh.sources.http.follow.settings import FollowSettings

SMALL_PAGE_BYTES = 4096
"""A larger page is read by a parser process."""

_MOST_TRAPS = 100  # of one page; they are only counted


@dataclass(frozen=True, slots=True)
class SiteRules:
    """By which settings a page is read, with the ``aliases`` of ``Scope``. ``arrived`` is its address, after
    redirects, in the one spelling."""

    settings: FollowSettings
    aliases: Mapping[str, str]
    arrived: str


@dataclass(frozen=True, slots=True)
class SitePage:
    """What a page says: the addresses of the site to which it links (``links``), some of those that were left
    out because they look like some of endlessly many (``traps``), and the ``canonical`` address, if it is
    another spelling of its own. All are in the one spelling. The rest is as in ``PageReading``."""

    links: tuple[str, ...] = ()
    traps: tuple[str, ...] = ()
    canonical: str | None = None
    is_followed: bool = True
    is_indexed: bool = True


def read_site_page(body: bytes, media_type: str, url: str, rules: SiteRules) -> SitePage:
    """Return what the HTML page at ``url`` says about the site of ``rules``.

    >>> rules = SiteRules(FollowSettings(start="http://a.test/docs/"), {}, "http://a.test/docs/")
    >>> page = b'<a href="x#top">in</a> <a href="x">again</a> <a href="/blog">out</a> <a href="a/a/a/a/a">'
    >>> found = read_site_page(page, "text/html", "http://a.test/docs/", rules)
    >>> found.links, found.traps
    (('http://a.test/docs/x',), ('http://a.test/docs/a/a/a/a/a',))
    """
    reading = read_page(body, media_type, url, rules.settings.respect_nofollow)
    scope = Scope(rules.settings, rules.aliases)
    links, traps = dict[str, None](), dict[str, None]()
    for link in reading.links:
        address = scope.normal(link)
        if address is None or address == rules.arrived:
            continue
        trap = trap_of(address)
        if trap and scope.refusal(address) == trap:
            if len(traps) < _MOST_TRAPS:
                traps[address] = None
            continue
        kept = address if scope.covers(address) else scope.probe_for(address)
        if kept is not None:
            links[kept] = None
    canonical = _canonical(scope, rules.arrived, reading.canonical)
    return SitePage(tuple(links), tuple(traps), canonical, reading.is_followed, reading.is_indexed)


def _canonical(scope: Scope, arrived: str, named: str | None) -> str | None:
    """Return the canonical address of a page, if it is another spelling of its own. Sites that name their
    home page as the canonical address of every page are not believed."""
    address = None if named is None else scope.normal(named)
    if address is None or address == arrived or not scope.covers(address):
        return None
    return address if _stem(address) == _stem(arrived) else None


def _stem(address: str) -> str:
    """Return the path of an address without its parameters and without what names a folder's own page.

    >>> _stem("https://a.test/docs/index.html?x=1") == _stem("https://a.test/docs")
    True
    """
    path = urlsplit(address).path.rstrip("/")
    folder, _, last = path.rpartition("/")
    return folder if last.partition(".")[0] in ("index", "default") else path
