"""What a policy saves: by which factor the budget of uniform polling must be larger to be as fresh.

The factor x solves F_uniform(x·B) = F(B), where F(B) is the freshness of the policy at its budget B. The
freshness of uniform polling is its mean over several random orders of the items, on the same history. It is
computed without a run (``uniform_polling``), so it costs the same for any number of polls. Budgets are tried
on a grid with steps of 1.1 %, and x is interpolated between two of them. For objectives other than freshness,
their own measure takes the place of F.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import ReplayResult
from afresh.replay.scores import scores_when_seen
from afresh.replay.uniform_polling import UniformPolling
from afresh.values.arrays import Float64s

STEPS = 64  # budgets of the grid per factor of 2
OCTAVES = 20  # budgets are tried from 2^−OCTAVES to 2^OCTAVES times the policy's budget
MOST_ORDERS = 8
CHANGES_AT_ONCE = 1_600_000  # limit of changes × orders: in histories with many changes orders matter less


class UniformCurve:
    """The score of uniform polling as a function of the budget, as the mean over random orders of the items.
    There is one score for each of ``begins``: over the period from this time to the end of the history.
    ``start`` holds the objective, the costs, the allowed time, the caps, and the budget of factor 1.

    >>> rng = np.random.default_rng(1)
    >>> history = ChangeHistory.of(20, rng.integers(0, 20, 400), rng.uniform(0, 100, 400), 0.0, 100.0)
    >>> curve = UniformCurve(history, PolicyInput.of(20, 10.0), (0.0,), seed=1)
    >>> (twice,) = curve.scores(STEPS)
    >>> round(curve.factor(twice, 0), 3), curve.factor(1.0, 0)          # never stale: at no budget
    (2.0, nan)
    """

    def __init__(
        self, history: ChangeHistory, start: PolicyInput, begins: Sequence[float], *, seed: int
    ) -> None:
        self.history, self.start, self.begins = history, start, tuple(begins)
        self.rises = 1.0 if start.objective == "freshness" else -1.0
        rng = np.random.default_rng(seed)
        count = max(min(MOST_ORDERS, CHANGES_AT_ONCE // max(history.time.size, 1)), 1)
        orders = [rng.permutation(history.items) for _ in range(count)]
        self.polling = [UniformPolling(history, start, order) for order in orders]
        self.known: dict[int, tuple[float, ...]] = {}

    def scores(self, step: int) -> tuple[float, ...]:
        """Return the scores, one for each of ``begins``, at the budget of ``start`` · 2^(step/STEPS)."""
        if step not in self.known:
            budget = self.start.budget * 2.0 ** (step / STEPS)
            rows = [self._scores(one.seen(budget)) for one in self.polling]
            self.known[step] = tuple(np.mean(rows, axis=0).tolist())
        return self.known[step]

    def _scores(self, seen: Float64s) -> list[float]:
        weight = self.history.item_weight
        each = (scores_when_seen(self.history, seen, begin)[self.start.objective] for begin in self.begins)
        return [float(weight @ one / weight.sum()) for one in each]

    def factor(self, score: float, period: int) -> float:
        """Return the factor of the budget at which uniform polling has this score, or NaN if there is none.
        ``period`` is the position in ``begins`` of the period that the score is about."""
        below, edge = self._is_below(score, period, 0), 0
        while self._is_below(score, period, edge) == below:
            if abs(edge) >= OCTAVES * STEPS:
                return math.nan
            edge += STEPS if below else -STEPS
        low, high = (edge - STEPS, edge) if below else (edge, edge + STEPS)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_below(score, period, middle) else (low, middle)
        before, after = self.scores(low)[period], self.scores(high)[period]
        part = (score - before) / (after - before) if after != before else 0.0
        return float(2.0 ** ((low + part) / STEPS))

    def _is_below(self, score: float, period: int, step: int) -> bool:
        return self.rises * (self.scores(step)[period] - score) < 0


def add_uniform_needs(
    history: ChangeHistory,
    results: Sequence[ReplayResult],
    start: PolicyInput,
    *,
    warm_up: float,
    seed: int = 1,
    progress: Callable[[float], None] | None = None,
) -> list[ReplayResult]:
    """Return the same results (all of one budget) with ``uniform_needs`` filled in for both periods.
    For uniform polling itself it is 1, although the order of the items in its run was better or worse than
    the mean over random orders."""
    begins = (history.start, history.start + warm_up * history.length)
    curve = UniformCurve(history, start, begins, seed=seed)
    found = []
    for done, result in enumerate(results):
        periods = []
        for at, part in enumerate((result.whole, result.after)):
            score = getattr(part.scores, start.objective)
            needs = 1.0 if result.policy == "uniform" else curve.factor(score, at)
            periods.append(replace(part, uniform_needs=needs))
        found.append(replace(result, whole=periods[0], after=periods[1]))
        if progress is not None:
            progress((done + 1) / len(results))
    return found
