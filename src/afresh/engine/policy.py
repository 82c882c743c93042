"""What polling each item now is worth, and what a poll taught. The one place that knows the policy's name.

``adaptive``  the item worth most goes first, by the ``ranking``
``uniform``   the item polled longest ago goes first

What is said of the copies (freshness, age, rates) comes from the ranking's belief, whichever it is.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Literal, TypeAlias

import numpy as np

from afresh.engine.memory import Memory
from afresh.engine.ranking import Ranking
from afresh.rates.observations import Float64s
from afresh.values.stored import Ids

PolicyName: TypeAlias = Literal["adaptive", "uniform"]
_RECENT, _SELDOM = 200, 16  # picks whose median is the threshold, and how often it is taken anew
_NEW_FIRST = 1024
_OVERDUE, _ASKED = 1e300, 1e301
_LONGEST_S = 10 * 365.25 * 86400.0


class Policy:
    """Ranks the rows of a memory, and knows at which worth items are polled now."""

    def __init__(self, memory: Memory, ranking: Ranking, name: PolicyName) -> None:
        self.memory, self.ranking, self.name = memory, ranking, name
        self._worths: deque[float] = deque(maxlen=_RECENT)
        self._threshold, self._picks = 0.0, 0

    @property
    def objective(self) -> str:
        """What is minimised: staleness, age, …"""
        return self.ranking.objective

    def worth(self, now_s: float) -> Float64s:
        """What polling each row now gives per cost: −∞ where it may not be, +∞ where it must.

        Never polled before asked for before overdue before all others.
        """
        memory = self.memory
        tau = np.maximum(now_s - memory.polled_s, 0.0)
        new = np.isnan(tau)
        tau = np.where(new, 0.0, tau)
        barred = ~memory.active | memory.busy | (memory.hold_s > now_s) | (tau < memory.min_interval_s) & ~new
        # While there is enough that was never fetched, how the rest compares does not matter.
        unranked = self.name == "uniform" or np.count_nonzero(new & ~barred) >= _NEW_FIRST
        value = tau if unranked else self.ranking.values(now_s)
        value = np.where(tau >= memory.max_interval_s, _OVERDUE, value)
        value = np.where(memory.asked, _ASKED, value)
        value = np.where(new, np.inf, value)
        return np.where(barred, -np.inf, value)

    def picked(self, worth: float) -> None:
        """An item of this worth is being polled: what is polled now tells the price of a poll."""
        if 0 < worth < _OVERDUE:
            self._worths.append(worth)
            self._picks += 1
            if self._picks % _SELDOM == 1:
                self._threshold = float(np.median(self._worths))

    @property
    def threshold(self) -> float:
        """The worth at which items are polled, as of late; 0 before anything was."""
        return self._threshold

    def due_times(self, rows: Ids, now_s: Float64s | float) -> Float64s:
        """When rows polled then will be worth polling again, as things are; never before their holds."""
        memory = self.memory
        after_s = self._due_after_s(rows)
        after_s = np.minimum(np.maximum(after_s, memory.min_interval_s[rows]), memory.max_interval_s[rows])
        return np.asarray(np.maximum(now_s + after_s, memory.hold_s[rows]))

    def _due_after_s(self, rows: Ids) -> Float64s:
        if self.name == "uniform" or self.threshold <= 0:
            return np.full(rows.size, self.threshold)
        after_s = self.ranking.due_after_s(rows, self.threshold)
        worthless = (self.memory.weight[rows] == 0) | (after_s > _LONGEST_S)
        return np.where(worthless, np.inf, after_s)

    def due_s(self, row: int, now_s: float) -> float:
        """The same for one row."""
        return float(self.due_times(np.array([row]), now_s)[0])

    def fresh(self, now_s: float) -> Float64s:
        """The probability that each row's copy is right now; 0 where there is none."""
        return np.where(np.isnan(self.memory.polled_s), 0.0, self.ranking.fresh(now_s))

    def freshness(self, now_s: float) -> tuple[float, float]:
        """The model's estimate of Σw·fresh/Σw over active items now, and its standard error.

        Each copy is fresh or not, independently, with the probability that it survived.
        """
        alive = self.fresh(now_s)
        weight = np.where(self.memory.active, self.memory.weight, 0.0)
        total = float(weight.sum())
        if total <= 0:
            return 1.0, 0.0
        error = math.sqrt(float(np.sum(weight**2 * alive * (1.0 - alive)))) / total
        return float(np.sum(weight * alive)) / total, error

    def covered(self) -> float:
        """The share of the active items' weight that has a copy."""
        weight = np.where(self.memory.active, self.memory.weight, 0.0)
        total = float(weight.sum())
        return float(weight[~np.isnan(self.memory.polled_s)].sum()) / total if total > 0 else 0.0
