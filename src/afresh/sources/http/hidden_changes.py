"""The share of pages whose validators hide changes. It is learned for each host, and each class of pages.

A validator lies if it stays the same, or if the server answers 304, although the content is another one: it
*hides* a change. A request with validators does not show the lie. Therefore some polls are drawn at random
and sent without validators. Of the changes that such polls see, the first one of each page is counted: the
validator either showed it (``shown``) or hid it (``hidden``). Answers without a change tell nothing about
lies, however many they are, and pages that change often must not outweigh the others. The share s of lying
pages has the distribution

    Beta(A + hidden, B + shown),

where the counts are those of the page's class and, with a weight of ``HOST_CHANGES`` changes at most, those
of the other classes of its host. While P(s > ``TOLERATED``) > ½, validators are sent only for pages of which
they showed a change. The probability that a poll is drawn as a check is ``EAGER`` times the mean of s, at
least ``RAREST``; that is also the probability for pages with a shown change. So checks go on for as long as
validators are used. A validator that hid a change of a page is never again sent for this page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from afresh.sources.http.urls import host_group

A, B = 0.1, 2.0  # the distribution before any change was seen: a share of 5 % on average, 0 most likely
TOLERATED = 0.05
HOST_CHANGES = 5.0
EAGER, RAREST = 20.0, 0.05
QUIET_WEIGHT = 0.05  # so much of a shown change is a check that finds none, for the frequency of checks alone
_FORGET_AT = 1000.0  # counts are then halved, so that a host that improves is trusted again


@dataclass(frozen=True, slots=True)
class SeenChanges:
    """What polls without validators saw: the number of pages whose first seen change a validator showed, and
    hid, and the number of polls that found no change (``quiet``)."""

    shown: float = 0.0
    hidden: float = 0.0
    quiet: float = 0.0

    def count(self, *, changed: bool, is_hidden: bool) -> SeenChanges:
        """Return the counts with one more poll."""
        new = SeenChanges(
            self.shown + (changed and not is_hidden),
            self.hidden + (changed and is_hidden),
            self.quiet + (not changed),
        )
        if new.shown + new.hidden + new.quiet * QUIET_WEIGHT <= _FORGET_AT:
            return new
        return SeenChanges(new.shown / 2, new.hidden / 2, new.quiet / 2)

    def without(self, some: SeenChanges) -> SeenChanges:
        """Return these counts without ``some`` of them, which may have been halved at other times."""
        return SeenChanges(
            max(self.shown - some.shown, 0.0),
            max(self.hidden - some.hidden, 0.0),
            max(self.quiet - some.quiet, 0.0),
        )


NO_CHANGES = SeenChanges()


@dataclass(frozen=True, slots=True)
class HiddenShare:
    """The share of lying pages in one class of pages: Beta(``a``, ``b``), after ``quiet`` checks without
    a change.

    >>> HiddenShare.of(NO_CHANGES, NO_CHANGES).is_tolerable
    True
    >>> HiddenShare.of(SeenChanges(hidden=1), SeenChanges(hidden=1)).is_tolerable
    False
    >>> HiddenShare.of(SeenChanges(shown=400, hidden=2), NO_CHANGES).is_tolerable
    True
    """

    a: float
    b: float
    quiet: float

    @classmethod
    def of(cls, own: SeenChanges, host: SeenChanges) -> HiddenShare:
        """Return the share of a class with the counts ``own`` on a host with the counts ``host``, which
        contain ``own``.

        >>> one = SeenChanges(shown=1)
        >>> HiddenShare.of(one, one) == HiddenShare.of(one, NO_CHANGES)
        True
        """
        others = host.without(own)  # no change counts twice
        total = others.shown + others.hidden
        weight = min(1.0, HOST_CHANGES / total) if total else 0.0
        return cls(
            A + own.hidden + weight * others.hidden,
            B + own.shown + weight * others.shown,
            own.quiet + others.quiet,
        )

    @property
    def is_tolerable(self) -> bool:
        """Whether the validator may be sent for pages of which no change was seen yet."""
        # Without a hidden change the share is smaller than before any change, when it is tolerable.
        return self.a <= A or _probability_above(self.a, self.b) <= 0.5

    @property
    def check_probability(self) -> float:
        """The probability with which a poll of such a page is sent without the validator, to check it."""
        mean = self.a / (self.a + self.b + QUIET_WEIGHT * self.quiet)
        return min(max(EAGER * mean, RAREST), 1.0)


@lru_cache(maxsize=4096)
def _probability_above(a: float, b: float) -> float:
    from scipy.special import betaincc

    return float(betaincc(a, b, TOLERATED))


@lru_cache(maxsize=1024)
def path_class(url: str) -> str:
    """Return the class of pages to which a URL belongs: host, first directory, and how the path ends.

    >>> path_class("https://a.test/shop/boots/17.html?size=9"), path_class("https://a.test/")
    ('a.test/shop/*.html?', 'a.test/*')
    """
    parts = urlsplit(url)
    folder, _, name = parts.path.rpartition("/")
    first = folder.split("/")[1] if folder else ""
    _, dot, ending = name.rpartition(".")
    return f"{host_group(url)}/{first + '/' if first else ''}*{dot}{ending if dot else ''}" + (
        "?" if parts.query else ""
    )
