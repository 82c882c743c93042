"""Notices: hints from outside that an item changed. Some changes are not announced, some notices are false.

A source of notices (a sitemap, a feed, a webhook) announces each change of rate λ with probability ρ, its
recall; its false notices come at a rate ν. Given n notices in a time τ, P(fresh) = e^{−E} with E = (1−ρ)λτ +
n·ln(1+ρλ/ν). Both ρ and ν are learned from the polls, for each source: in an interval without a change all
notices are false, which gives ν; the surplus over the changes expected gives ρ. Sources are assumed to be
independent: a change is unannounced if all leave it out, Π(1−ρ), and what they say adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Bools, Float64s, Ints

CAUTION = 3.0  # pseudo-changes that pull the recall towards 0
COUNTS = ("received", "unconfirmed", "time", "unchanged_time", "changes")
LEAST_FALSE = 1e-6  # of the mean frequency: notices are never beyond doubt


@dataclass(frozen=True, slots=True)
class NoticeEvidence:
    """What the notices since their last polls say about some items.

    ``announced`` is Σ n·ln(1+ρλ/ν) at each rate, a row per item. ``recall`` is the share of changes that at
    least one source announces. A change announced twice is one change, so as evidence about the rate the
    notices count only for ``evidence_share``: recall over the sum of the sources' recalls.
    """

    announced: Float64s
    recall: float
    evidence_share: float


class NoticeModel:
    """Notices since each item's last poll, and what was counted for each source since it was first heard.

    ``received``        its notices, of all polls that followed
    ``unconfirmed``     those of them before polls that found no change
    ``time``            time between polls, summed over all polls
    ``unchanged_time``  the same of the polls that found no change
    ``changes``         changes expected, given which polls found one

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
        """ν of each source, for one item."""
        prior = CAUTION * LEAST_FALSE * self.frequency
        rate = (self.unconfirmed + prior) / (self.unchanged_time + CAUTION / self.frequency)
        return np.maximum(rate, LEAST_FALSE * self.frequency)

    @property
    def recall(self) -> Float64s:
        """ρ of each source; 0 until one of its notices has been followed by a poll."""
        true = self.received - self.false_rate * self.time
        return np.clip(true / (self.changes + CAUTION), 0.0, 0.99)

    def add(self, items: Ints, source: str = "") -> None:
        """Take notices of one source; an item appears once for each of its notices."""
        if source not in self.sources:
            self.sources = [*self.sources, source]
            self.pending = np.pad(self.pending, ((0, 0), (0, 1)))
            for name in COUNTS:
                setattr(self, name, np.append(getattr(self, name), 0.0))
        column = self.pending[:, self.sources.index(source)]  # a view
        np.add.at(column, items, np.float32(1.0))

    def is_relevant(self, items: Ints) -> bool:
        """Whether any notice was ever followed by a poll, or is pending for one of these items."""
        return bool(self.sources) and bool(self.received.any() or self.pending[items].any())

    def evidence(self, items: Ints, rates: Float64s) -> NoticeEvidence:
        """What the notices say about these items at each of the ``rates``."""
        recall = self.recall
        each = np.log1p(recall[:, None] * rates / self.false_rate[:, None])
        some = float(-np.expm1(np.log1p(-recall).sum()))
        total = float(recall.sum())
        announced: Float64s = np.asarray(self.pending[items] @ each)
        return NoticeEvidence(announced, some, some / total if total > 0 else 1.0)

    def learn(self, items: Ints, elapsed: Float64s, changed: Bools, rate: Float64s) -> None:
        """Learn from polls of items; where a change was found, λτ/(1−e^{−λτ}) changes are expected."""
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
