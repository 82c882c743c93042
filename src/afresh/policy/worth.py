"""What polling an item now is worth: the index (docs/science.md), averaged over the belief about its rate.

For one rate λ and E changes expected since the last poll it is w·marginal(E)/(c·λ^p): for freshness
w·(1−(1+E)e^{−E})/(cλ), for age w·k(E)/(cλ²), and so on as in ``allocation.objectives``. An item falls due
when its worth reaches the level that the budget can pay.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives.registry import objective_for
from afresh.policy.belief import Rows
from afresh.values.arrays import Float64s, Floats

MIDDLE = 9  # from the top of a ladder, about the mean frequency
OCTAVES = 22  # of elapsed time over which due times are looked for
HALVINGS = 12  # of the logarithm of a time
SMALL = 0.05  # below it the series is right to 4e−9, and above it single precision to 5e−5


class Worth:
    """The index for one objective.

    >>> worth = Worth("freshness", np.array([1.0]))
    >>> worth.gain(np.array([[1.0]])).round(4).tolist()
    [[0.2642]]
    """

    def __init__(self, objective: str, rates: Float64s) -> None:
        self.name = objective
        self.objective = objective_for(objective, "fixed")
        self.times: Float64s = np.exp2(np.arange(OCTAVES) - OCTAVES / 2) / rates[-MIDDLE:][0]
        power = self.objective.power
        self.table = (self.gain(rates[:, None] * self.times) / rates[:, None] ** power).astype(np.float32)

    def gain(self, expected: Float64s) -> Float64s:
        """marginal(E)."""
        if self.name != "freshness":
            return self.objective.marginal(expected)
        # The same as curves.g, without its passes: this is the innermost loop of a policy.
        gain = np.exp(-expected)
        gain *= -1.0 - expected
        gain += 1.0
        small = np.flatnonzero(expected < SMALL)
        if small.size:
            few = expected.ravel()[small]
            gain.ravel()[small] = (
                few * few * (0.5 - few * (1 / 3 - few * (1 / 8 - few * (1 / 30 - few / 144))))
            )
        return gain

    def of(self, belief: Floats, expected: Float64s, rate: Float64s) -> Float64s:
        """Σ p·marginal(E)/rate^p of each row; ``rate`` is that at which E grows on average.

        One E may serve all rows.
        """
        gain = self.gain(expected)
        gain /= rate if self.objective.power == 1 else rate**self.objective.power
        return np.asarray(np.einsum("ij,ij->i", belief, gain))

    def due(self, rows: Rows, level: Float64s) -> Float64s:
        """Time after a poll at which the index of each row reaches ``level``, by its rate alone.

        On a ladder of times the index of all rows is one matrix product; between two of them ln V is taken
        as linear in ln τ. Infinite where it stays below.
        """
        limits = np.finfo(np.float32)
        goal = np.clip(level, limits.tiny, limits.max).astype(np.float32)
        value = rows @ self.table
        below = np.add.reduce((value < goal[:, None]).view(np.int8), axis=1, dtype=np.int8)
        place = np.clip(below, 1, OCTAVES - 1).astype(np.int64)
        flat = place + np.arange(0, value.size, OCTAVES)
        left = np.maximum(value.ravel()[flat - 1], limits.tiny)
        right = np.maximum(value.ravel()[flat], limits.tiny)
        rise = np.maximum(np.log(right / left), np.float32(1e-7))
        share = np.clip(np.log(goal / left) / rise, 0.0, 1.0)
        return np.where(below == OCTAVES, np.inf, self.times[place - 1] * np.exp2(share))

    def due_exactly(self, belief: Floats, rates: Float64s, level: Float64s, longest: float) -> Float64s:
        """The same where each row has its own ``rates``, to a hundredth; infinite beyond ``longest``.

        Infinite also where the median rate is too high for it: the rest of doubt that a rate might be low
        makes every item worth a poll in the end.

        >>> worth = Worth("freshness", np.array([1.0]))
        >>> worth.due_exactly(np.ones((2, 1)), np.ones((2, 1)), np.array([0.2642, 1.1]), 1e9).round(1)
        array([ 1., inf])
        """
        low, high = np.full(level.size, 1e-3 * self.times[0]), np.full(level.size, longest)
        median = np.argmax(np.cumsum(belief, axis=1) >= 0.5 * belief.sum(axis=1, keepdims=True), axis=1)
        typical = np.take_along_axis(rates, median[:, None], axis=1)[:, 0]
        never = self.of(belief, rates * high[:, None], rates) < level
        never |= self.objective.top / typical**self.objective.power < level
        for _ in range(HALVINGS):
            middle = np.sqrt(low * high)
            reached = self.of(belief, rates * middle[:, None], rates) >= level
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.where(never, np.inf, high)
