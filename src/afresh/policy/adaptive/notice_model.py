"""Notices: hints from outside that an item changed. Some changes are not announced, some notices are false.

A source of notices (a sitemap, a feed, a webhook) announces each change with probability ρ, its recall. Its
false notices come at a rate ν per item. If an item of rate λ had n notices in a time τ, its copy is fresh
with probability e^{−E}, where E = (1−ρ)λτ + n·ln(1+ρλ/ν). Both ρ and ν of each source are learned from polls.
If a poll finds no change, all notices since the poll before are false, which gives ν. The number of notices
minus the false ones expected, divided by the changes expected, gives ρ. Sources are assumed to be
independent: all of them miss a change with probability Π(1−ρ), and their terms n·ln(1+ρλ/ν) are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Bools, Float64s, Ints

CAUTION = 3.0  # pseudo-changes that pull the recall towards 0
COUNTS = ("received", "unconfirmed", "time", "unchanged_time", "changes")
LEAST_FALSE = 1e-6  # lowest ν as a share of the mean frequency, so that no source is trusted completely


@dataclass(frozen=True, slots=True)
class NoticeEvidence:
    """What the notices since the last polls of some items say about these items.
    ``announced`` is Σ n·ln(1+ρλ/ν) over the sources, with a row per item and a column per rate λ. n is the
    number of notices, ρ the recall and ν the rate of false notices of a source. ``recall`` is the share of
    changes that at least one source announces. Two notices of one change are still one change. So as evidence
    about the rate, ``announced`` is multiplied by ``evidence_share``: ``recall`` divided by the sum of ρ."""

    announced: Float64s
    recall: float
    evidence_share: float


class NoticeModel:
    """The notices since each item's last poll (``pending``), and counts for each source of notices.

    A source is counted from its first notice on; an item's notices are counted when the item is polled.

    ``received``        notices
    ``unconfirmed``     notices before polls that found no change
    ``time``            time between polls, summed over all polls
    ``unchanged_time``  time between polls, summed over the polls that found no change
    ``changes``         changes expected before the polls that found a change

    >>> notices = NoticeModel(2, frequency=1.0)
    >>> for _ in range(50):                        # the feed announces item 0, which changes; the map item 1
    ...     notices.add(np.array([0]), "feed")
    ...     notices.add(np.array([1]), "map")
    ...     notices.learn(np.array([0, 1]), np.ones(2), np.array([True, False]), np.array([1.0, 0.01]))
    >>> notices.sources, notices.recall.round(1).tolist(), notices.false_rate.round(1).tolist()
    (['feed', 'map'], [0.6, 0.0], [0.0, 0.9])
    """

    received: Float64s
    unconfirmed: Float64s
    time: Float64s
    unchanged_time: Float64s
    changes: Float64s

    def __init__(self, items: int, frequency: float) -> None:
        self.frequency = frequency
        self.pending: npt.NDArray[np.float32] = np.zeros((items, 0), dtype=np.float32)
        self.reset([])

    def reset(self, sources: Sequence[str]) -> None:
        """Forget everything and start with these sources."""
        self.sources = list(sources)
        self.pending = np.zeros((len(self.pending), len(sources)), dtype=np.float32)
        for name in COUNTS:
            setattr(self, name, np.zeros(len(sources)))

    @property
    def false_rate(self) -> Float64s:
        """The rate ν of false notices of each source, for one item."""
        prior = CAUTION * LEAST_FALSE * self.frequency
        rate = (self.unconfirmed + prior) / (self.unchanged_time + CAUTION / self.frequency)
        return np.maximum(rate, LEAST_FALSE * self.frequency)

    @property
    def recall(self) -> Float64s:
        """The recall ρ of each source: the share of changes that it announces; 0 before any evidence."""
        true = self.received - self.false_rate * self.time
        return np.clip(true / (self.changes + CAUTION), 0.0, 0.99)

    def add(self, items: Ints, source: str = "") -> None:
        """Add notices of one source; ``items`` contains an item once for each of its notices."""
        if source not in self.sources:
            self.sources = [*self.sources, source]
            self.pending = np.pad(self.pending, ((0, 0), (0, 1)))
            for name in COUNTS:
                setattr(self, name, np.append(getattr(self, name), 0.0))
        column = self.pending[:, self.sources.index(source)]  # a view, so that ``pending`` itself changes
        np.add.at(column, items, np.float32(1.0))

    def is_relevant(self, items: Ints) -> bool:
        """Return whether any notice was ever followed by a poll, or is pending for one of these items."""
        return bool(self.sources) and bool(self.received.any() or self.pending[items].any())

    def evidence(self, items: Ints, rates: Float64s) -> NoticeEvidence:
        """Return what the pending notices say about these items at each of the ``rates``."""
        recall = self.recall
        each = np.log1p(recall[:, None] * rates / self.false_rate[:, None])
        some = float(-np.expm1(np.log1p(-recall).sum()))
        total = float(recall.sum())
        announced: Float64s = np.asarray(self.pending[items] @ each)
        return NoticeEvidence(announced, some, some / total if total > 0 else 1.0)

    def learn(self, items: Ints, elapsed: Float64s, changed: Bools, rate: Float64s) -> None:
        """Learn from polls of items; a poll that found a change has λτ/(1−e^{−λτ}) expected changes.
        λ is the item's ``rate``, τ the time ``elapsed`` since its previous poll."""
        if not self.sources:
            return
        pending, expected = self.pending[items], np.maximum(rate * elapsed, 1e-12)
        self.received += pending.sum(axis=0)
        self.unconfirmed += pending[~changed].sum(axis=0)
        self.time += float(elapsed.sum())
        self.unchanged_time += float(elapsed[~changed].sum())
        self.changes += float((expected / -np.expm1(-expected))[changed].sum())
        self.pending[items] = 0.0

    def grow(self, items: int) -> None:
        """Add new items without notices."""
        self.pending = np.pad(self.pending, ((0, items), (0, 0)))
