"""Calibration: what the belief expected against what polls found, for classes of items.

The model is wrong in many small ways: activity fades as a source matures, bursts follow a change, quiet items
stay quiet longer than a constant rate says. So items are sorted into classes by their mean rate and by how
many polls in a row found nothing; each class keeps changes found and changes expected, fading over a few
rounds of all items, and the ratio multiplies the rate in the index. The posterior itself is left alone: were
it corrected too, rate and correction could run away from each other.
"""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import Bools, Float64s, Ints

RATE_CLASSES, PER_DECADE = 13, 2.5
QUIET_RUNS = np.array([1, 3, 8])  # first polls of the second, third, fourth class of quiet
ROUNDS = 4.0  # of all items, in which what was counted fades by e
CAUTION = 20.0  # changes' worth of doubt in each class


class Calibration:
    """Ratios of found to expected changes.

    >>> calibration = Calibration(1, frequency=1.0)
    >>> calibration.classify(np.array([0]), np.array([1.0]), np.array([False]))
    >>> for _ in range(400):
    ...     calibration.count(np.array([0]), np.array([0.4]), np.array([0.2]), 1)
    >>> calibration.of(np.array([0])).round(1).tolist()
    [0.9]
    """

    def __init__(self, items: int, frequency: float) -> None:
        self.frequency = frequency
        self.found: Float64s = np.zeros((RATE_CLASSES, QUIET_RUNS.size + 1))
        self.expected: Float64s = np.zeros_like(self.found)
        self.ratio: Float64s = np.ones_like(self.found)
        self.rate_class: Ints = np.full(items, RATE_CLASSES // 2)
        self.quiet: Ints = np.ones(items, dtype=np.int64)

    def of(self, items: Ints) -> Float64s:
        """The factor on the rate of each item."""
        return self.ratio[self.rate_class[items], self._run(items)]

    def count(self, items: Ints, expected: Float64s, found: Float64s, alive: int) -> None:
        """Polls of items: changes expected by their own rates, and found that are ascribed to these."""
        fade = np.exp(-items.size / (ROUNDS * max(alive, 1)))
        cell = self.rate_class[items] * self.ratio.shape[1] + self._run(items)
        for table, value in ((self.found, found), (self.expected, expected)):
            table *= fade
            table += np.bincount(cell, value, table.size).reshape(table.shape)
        by_rate = (self.found.sum(axis=1) + CAUTION) / (self.expected.sum(axis=1) + CAUTION)
        self.ratio = (self.found + CAUTION * by_rate[:, None]) / (self.expected + CAUTION)

    def classify(self, items: Ints, rate: Float64s, changed: Bools) -> None:
        """Sort polled items into their classes: posterior mean rate, and polls since a change was found."""
        decades = np.log10(np.maximum(rate / self.frequency, 1e-12)) + RATE_CLASSES / (2.0 * PER_DECADE)
        self.rate_class[items] = np.clip(decades * PER_DECADE, 0, RATE_CLASSES - 1).astype(np.int64)
        self.quiet[items] = np.where(changed, 0, self.quiet[items] + 1)

    def grow(self, items: int) -> None:
        """New items, of the middle class."""
        self.rate_class = np.concatenate([self.rate_class, np.full(items, RATE_CLASSES // 2)])
        self.quiet = np.concatenate([self.quiet, np.ones(items, dtype=np.int64)])

    def _run(self, items: Ints) -> Ints:
        return np.searchsorted(QUIET_RUNS, self.quiet[items], side="right")
