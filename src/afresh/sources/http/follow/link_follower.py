"""Decides what a fetched page means for a source that follows links: its links, or that it is no item.

A page that was found by a link is no item of its own if it redirects to another address, if it names another
address of the same page as its canonical one, or if it asks not to be kept. Items that the user added stay
items in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from afresh.sources.http.fetcher import Reply
from afresh.sources.http.follow.page_reading import directives
from afresh.sources.http.follow.scope import Scope
from afresh.sources.http.follow.settings import FollowSettings
from afresh.sources.http.follow.site_page import SMALL_PAGE_BYTES, SitePage, SiteRules, read_site_page
from afresh.sources.http.urls import display_url
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.values.fetched import FoundLinks
from afresh.values.items import Item
from afresh.values.lease import Lease

FOLLOWED = "links"
"""The name of the validator that says by which settings the links of a page were read."""

_AFTER_READING = {"depth", "chain", "queries", "unlinked", "unlinked_after"}  # settings used later
_ELSEWHERE, _OUTSIDE, _NO_SITE = "leads to", "leads out of the site", "does not redirect to the site"
_CANONICAL, _NOT_KEPT = "its canonical address is", "asks not to be kept (noindex)"
_NO_ITEM = (_ELSEWHERE, _OUTSIDE, _NO_SITE, _CANONICAL, _NOT_KEPT)
_HTML = ("text/html", "application/xhtml+xml", "")


@dataclass(frozen=True, slots=True)
class FollowedPage:
    """What a page means for the source: its links, None if it does not belong to the site; and the reason why
    it is no item of its own, empty if it is one. ``notes`` are stored with the validators of the page."""

    links: FoundLinks | None = None
    refused: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)


def is_no_item(item: Item) -> bool:
    """Return whether an item is refused because ``LinkFollower`` found that it is no item of its own."""
    return item.status == "refused" and item.problem.startswith(_NO_ITEM)


class LinkFollower:
    """Reads the links of the pages of one source."""

    def __init__(self, settings: FollowSettings, parsers: ParserPool) -> None:
        self._settings, self._parsers = settings, parsers
        self.scope = Scope(settings)

    @property
    def fingerprint(self) -> str:
        """A text that changes when other links than before would be found on the same page."""
        rules = self._settings.model_dump_json(exclude=_AFTER_READING)
        known = repr(sorted(self.scope.aliases.items()))
        return blake2b(f"{rules} {known}".encode(), digest_size=6).hexdigest()

    def must_read(self, lease: Lease) -> bool:
        """Return whether the links of a page must be read, because they were not by these settings."""
        if lease.validators.get(FOLLOWED, "") == self.fingerprint:
            return False
        return self.belongs(lease.key)

    def belongs(self, key: str) -> bool:
        """Return whether an item is a page of the site that is followed."""
        address = self.scope.normal(key) if self.scope.starts else None
        return address is not None and (self.scope.covers(address) or self.scope.is_probe(key))

    async def follow(self, lease: Lease, url: str, reply: Reply, *, is_same: bool = False) -> FollowedPage:
        """Return what the page that was asked for by ``lease`` and came from ``url`` means. Nothing is read
        if its content ``is_same`` as that of the copy, whose links are known."""
        arrived = self.scope.normal(url)
        if arrived is None or not self.belongs(lease.key):
            return FollowedPage()
        if is_same and not self.must_read(lease):
            return FollowedPage(notes={FOLLOWED: self.fingerprint})
        found = await self._follow(lease, url, arrived, reply)
        return replace(found, notes={FOLLOWED: self.fingerprint})

    async def _follow(self, lease: Lease, url: str, arrived: str, reply: Reply) -> FollowedPage:
        scope, key = self.scope, lease.key
        is_probe = scope.is_probe(key)
        scope.learn_redirect(key, arrived)
        arrived = scope.normal(url) or arrived
        if lease.listed and not scope.covers(arrived):
            words = _NO_SITE if is_probe else _OUTSIDE
            return FollowedPage(FoundLinks(()), f"{words}: {display_url(arrived)}")
        if lease.listed and arrived != key:
            return FollowedPage(FoundLinks((arrived,)), f"{_ELSEWHERE} {display_url(arrived)}")
        page = await self._read(reply, url, arrived, lease.group)
        return self._decide(lease, arrived, page, reply.headers)

    async def _read(self, reply: Reply, url: str, arrived: str, party: str) -> SitePage:
        media_type = reply.headers.get("content-type", "")
        if media_type.partition(";")[0].strip().lower() not in _HTML:
            return SitePage()
        rules = SiteRules(self._settings, dict(self.scope.aliases), arrived)
        return await self._parsers.parse(
            read_site_page, reply.body, media_type, url, rules, small=SMALL_PAGE_BYTES, party=party
        )

    def _decide(self, lease: Lease, arrived: str, page: SitePage, headers: Mapping[str, str]) -> FollowedPage:
        asked = directives([headers.get("x-robots-tag", "")])
        is_followed = page.is_followed and "nofollow" not in asked
        is_read = is_followed or not self._settings.respect_nofollow
        links, traps = (page.links, page.traps) if is_read else ((), ())
        is_indexed = page.is_indexed and "noindex" not in asked
        refused, canonical = "", page.canonical
        if lease.listed and canonical is not None:
            refused = f"{_CANONICAL} {display_url(canonical)}"
            links = tuple(dict.fromkeys((canonical, *links)))
        elif lease.listed and not is_indexed and self._settings.respect_noindex:
            is_start = arrived in map(self.scope.normal, self.scope.starts)
            refused = "" if is_start else _NOT_KEPT
        return FollowedPage(FoundLinks(links, traps=traps), refused)
