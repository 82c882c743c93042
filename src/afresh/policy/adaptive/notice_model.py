"""Notices: hints from outside that an item changed. Some changes are not announced, some notices are false.

An origin of notices (sitemaps, feeds, webhooks) announces each change of an item of rate λ with probability
ρ, its recall; its false notices come at a rate ν. Given n notices in a time τ, P(fresh) = e^{−E} with E =
(1−ρ)λτ + n·ln(1+ρλ/ν). Both ρ and ν are learned from the polls: in an interval without a change all notices
are false, which gives ν; the surplus over the false ones, divided by the changes expected, gives ρ.

Hosts differ: the sitemap of one is right, that of another says every day that everything changed. So ρ and ν
are learned for each origin and host, and shrunk: with few polls a host counts as what its origin is over all
hosts, ``CAUTION`` pseudo-changes strong, and an origin as one that announces nothing. Silence is evidence
only where an origin was heard: a host that never announced anything has ρ = 0, not its origin's ρ. Origins
are assumed to be independent: a change is unannounced if all leave it out, Π(1−ρ), and what they say adds up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Bools, Float64s, Ints

CAUTION = 3.0  # pseudo-changes, and mean intervals without a change, that pull towards the level above
# False notices that these intervals are worth at most, because hosts differ by orders of magnitude.
PRIOR_NOTICES = 1.0
SURE_CHANGES = 2.0  # a poll that is expected to have found more changes counts less
COUNTS = ("received", "unconfirmed", "time", "unchanged_time", "changes")
LEAST_FALSE = 1e-6  # of the mean frequency: notices are never beyond doubt
MOST_RECALL = 0.99
NO_HOST = -1  # the host of all items for which none was given


@dataclass(frozen=True, slots=True)
class NoticeEvidence:
    """What the notices since their last polls say about some items, a row per item.

    ``announced`` is Σ n·ln(1+ρλ/ν) at each rate. ``recall``, a single column, is the share of changes that at
    least one origin announces. A change announced twice is one change, so as evidence about the rate the
    notices count only for ``evidence_share``: recall over the sum of the origins' recalls.
    """

    announced: Float64s
    recall: Float64s
    evidence_share: Float64s


class NoticeModel:
    """Notices since each item's last poll, and what was counted for each origin, and each of its hosts.

    ``received``        its notices before polls
    ``unconfirmed``     those of them before polls that found no change
    ``time``            time between polls, summed over all polls since the host was first heard
    ``unchanged_time``  the same of the polls that found no change
    ``changes``         changes expected, given which polls found one

    A poll may count for less than 1 in them; ``followed`` is how many notices were followed by a poll.
    ``host_counts`` has these five for each host and origin, ``is_heard`` says which hosts an origin was heard
    of, and ``is_everywhere`` which origins were counted before hosts were told apart, thus for all hosts.
    ``elsewhere`` has by origin the five that other policies counted, of hosts that this one does not have.

    >>> notices, both = NoticeModel(2, frequency=1.0), np.array([0, 1])
    >>> notices.set_hosts(both, np.array([7, 8]))
    >>> for turn in range(100):                    # the feed of host 7 is right, that of host 8 invents
    ...     changed = np.array([turn % 2 == 0, turn % 4 == 0])
    ...     notices.add(np.flatnonzero([changed[0], True]), "feed")
    ...     notices.learn(both, np.ones(2), changed, np.array([0.7, 0.3]))
    >>> recall, false_rate = notices.host_rates(both)
    >>> recall.round(1).ravel().tolist(), false_rate.round(1).ravel().tolist()
    ([0.7, 0.1], [0.0, 1.0])
    """

    received: Float64s
    unconfirmed: Float64s
    time: Float64s
    unchanged_time: Float64s
    changes: Float64s
    followed: Float64s

    def __init__(self, items: int, frequency: float) -> None:
        self.frequency = frequency
        self.pending: npt.NDArray[np.float32] = np.zeros((items, 0), dtype=np.float32)
        self.hosts: Ints = np.array([NO_HOST])
        self.place: Ints = np.zeros(items, dtype=np.int64)  # of each item's host in ``hosts``
        self.elsewhere: Mapping[str, Float64s] = {}
        self.reset([])

    def reset(self, origins: Sequence[str]) -> None:
        """Forget everything and start with these origins; the hosts of the items stay."""
        self.origins = list(origins)
        self.pending = np.zeros((len(self.pending), len(origins)), dtype=np.float32)
        self.host_counts: Float64s = np.zeros((self.hosts.size, len(COUNTS), len(origins)))
        self.is_heard: Bools = np.zeros((self.hosts.size, len(origins)), dtype=bool)
        self.is_everywhere: Bools = np.zeros(len(origins), dtype=bool)
        for name in (*COUNTS, "followed"):
            setattr(self, name, np.zeros(len(origins)))

    def set_hosts(self, items: Ints, hosts: Ints) -> None:
        """Set the host of each of these items; a host is any number."""
        named, which = np.unique(hosts, return_inverse=True)
        new = np.setdiff1d(named, self.hosts, assume_unique=True)
        if new.size:
            self.hosts = np.concatenate([self.hosts, new])
            self.host_counts = np.pad(self.host_counts, ((0, new.size), (0, 0), (0, 0)))
            self.is_heard = np.pad(self.is_heard, ((0, new.size), (0, 0)))
        order = np.argsort(self.hosts)
        self.place[items] = order[np.searchsorted(self.hosts, named, sorter=order)][which]

    def grow(self, items: int) -> None:
        """Add new items without notices and without a host."""
        self.pending = np.pad(self.pending, ((0, items), (0, 0)))
        self.place = np.pad(self.place, (0, items))

    @property
    def false_rate(self) -> Float64s:
        """The rate ν of false notices of each origin over all hosts, for one item."""
        return self._rates(self._totals(), 0.0, LEAST_FALSE * self.frequency)[1]

    @property
    def recall(self) -> Float64s:
        """The recall ρ of each origin over all hosts; 0 until a poll has followed one of its notices."""
        return self._rates(self._totals(), 0.0, LEAST_FALSE * self.frequency)[0]

    def host_rates(self, items: Ints) -> tuple[Float64s, Float64s]:
        """Return a tuple (ρ, ν): recall and false rate of each origin (column) for each item (row)."""
        place = self.place[items]
        above = self._rates(self._totals(), 0.0, LEAST_FALSE * self.frequency)
        recall, false_rate = self._rates(np.moveaxis(self.host_counts.take(place, axis=0), 1, 0), *above)
        return np.where(self._applies(items), recall, 0.0), false_rate

    def own_totals(self) -> dict[str, Float64s]:
        """Return the five sums of each origin over the hosts of this policy."""
        sums = np.stack([getattr(self, name) for name in COUNTS], axis=1)
        return {origin: sums[column].copy() for column, origin in enumerate(self.origins)}

    def _totals(self) -> Float64s:
        """Return the five sums of each origin (column) over all hosts, those of other policies too."""
        own = np.stack([getattr(self, name) for name in COUNTS])
        if not self.elsewhere:
            return own
        nothing = np.zeros(len(COUNTS))
        return own + np.stack([self.elsewhere.get(one, nothing) for one in self.origins], axis=1)

    def _rates(
        self, counts: Float64s, recall: Float64s | float, false_rate: Float64s | float
    ) -> tuple[Float64s, Float64s]:
        """Return a tuple (ρ, ν) by these counts, shrunk towards ``recall`` and ``false_rate``."""
        received, unconfirmed, time, unchanged_time, changes = counts
        longer = np.minimum(CAUTION / self.frequency, PRIOR_NOTICES / false_rate)
        false = (unconfirmed + longer * false_rate) / (unchanged_time + longer)
        false = np.maximum(false, LEAST_FALSE * self.frequency)
        true = received - false * time + CAUTION * recall
        return np.clip(true / (changes + CAUTION), 0.0, MOST_RECALL), false

    def _applies(self, items: Ints) -> Bools:
        """Return whether each origin was heard of the host of each item, or has announced the item itself."""
        is_heard = self.is_heard.take(self.place[items], axis=0) | self.is_everywhere
        return np.asarray(is_heard | (self.pending[items] > 0))

    def add(self, items: Ints, origin: str = "") -> None:
        """Add notices of one origin; ``items`` contains an item once for each of its notices."""
        column = self._column(origin)
        np.add.at(self.pending[:, column], items, np.float32(1.0))
        self.is_heard[self.place[items], column] = True

    def _column(self, origin: str) -> int:
        """Return the column of an origin; it is added if the origin was not heard before."""
        if origin not in self.origins:
            self.origins = [*self.origins, origin]
            self.pending = np.pad(self.pending, ((0, 0), (0, 1)))
            self.host_counts = np.pad(self.host_counts, ((0, 0), (0, 0), (0, 1)))
            self.is_heard = np.pad(self.is_heard, ((0, 0), (0, 1)))
            self.is_everywhere = np.append(self.is_everywhere, False)
            for name in (*COUNTS, "followed"):
                setattr(self, name, np.append(getattr(self, name), 0.0))
        return self.origins.index(origin)

    def take_pending(
        self, items: Ints, pending: npt.NDArray[np.floating[Any]], origins: Sequence[str]
    ) -> None:
        """Set the notices that wait for the next poll of each item, a column for each of ``origins``.

        They tell nothing about other items of the host before that poll. Otherwise what is said of an item
        would depend on which other items were read from the store.
        """
        columns = np.array([self._column(origin) for origin in origins], dtype=np.int64)
        self.pending[items] = 0.0
        self.pending[np.ix_(items, columns)] = pending

    def is_relevant(self, items: Ints) -> bool:
        """Return whether any notice was ever followed by a poll, or is pending for one of these items."""
        return bool(self.followed.any()) or bool(self.pending[items].any())

    def evidence(self, items: Ints, rates: Float64s) -> NoticeEvidence:
        """Return what the pending notices say about these items at each of the ``rates``."""
        recall, false_rate = self.host_rates(items)
        pending, announced = self.pending.take(items, axis=0), np.zeros((items.size, rates.size))
        for column, of_origin in enumerate(pending.T):
            rows = np.flatnonzero(of_origin)  # often few
            ratio = recall[rows, column, None] / false_rate[rows, column, None]
            announced[rows] += of_origin[rows, None] * np.log1p(ratio * rates)
        some = 1.0 - np.prod(1.0 - recall, axis=1, keepdims=True)
        total = recall.sum(axis=1, keepdims=True)
        share = np.divide(some, total, out=np.ones_like(total), where=total > 0)
        return NoticeEvidence(announced, some, share)

    def learn(self, items: Ints, elapsed: Float64s, changed: Bools, rate: Float64s) -> None:
        """Learn from polls of items; where a change was found, λτ/(1−e^{−λτ}) changes are expected.

        A poll says only that something changed. Of an item that changes between any two polls it is not known
        how often, so a poll that is expected to have found many changes hardly counts.
        """
        if not self.origins:
            return
        pending, place, unchanged = self.pending[items], self.place[items], ~changed
        applies, likely = self._applies(items), np.maximum(rate * elapsed, 1e-12)
        found = likely / -np.expm1(-likely)  # changes that a poll which found one is expected to have found
        weight = np.where(changed, np.minimum(1.0, (SURE_CHANGES / found) ** 2), 1.0)
        counted = np.empty((items.size, len(COUNTS), len(self.origins)))
        counted[:, 0], counted[:, 1] = pending * weight[:, None], pending * unchanged[:, None]
        counted[:, 2] = (elapsed * weight)[:, None] * applies
        counted[:, 3] = (elapsed * unchanged)[:, None] * applies
        counted[:, 4] = (found * weight * changed)[:, None] * applies
        order = np.argsort(place, kind="stable")
        hosts, first = np.unique(place[order], return_index=True)
        if first.size:
            self.host_counts[hosts] += np.add.reduceat(counted[order], first, axis=0)
            self.is_heard[hosts] |= self.host_counts[hosts, COUNTS.index("time")] > 0
        for name, more in zip(COUNTS, counted.sum(axis=0), strict=True):
            setattr(self, name, getattr(self, name) + more)
        self.followed = self.followed + pending.sum(axis=0)
        self.pending[items] = 0.0

    def saved_hosts(self) -> tuple[Ints, Float64s]:
        """Return a tuple (hosts, counts) of the hosts of which an origin was heard."""
        heard = np.flatnonzero(self.host_counts.any(axis=(1, 2)))
        return self.hosts[heard], self.host_counts[heard]

    def restore_hosts(self, hosts: Ints, counts: Float64s, is_everywhere: Bools) -> None:
        """Restore what ``saved_hosts`` returned, without hosts that no item has any more."""
        _, mine, theirs = np.intersect1d(self.hosts, hosts, return_indices=True)
        self.host_counts[mine] = counts[theirs]
        self.is_heard = self.host_counts[:, COUNTS.index("time")] > 0
        self.is_everywhere = is_everywhere.astype(bool)
