"""Calibration: corrects the rates where polls find more or fewer changes than expected.

The model is wrong in many small ways: activity fades as a source matures, bursts follow a change, quiet items
stay quiet longer than a constant rate predicts. So items are sorted into classes by their mean rate and by
how many consecutive polls found no change. Each class counts the changes found and the changes expected. Both
counts fade over a few rounds of all items, and their ratio multiplies the rate in the poll value. The
posterior itself is not corrected, because rate and correction could then drive each other to extremes.
"""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import Bools, Float64s, Ints

RATE_CLASSES, CLASSES_PER_DECADE = 13, 2.5
RUN_CLASSES = np.array([1, 3, 8])  # consecutive polls without a change at which classes 2, 3 and 4 begin
ROUNDS = 4.0  # rounds of all items after which counts have faded by a factor e
CAUTION = 20.0  # pseudo-changes in each class, which pull its ratio towards 1
# The class for each number of consecutive polls without a change; longer runs are in the last class.
_RUN_CLASS = np.searchsorted(RUN_CLASSES, np.arange(RUN_CLASSES[-1] + 1), side="right")


class Calibration:
    """The ratio of found to expected changes in each class of items.
    The tables have a row per class of rates and a column per class of consecutive polls without a change.
    ``frequency`` is the mean number of polls of an item per unit of time.

    >>> calibration = Calibration(1, frequency=1.0)
    >>> calibration.classify(np.array([0]), np.array([1.0]), np.array([False]))
    >>> for _ in range(400):
    ...     calibration.record(np.array([0]), np.array([0.4]), np.array([True]), np.array([0.2]), 1)
    >>> calibration.factors(np.array([0])).round(1).tolist()
    [0.9]
    """

    def __init__(self, items: int, frequency: float) -> None:
        self.frequency = frequency
        classes = RATE_CLASSES, RUN_CLASSES.size + 1
        # Three tables: found changes that are attributed to the items themselves, all found changes including
        # those attributed to shocks, and expected changes.
        self.counts: Float64s = np.zeros((3, *classes))
        self.ratios: Float64s = np.ones((2, *classes))
        self.rate_class: Ints = np.full(items, RATE_CLASSES // 2)
        self.unchanged_run: Ints = np.ones(items, dtype=np.int64)  # polls since a change was found

    # Views, and not attributes: a copy of this object would separate them from their tables.
    @property
    def found(self) -> Float64s:
        return np.asarray(self.counts[0])

    @property
    def all_found(self) -> Float64s:
        return np.asarray(self.counts[1])

    @property
    def expected(self) -> Float64s:
        return np.asarray(self.counts[2])

    @property
    def ratio(self) -> Float64s:
        return np.asarray(self.ratios[0])

    @property
    def all_ratio(self) -> Float64s:
        return np.asarray(self.ratios[1])

    def factors(self, items: Ints) -> Float64s:
        """Return the factor that corrects each item's own rate, if the shocks of its families are added."""
        return self.ratio.take(self._cells(items))

    def both_factors(self, items: Ints) -> Float64s:
        """Return two rows of factors: those of ``factors``, and those to use if shocks are ignored."""
        return np.asarray(self.ratios.reshape(2, -1)[:, self._cells(items)])

    def mean_factors(self, items: Ints, trust: float) -> Float64s:
        """Return the mean of ``both_factors``; shocks count with probability ``trust``."""
        mean = trust * self.ratio + (1.0 - trust) * self.all_ratio
        return np.asarray(mean.take(self._cells(items)))

    def record(
        self, items: Ints, expected: Float64s, changed: Bools, own_share: Float64s, alive: int
    ) -> None:
        """Count the changes found by polls and the changes that were ``expected`` by the items' own rates.
        ``own_share`` is the share of a found change that is attributed to the item and not to shocks."""
        fade = np.exp(-items.size / (ROUNDS * max(alive, 1)))
        cell, size = self._cells(items), self.ratio.size
        self.counts *= fade
        for table, value in zip(self.counts, (changed * own_share, changed, expected), strict=True):
            table += np.bincount(cell, value, size).reshape(table.shape)
        self.update()

    def update(self) -> None:
        """Compute the ratios from the counts."""
        found, expected = self.counts[:2], self.counts[2]
        by_rate = (found.sum(axis=2) + CAUTION) / (expected.sum(axis=1) + CAUTION)
        np.divide(found + CAUTION * by_rate[:, :, None], expected + CAUTION, out=self.ratios)

    def classify(self, items: Ints, rate: Float64s, changed: Bools) -> None:
        """Set the classes of polled items from the posterior mean ``rate`` and the results of the polls."""
        middle = RATE_CLASSES / (2.0 * CLASSES_PER_DECADE)
        decades = np.log10(np.maximum(rate / self.frequency, 1e-12)) + middle
        decades *= CLASSES_PER_DECADE
        self.rate_class[items] = np.minimum(np.maximum(decades, 0.0), RATE_CLASSES - 1)
        self.unchanged_run[items] = np.where(changed, 0, self.unchanged_run[items] + 1)

    def forget(self, items: Ints) -> None:
        """Put these items into the middle class of rates, like new items."""
        self.rate_class[items], self.unchanged_run[items] = RATE_CLASSES // 2, 1

    def grow(self, items: int) -> None:
        """Add new items, in the middle class of rates."""
        self.rate_class = np.concatenate([self.rate_class, np.full(items, RATE_CLASSES // 2)])
        self.unchanged_run = np.concatenate([self.unchanged_run, np.ones(items, dtype=np.int64)])

    def _cells(self, items: Ints) -> Ints:
        """Return the index of each item's class in the flattened tables."""
        run = np.minimum(self.unchanged_run[items], _RUN_CLASS.size - 1)
        return np.asarray(self.rate_class[items] * self.ratio.shape[1] + _RUN_CLASS[run])
