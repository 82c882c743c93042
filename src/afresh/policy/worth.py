"""What polling an item now is worth: the index of SCIENCE averaged over the belief about its rate.

For one rate λ and E changes expected since the last poll it is w·marginal(E)/(c·λ^p): for freshness
w·(1−(1+E)e^{−E})/(cλ), for age w·k(E)/(cλ²), and so on as in ``allocation.objectives``. An item falls due
when its worth reaches the level that the budget can pay.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives import objective_for
from afresh.policy.belief import Belief, Rows
from afresh.rates.observations import Float64s

OCTAVES = 22  # of elapsed time over which due times are looked for
ROWS = 65_536  # items keyed at a time
SMALL = 0.02


class Worth:
    """The index for one objective.

    >>> worth = Worth("freshness")
    >>> worth.gain(np.array([[1.0]])).round(4).tolist()
    [[0.2642]]
    """

    def __init__(self, objective: str) -> None:
        self.name = objective
        self.objective = objective_for(objective, "fixed")

    def gain(self, expected: Float64s) -> Float64s:
        """marginal(E)."""
        if self.name != "freshness":
            return self.objective.marginal(expected)
        # The same as curves.g, without its passes: this is the innermost loop of a policy.
        small = expected * expected * (0.5 - expected * (1 / 3 - expected * (1 / 8 - expected * (1 / 30))))
        large = 1.0 - (1.0 + expected) * np.exp(-expected)
        return np.where(expected < SMALL, small, large)

    def of(self, belief: Float64s, expected: Float64s, rate: Float64s) -> Float64s:
        """Σ p·marginal(E)/rate^p of each row; ``rate`` is that at which E grows on average."""
        gain = self.gain(expected)
        gain /= rate if self.objective.power == 1 else rate**self.objective.power
        return np.asarray(np.einsum("ij,ij->i", belief, gain))

    def due(self, belief: Belief, rows: Rows, level: Float64s) -> Float64s:
        """Time after a poll at which the index of each row reaches ``level``, by its rate alone.

        On a ladder of times the index of all rows is one matrix product; between two of them ln V is taken
        as linear in ln τ. Infinite where it stays below.
        """
        times = 2.0 ** np.arange(-OCTAVES // 2, OCTAVES // 2) / belief.rates[belief.rates.size // 2]
        table = self.gain(belief.rates[:, None] * times) / belief.rates[:, None] ** self.objective.power
        log_times, columns = np.log(times), table.astype(np.float32)
        due = np.empty(len(rows))
        for begin in range(0, len(rows), ROWS):
            part = slice(begin, begin + ROWS)
            value = rows[part] @ columns
            goal = np.maximum(level[part], np.finfo(np.float32).tiny)
            due[part] = _crossing(value, log_times, np.log(goal))
        return due


def _crossing(value: Rows, log_times: Float64s, log_goal: Float64s) -> Float64s:
    below = value < np.exp(log_goal)[:, None].astype(np.float32)
    place = np.clip(below.sum(axis=1), 1, value.shape[1] - 1)
    rows = np.arange(len(value))
    tiny = np.finfo(np.float32).tiny
    left = np.log(np.maximum(value[rows, place - 1], tiny).astype(np.float64))
    right = np.log(np.maximum(value[rows, place], tiny).astype(np.float64))
    share = np.clip((log_goal - left) / np.maximum(right - left, 1e-9), 0.0, 1.0)
    step = log_times[1] - log_times[0]
    time = np.exp(log_times[place - 1] + share * step)
    return np.where(below[:, -1], np.inf, time)
