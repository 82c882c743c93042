"""What polling an item now is worth: the index of SCIENCE averaged over the belief about its rate.

For one rate λ and E changes expected since the last poll it is w·marginal(E)/(c·λ^p): for freshness
w·(1−(1+E)e^{−E})/(cλ), for age w·k(E)/(cλ²), and so on as in ``allocation.objectives``. An item falls due
when its worth reaches the level that the budget can pay.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives import objective_for
from afresh.policy.belief import Rows
from afresh.rates.observations import Float64s
from afresh.values.arrays import Floats

OCTAVES = 22  # of elapsed time over which due times are looked for
ROWS = 65_536  # items keyed at a time
SMALL = 1e-3  # below it the series of two terms is right to 1e−7


class Worth:
    """The index for one objective.

    >>> worth = Worth("freshness", np.array([1.0]))
    >>> worth.gain(np.array([[1.0]])).round(4).tolist()
    [[0.2642]]
    """

    def __init__(self, objective: str, rates: Float64s) -> None:
        self.name = objective
        self.objective = objective_for(objective, "fixed")
        self.times: Float64s = np.exp2(np.arange(OCTAVES) - OCTAVES / 2) / rates[rates.size // 2]
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
            gain.ravel()[small] = few * few * (0.5 - few / 3.0)
        return gain

    def of(self, belief: Floats, expected: Float64s, rate: Float64s) -> Float64s:
        """Σ p·marginal(E)/rate^p of each row; ``rate`` is that at which E grows on average."""
        gain = self.gain(expected)
        gain /= rate if self.objective.power == 1 else rate**self.objective.power
        return np.asarray(np.einsum("ij,ij->i", belief, gain))

    def due(self, rows: Rows, level: Float64s) -> Float64s:
        """Time after a poll at which the index of each row reaches ``level``, by its rate alone.

        On a ladder of times the index of all rows is one matrix product; between two of them ln V is taken
        as linear in ln τ. Infinite where it stays below.
        """
        due = np.empty(len(rows))
        for begin in range(0, len(rows), ROWS):
            part = slice(begin, begin + ROWS)
            goal = np.maximum(level[part], np.finfo(np.float32).tiny)
            due[part] = _crossing(rows[part] @ self.table, self.times, goal)
        return due


def _crossing(value: Rows, times: Float64s, goal: Float64s) -> Float64s:
    below = (value < np.minimum(goal, np.finfo(np.float32).max)[:, None].astype(np.float32)).sum(axis=1)
    place = np.clip(below, 1, value.shape[1] - 1)
    rows = np.arange(len(value))
    tiny = np.finfo(np.float32).tiny
    left = np.maximum(value[rows, place - 1], tiny).astype(np.float64)
    right = np.maximum(value[rows, place], tiny).astype(np.float64)
    rise = np.maximum(np.log(right / left), 1e-9)
    share = np.clip(np.log(goal / left) / rise, 0.0, 1.0)
    return np.where(below == value.shape[1], np.inf, times[place - 1] * np.exp2(share))
