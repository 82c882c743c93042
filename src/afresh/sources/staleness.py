"""Sources that see what their items stand on without polling them: counters of base tables under a view.

A look reads the counters of everything at once and cheaply, every few seconds. The difference of two looks is
one observation: *something below changed in between, or nothing did*. Counts are not taken for numbers of
changes, since one transaction writes many rows; they give the bit, and their dispersion is only told.

What whoever ranks the items makes of it, for an item of weight w, cost c and rate λ:

    fresh   nothing to gain: worth 0 until a look sees a change
    stale   a refresh buys 1/λ of fresh time on average: worth w/(cλ) per unit of cost

which is the rule for notices that miss nothing and never err (recall 1, false rate 0): refresh at once
whatever is worth more than the price μ of the budget, and leave the rest alone. Where that price falls inside
one item, it is refreshed after some of its changes. λ is ``rate_per_s``, learned from every look rather than
from polls alone, and c is ``cost_s``, the mean of what its polls took; both are None while nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from afresh.sources.source import Source


@dataclass(frozen=True, slots=True)
class StalenessReport:
    """What one look tells of one item.

    ``elapsed_s`` is the time since the look before, 0 for one that only starts the clock (the first, or after
    counters were reset); ``changed`` whether anything below the item moved in it. ``stale_since_s`` is the
    first look that saw the copy out of date; ``known`` is False where something below cannot be watched (a
    foreign table) or the item was never refreshed under our eyes: then it may be stale unseen. ``below`` are
    the items that it is made from: while one of them is stale too, that one is to be refreshed first.
    ``dispersion`` is the variance over the mean of what was counted between looks: 1 for a Poisson number.
    """

    elapsed_s: float
    changed: bool
    stale_since_s: float | None = None
    known: bool = True
    rate_per_s: float | None = None
    low_per_s: float | None = None
    high_per_s: float | None = None
    cost_s: float | None = None
    below: tuple[str, ...] = ()
    dispersion: float | None = None

    @property
    def fresh(self) -> bool:
        """Whether the copy is right, as far as can be seen."""
        return self.known and self.stale_since_s is None


@runtime_checkable
class StalenessSource(Source, Protocol):
    """A source that can tell staleness without a poll; ``isinstance`` tells.

    Every pass of ``listings`` is a look; its marks give the notices, and what it saw is told by
    ``evidence`` afterwards. What a source remembers between looks is lost with the process unless
    whoever runs it keeps ``memory`` after each pass, and gives it back by ``recall`` before the first. Memory
    that is older than the last poll is harmless: an item is then thought stale until its next refresh.
    """

    def evidence(self) -> Mapping[str, StalenessReport]:
        """What is known of each item since the last look and the polls after it; asks nobody."""

    def memory(self) -> bytes:
        """What is remembered of the last look and of each item's last refresh."""

    def recall(self, memory: bytes) -> None:
        """Take up what an earlier process remembered; what cannot be read is as if nothing were known."""
