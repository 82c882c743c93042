"""How many times the requests uniform polling would need: what replaying uniform at that budget confirms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afresh.policy.policy import OpenTime, PolicyInput
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import replay
from afresh.replay.scores import scores_when_seen
from afresh.replay.uniform_needs import STEPS, UniformCurve, add_uniform_needs
from afresh.replay.uniform_polling import UniformPolling
from afresh.values.arrays import Float64s

LENGTH = 300.0


def a_history(items: int = 60) -> ChangeHistory:
    rng = np.random.default_rng(2)
    count = rng.poisson(rng.gamma(0.5, 0.4, items) * LENGTH)
    time = rng.uniform(0.0, LENGTH, count.sum())
    return ChangeHistory.of(items, np.repeat(np.arange(items), count), time, 0.0, LENGTH)


def polled(history: ChangeHistory, budget: float, begin: float, measure: str) -> float:
    """The mean of uniform polling over other random orders than those of the curve."""
    rng = np.random.default_rng(99)
    every = [UniformPolling(history, order=rng.permutation(history.items)) for _ in range(16)]
    each = [scores_when_seen(history, polling.seen(budget), begin)[measure] for polling in every]
    return float(np.mean(each))


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_uniform_with_so_many_requests_is_as_fresh(objective: str) -> None:
    # With so many items the luck of the curve's eight orders is less than 1 % of the requests.
    history, start = a_history(400), replace(PolicyInput.of(400, 80.0), objective=objective)
    results = replay(history, ["oracle", "proportional", "uniform"], start, batch=40)
    oracle, proportional, uniform = add_uniform_needs(history, results, start, warm_up=1 / 3)
    assert uniform.after.uniform_needs == uniform.whole.uniform_needs == 1.0
    assert proportional.after.uniform_needs < 1.0 < 1.1 < oracle.after.uniform_needs
    for result in (oracle, proportional):
        for part, begin in ((result.whole, 0.0), (result.after, LENGTH / 3)):
            budgets = [80.0 * part.uniform_needs * by for by in (0.99, 1.01)]
            low, high = sorted(polled(history, budget, begin, objective) for budget in budgets)
            assert low < getattr(part.scores, objective) < high


def test_every_budget_is_polled_once_for_all_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    history, start = a_history(), PolicyInput.of(60, 12.0)
    results = replay(history, ["oracle", "nutch", "uniform"], start, batch=10)
    asked: list[tuple[int, float]] = []

    def note(polling: UniformPolling, budget: float) -> Float64s:
        asked.append((id(polling), budget))
        return seen(polling, budget)

    seen = UniformPolling.seen
    monkeypatch.setattr(UniformPolling, "seen", note)
    told: list[float] = []
    add_uniform_needs(history, results, start, warm_up=1 / 3, progress=told.append)
    assert len(asked) == len(set(asked))
    assert told == [1 / 3, 2 / 3, 1.0]


def test_what_windows_keep_uniform_from_is_null() -> None:
    history = a_history()
    opens = np.arange(0.0, LENGTH, 50.0)
    start = replace(PolicyInput.of(60, 12.0), open_time=OpenTime.of(opens, opens + 5.0))
    curve = UniformCurve(history, start, (0.0,), seed=1)
    best = curve.scores(20 * STEPS)[0]
    assert best < 0.9
    assert np.isnan(curve.factor(best + 0.01, 0))
    assert curve.factor(curve.scores(2 * STEPS)[0], 0) == pytest.approx(4.0, rel=0.01)


def test_caps_are_kept_and_what_they_keep_uniform_from_is_null() -> None:
    history = a_history(10)
    group = np.where(np.arange(10) < 5, 0, 1)
    start = replace(PolicyInput.of(10, 0.5), cap_group=group, caps=np.array([0.1]))
    curve = UniformCurve(history, start, (0.0,), seed=1)
    free = UniformCurve(history, PolicyInput.of(10, 0.5), (0.0,), seed=1)
    assert curve.scores(STEPS)[0] < free.scores(STEPS)[0]
    assert np.isnan(curve.factor(free.scores(4 * STEPS)[0], 0))
