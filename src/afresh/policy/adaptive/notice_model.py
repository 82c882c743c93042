"""Notices: hints from outside that an item changed, of unknown recall and with false ones among them.

Changes of rate λ are each announced by a source with probability ρ, its false notices come at a rate ν. Given
n notices in a time τ, P(fresh) = e^{−E}, E = (1−ρ)λτ + n·ln(1+ρλ/ν). Both are learned from the polls, for
each source of notices (a sitemap, a feed, a webhook): in an interval without a change all notices are false,
which gives ν; what is left over the changes expected gives ρ. Sources are taken to speak independently:
unannounced is what all leave out, Π(1−ρ), and what they say adds up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Bools, Float64s, Ints

CAUTION = 3.0  # changes' worth of doubt
LEAST_FALSE = 1e-6  # of the mean frequency: notices are never beyond doubt


@dataclass(frozen=True, slots=True)
class NoticeEvidence:
    """What was said of items since their last polls: Σ n·ln(1+ρλ/ν) at each rate, a row per item.

    ``recall`` is the share of changes that any source announces. One change announced twice is one change:
    as evidence about the rate the hints count for ``once``, recall over the sum of the sources' recalls.
    """

    hints: Float64s
    recall: float
    once: float


class NoticeModel:
    """Counts of notices since each item's last poll, and what those of each source have been worth.

    ``COUNTS`` name what is counted of each source since it was first heard: its notices, those before polls
    that found nothing, the time between polls, of all and of those, and the changes expected.

    >>> notices = NoticeModel(2, frequency=1.0)
    >>> for _ in range(50):                        # the feed tells of item 0, which changes; the map of 1
    ...     notices.hear(np.array([0]), "feed")
    ...     notices.hear(np.array([1]), "map")
    ...     notices.learn(np.array([0, 1]), np.ones(2), np.array([True, False]), np.array([1.0, 0.01]))
    >>> notices.sources, notices.recall.round(1).tolist(), notices.false_rate.round(1).tolist()
    (['feed', 'map'], [0.6, 0.0], [0.0, 0.9])
    """

    COUNTS = ("heard", "quiet_heard", "time", "quiet_time", "changes")
    heard: Float64s
    quiet_heard: Float64s
    time: Float64s
    quiet_time: Float64s
    changes: Float64s

    def __init__(self, items: int, frequency: float) -> None:
        self.frequency = frequency
        self.sources: list[str] = []
        self.number: npt.NDArray[np.float32] = np.zeros((items, 0), dtype=np.float32)
        for name in self.COUNTS:
            setattr(self, name, np.zeros(0))

    @property
    def false_rate(self) -> Float64s:
        """ν of each source, for one item."""
        prior = CAUTION * LEAST_FALSE * self.frequency
        rate = (self.quiet_heard + prior) / (self.quiet_time + CAUTION / self.frequency)
        return np.maximum(rate, LEAST_FALSE * self.frequency)

    @property
    def recall(self) -> Float64s:
        """ρ of each source; 0 until one of its notices has been followed by a poll."""
        told = self.heard - self.false_rate * self.time
        return np.clip(told / (self.changes + CAUTION), 0.0, 0.99)

    def hear(self, items: Ints, source: str = "") -> None:
        """Notices of a source, one entry each."""
        if source not in self.sources:
            self._know(source)
        column = self.number[:, self.sources.index(source)]  # a view
        np.add.at(column, items, np.float32(1.0))

    def matter(self, items: Ints) -> bool:
        """Whether any notice has ever been worth anything, or waits for one of these items."""
        return bool(self.heard.any()) or bool(self.number[items].any())

    def told(self, items: Ints, rates: Float64s) -> NoticeEvidence:
        """What is known of these items from hearsay."""
        recall = self.recall
        each = np.log1p(recall[:, None] * rates / self.false_rate[:, None])
        some = float(-np.expm1(np.log1p(-recall).sum()))
        total = float(recall.sum())
        return NoticeEvidence(np.asarray(self.number[items] @ each), some, some / total if total > 0 else 1.0)

    def learn(self, items: Ints, elapsed: Float64s, changed: Bools, rate: Float64s) -> None:
        """Polls of items; where a change was found, λτ/(1−e^{−λτ}) are expected."""
        if not self.sources:
            return
        number, expected = self.number[items], np.maximum(rate * elapsed, 1e-12)
        self.heard += number.sum(axis=0)
        self.quiet_heard += number[~changed].sum(axis=0)
        self.time += float(elapsed.sum())
        self.quiet_time += float(elapsed[~changed].sum())
        self.changes += float((expected / -np.expm1(-expected))[changed].sum())
        self.number[items] = 0.0

    def grow(self, items: int) -> None:
        """New items without notices."""
        self.number = np.pad(self.number, ((0, items), (0, 0)))

    def _know(self, source: str) -> None:
        self.sources = [*self.sources, source]
        self.number = np.pad(self.number, ((0, 0), (0, 1)))
        for name in self.COUNTS:
            setattr(self, name, np.append(getattr(self, name), 0.0))
