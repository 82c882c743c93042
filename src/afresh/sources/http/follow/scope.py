"""Which addresses belong to the site that a source follows.

The addresses with ``http`` and ``https``, and with and without ``www.``, of a host are one site if they
redirect to each other: then links to any of them count as links to the one that they lead to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from urllib.parse import urlsplit

from afresh.sources.http.follow.addresses import normal_address, trap_of
from afresh.sources.http.follow.settings import FollowSettings
from afresh.sources.http.urls import origin

# What pages link to but nobody reads as a page.
_NO_PAGES = re.compile(
    r"\.(?:png|jpe?g|gif|webp|avif|svg|ico|bmp|tiff?|mp[34]|m4[av]|og[gv]|webm|wav|flac|avi|mov|mkv|css|js|mjs"
    r"|map|woff2?|ttf|otf|eot|zip|gz|tgz|bz2|xz|zst|7z|rar|tar|jar|war|exe|msi|dmg|pkg|deb|rpm|apk|iso|img|bin"
    r"|whl|torrent|swf)",
    re.IGNORECASE,
)


class Scope:
    """The addresses that a source follows. ``aliases`` maps origins to the origin to which they redirect.

    >>> scope = Scope(FollowSettings(start=("http://a.test/docs/",)))
    >>> scope.covers("http://a.test/docs/b"), scope.covers("http://a.test/docsets"), scope.covers("http://b.test/docs/")
    (True, False, False)
    >>> scope.refusal("http://a.test/blog/")
    'not below http://a.test/docs/'
    """

    def __init__(self, settings: FollowSettings, aliases: Mapping[str, str] | None = None) -> None:
        self._settings, self.aliases = settings, dict(aliases or {})
        self._included, self._excluded = (
            [re.compile(translate(pattern)) for pattern in patterns]
            for patterns in (settings.include, settings.exclude)
        )
        self.starts = settings.start

    def normal(self, address: str) -> str | None:
        """Return the one spelling of an address; None if it cannot be fetched."""
        found = normal_address(address, self._settings.drop_parameters)
        if found is None or not self.aliases:
            return found
        place = origin(found)
        return self.aliases.get(place, place) + found[len(place) :]

    def covers(self, address: str) -> bool:
        """Return whether a normal address belongs to the site."""
        return not self.refusal(address)

    def refusal(self, address: str) -> str:
        """Return why a normal address does not belong to the site; empty if it does."""
        starts = self._current_starts()
        if address in starts:
            return ""
        if not any(_is_below(address, start) for start in starts):
            hosts = {origin(start) for start in starts}
            return f"not below {starts[0]}" if origin(address) in hosts else "on another host"
        if self._included and not any(each.match(address) for each in self._included):
            return "no pattern of include fits"
        if any(each.match(address) for each in self._excluded):
            return "a pattern of exclude fits"
        if not self._included and _NO_PAGES.fullmatch(_ending(address)):
            return "not a page, by its ending"
        return trap_of(address)

    def _current_starts(self) -> Sequence[str]:
        """Return the addresses to begin with, as they are spelt now that redirects are known."""
        if not self.aliases:
            return self.starts  # the settings have the one spelling already
        return [start for start in map(self.normal, self.starts) if start is not None]

    def learn_redirect(self, asked: str, arrived: str) -> bool:
        """Learn from a redirect that two origins are one site; return whether that is new."""
        before, after = origin(asked), origin(arrived)
        if before == after or not _are_variants(before, after) or self.aliases.get(before) == after:
            return False
        self.aliases.pop(after, None)
        self.aliases[before] = after
        for other, target in list(self.aliases.items()):
            if target == before:
                self.aliases[other] = after
        return True

    def probe_for(self, address: str) -> str | None:
        """If an address may belong to the site by another name of its host, return the start page by that
        name. Its poll shows whether it redirects."""
        place = origin(address)
        for start in self._current_starts():
            if place != origin(start) and _are_variants(place, origin(start)):
                renamed = origin(start) + address[len(place) :]
                return place + start[len(origin(start)) :] if self.covers(renamed) else None
        return None

    def is_probe(self, address: str) -> bool:
        return self.probe_for(address) == address and address not in self.starts


def _is_below(address: str, start: str) -> bool:
    """Return whether an address is on the host of ``start`` and below its folder."""
    place = origin(start)
    if not address.startswith(f"{place}/"):
        return False
    path = urlsplit(start).path
    folder, _, last = path.rpartition("/")
    if last and "." not in last:  # a name such as /docs stands for the folder /docs/
        inner = address[len(place) :]
        return inner == path or inner.startswith((f"{path}/", f"{path}?"))
    return address.startswith(f"{place}{folder}/")


def _ending(address: str) -> str:
    last = urlsplit(address).path.rpartition("/")[2]
    return last[last.rfind(".") :] if "." in last else ""


def _are_variants(one: str, other: str) -> bool:
    """Return whether two origins differ only in the scheme and in ``www.``.

    >>> _are_variants("http://a.test", "https://www.a.test"), _are_variants("http://a.test", "http://b.test")
    (True, False)
    """
    names = {urlsplit(each).netloc.removeprefix("www.") for each in (one, other)}
    return len(names) == 1
