"""What polling each item now is worth, and what a poll taught. The one place that knows the policy's name.

``adaptive``  the item worth most goes first: by ``ranking`` while an engine runs, else by the Bayes index of
              each item's Gamma belief over its cost
``uniform``   the item polled longest ago goes first
"""

from __future__ import annotations

import math
from collections import deque
from typing import Literal, TypeAlias

import numpy as np

from afresh.engine import beliefs
from afresh.engine.beliefs import Floats, Prior
from afresh.engine.memory import Memory
from afresh.engine.ranking import Ranking
from afresh.model.curves import k_inverse

PolicyName: TypeAlias = Literal["adaptive", "uniform"]
Objective: TypeAlias = Literal["freshness", "age"]
_RECENT, _SELDOM = 200, 16  # picks whose median is the threshold, and how often it is taken anew
_NEW_FIRST = 1024


class Policy:
    """Ranks the rows of a memory, learns from its polls, and knows at which worth items are polled now."""

    def __init__(self, memory: Memory, prior: Prior, name: PolicyName, objective: Objective) -> None:
        self.memory, self.prior, self.name, self.objective = memory, prior, name, objective
        self._worths: deque[float] = deque(maxlen=_RECENT)
        self._threshold, self._picks = 0.0, 0
        self.ranking: Ranking | None = None

    def worth(self, now_s: float) -> Floats:
        """What polling each row now gives per cost: −∞ where it may not be, +∞ where it must.

        Never polled before noticed or overdue, before all others; a notice is a change that is as good
        as sure, worth the index's limit w/(cλ).
        """
        memory = self.memory
        tau = np.maximum(now_s - memory.polled_s, 0.0)
        new = np.isnan(tau)
        tau = np.where(new, 0.0, tau)
        barred = ~memory.active | memory.busy | (memory.hold_s > now_s) | (tau < memory.min_interval_s) & ~new
        # While there is enough that was never fetched, how the rest compares does not matter.
        ranked = np.count_nonzero(new & ~barred) < _NEW_FIRST
        value = tau if self.name == "uniform" else self._index(tau, now_s if ranked else None)
        value = np.where(tau >= memory.max_interval_s, 1e300, value)
        value = np.where(new, np.inf, value)
        return np.where(barred, -np.inf, value)

    def _index(self, tau: Floats, now_s: float | None) -> Floats:
        """The index of each row; ``now_s``: by the ranking, if there is one."""
        memory = self.memory
        shape, rate = self.posterior()
        raw = beliefs.gain if self.objective == "freshness" else beliefs.age_gain
        value = raw(shape, rate, tau) * memory.weight / memory.cost
        if self.ranking is not None and now_s is not None:
            value = self.ranking.values(now_s, value)
        sure = memory.weight * rate / (shape * memory.cost)
        return np.where(memory.noticed, np.maximum(value, sure), value)

    def posterior(self) -> tuple[Floats, Floats]:
        """(a, b) of every row."""
        memory = self.memory
        return beliefs.posterior(self.prior, memory.more[:, 0], memory.more[:, 1], memory.prior_rate_per_s)

    def picked(self, worth: float) -> None:
        """An item of this worth is being polled: what is polled now tells the price of a poll."""
        if 0 < worth < 1e300:
            self._worths.append(worth)
            self._picks += 1
            if self._picks % _SELDOM == 1:
                self._threshold = float(np.median(self._worths))

    @property
    def threshold(self) -> float:
        """The worth at which items are polled, as of late; 0 before anything was."""
        return self._threshold

    def observe(self, row: int, now_s: float, elapsed_s: float, changed: bool) -> None:
        """One poll that told something."""
        memory = self.memory
        more = beliefs.faded((float(memory.more[row, 0]), float(memory.more[row, 1])), elapsed_s)
        start = self._start(row)
        shape, rate = beliefs.learned(self.prior.shape + more[0], start + more[1], elapsed_s, changed)
        memory.more[row] = (shape - self.prior.shape, max(rate - start, -0.5 * start))
        if self.ranking is not None:
            self.ranking.polled(row, now_s, elapsed_s, changed)
        memory.polled_s[row] = now_s
        memory.noticed[row] = False
        memory.hold_s[row] = -np.inf

    def _start(self, row: int) -> float:
        known = float(self.memory.prior_rate_per_s[row])
        return self.prior.shape / known if known > 0 else self.prior.rate

    def due_s(self, row: int, now_s: float) -> float:
        """When a row polled now will be worth polling again, as things are; never before its hold."""
        memory = self.memory
        after_s = self._due_after_s(row)
        after_s = min(max(after_s, float(memory.min_interval_s[row])), float(memory.max_interval_s[row]))
        return max(now_s + after_s, float(memory.hold_s[row]))

    def _due_after_s(self, row: int) -> float:
        memory, threshold = self.memory, self.threshold
        if self.name == "uniform":
            return threshold
        if memory.weight[row] == 0:
            return math.inf
        shape = self.prior.shape + max(float(memory.more[row, 0]), 0.0)
        rate = self._start(row) + max(float(memory.more[row, 1]), -0.5 * self._start(row))
        level = threshold * float(memory.cost[row] / memory.weight[row])
        if self.objective == "age":
            # At its mean rate: age's index grows without bound, so what is not known matters less.
            return float(k_inverse(level * (shape / rate) ** 2)) * rate / shape
        return beliefs.due_after_s(shape, rate, level)

    def freshness(self, now_s: float) -> tuple[float, float]:
        """The model's estimate of Σw·fresh/Σw over active items now, and its standard error.

        Each copy is fresh with the probability that it survived, independently; no copy is not fresh.
        """
        memory = self.memory
        shape, rate = self.posterior()
        tau = np.maximum(now_s - memory.polled_s, 0.0)
        alive = beliefs.survival(shape, rate, np.where(np.isnan(tau), 0.0, tau))
        alive = np.where(np.isnan(tau), 0.0, alive)
        weight = np.where(memory.active, memory.weight, 0.0)
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
