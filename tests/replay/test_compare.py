"""Policies compared: references reach what theory says, objectives and weights count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.slow_cases import with_slow_cases

from afresh.allocation.allocate import allocate
from afresh.model.freshness import freshness
from afresh.policy.policy import PolicyInput
from afresh.replay.change_history import UNSEEN_CHANGES, ChangeHistory
from afresh.replay.compare import captured, replay
from afresh.replay.policy_run import NoticeLog


def test_uniform_and_oracle_reach_what_theory_says() -> None:
    rng = np.random.default_rng(5)
    items, length = 300, 300.0
    rates = rng.gamma(0.6, 0.5, items) + 1e-3
    count = rng.poisson(rates * length)
    time = rng.uniform(0.0, length, count.sum())
    history = ChangeHistory.of(items, np.repeat(np.arange(items), count), time, 0.0, length)
    start = replace(PolicyInput.of(items, 0.2 * items), hour=None)
    uniform, oracle, adaptive, proportional = replay(
        history, ["uniform", "oracle", "adaptive", "proportional"], start, batch=20
    )
    assert uniform.after.scores.freshness == pytest.approx(float(np.mean(freshness(rates, 0.2))), abs=0.015)
    plan = allocate(history.rates(UNSEEN_CHANGES), 0.2 * items)
    assert oracle.after.scores.freshness == pytest.approx(plan.freshness, abs=0.02)
    assert (uniform.after.captured, oracle.after.captured) == (0.0, 1.0)
    assert adaptive.after.captured > 0.7
    assert proportional.after.captured < 0.0
    low, high = uniform.after.scores.low, uniform.after.scores.high
    assert low < uniform.after.scores.freshness < high < low + 0.1


@pytest.mark.parametrize("objective", with_slow_cases(["freshness", "age"], kept=1))
def test_the_yardstick_is_the_index_rule_one_poll_at_a_time(objective: str) -> None:
    rng = np.random.default_rng(9)
    rates = rng.gamma(0.5, 0.4, 80)
    count = rng.poisson(rates * 80.0)
    time = rng.uniform(0.0, 80.0, count.sum())
    history = ChangeHistory.of(80, np.repeat(np.arange(80), count), time, 0.0, 80.0)
    (oracle,) = replay(history, ["oracle"], replace(PolicyInput.of(80, 20.0), objective=objective))
    known, last, chosen = history.rates(UNSEEN_CHANGES), np.zeros(80), []
    for poll in range(1600):
        expected = known * (poll / 20.0 - last)
        if objective == "freshness":
            index = (1 - (1 + expected) * np.exp(-expected)) / known
        else:
            index = (expected**2 / 2 - 1 + (1 + expected) * np.exp(-expected)) / known**2
        chosen.append(int(index.argmax()))
        last[chosen[-1]] = (poll + 1) / 20.0
    # The very first decision, all copies being new, is a tie; rounding may swap a few others.
    assert np.mean(oracle.visits.item == np.array(chosen)) > 0.99


def test_progress_rises_to_the_end_over_all_runs() -> None:
    history = ChangeHistory.of(10, [0], [1.0], 0.0, 10.0)
    told: list[float] = []
    replay(history, ["nutch", "uniform"], PolicyInput.of(10, 2.0), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert sum(share <= 1 / 3 for share in told) == pytest.approx(len(told) / 3, abs=2)


def test_notices_are_worth_more_than_knowing_the_rates() -> None:
    rng = np.random.default_rng(6)
    item, time = rng.integers(0, 100, 2000), np.sort(rng.uniform(0.0, 200.0, 2000))
    history = ChangeHistory.of(100, item, time, 0.0, 200.0)
    told = rng.random(2000) < 0.8
    notices = NoticeLog(item[told], time[told])
    start = replace(PolicyInput.of(100, 15.0), hour=None)
    without, _ = replay(history, ["adaptive", "uniform"], start, batch=10)
    knowing, uniform = replay(history, ["adaptive", "uniform"], start, notices=notices, batch=10)
    assert knowing.after.scores.freshness > without.after.scores.freshness + 0.1
    assert uniform.after.captured == 0.0


@pytest.mark.parametrize("objective", with_slow_cases(["age", "missed", "lag"], kept=1))
def test_each_objective_beats_uniform_on_its_own_metric(objective: str) -> None:
    rng = np.random.default_rng(7)
    rates = rng.gamma(0.5, 0.4, 200) + 1e-3
    count = rng.poisson(rates * 150.0)
    time = rng.uniform(0.0, 150.0, count.sum())
    history = ChangeHistory.of(200, np.repeat(np.arange(200), count), time, 0.0, 150.0)
    start = replace(PolicyInput.of(200, 40.0), objective=objective, hour=None)
    adaptive, uniform = replay(history, ["adaptive", "uniform"], start, batch=10)
    own, other = (getattr(one.after.scores, objective) for one in (adaptive, uniform))
    assert own < other
    assert adaptive.after.captured > 0.4


def test_heavier_items_are_kept_fresher() -> None:
    rng = np.random.default_rng(8)
    item, time = rng.integers(0, 60, 3000), rng.uniform(0.0, 150.0, 3000)
    weight = np.where(np.arange(60) < 30, 10.0, 1.0)
    history = ChangeHistory.of(60, item, time, 0.0, 150.0, weights=weight)
    start = replace(PolicyInput.of(60, 12.0, weights=weight), hour=None)
    adaptive, uniform = replay(history, ["adaptive", "uniform"], start, batch=10)
    assert adaptive.after.scores.freshness > uniform.after.scores.freshness + 0.05
    polls = np.bincount(adaptive.visits.item, minlength=60)
    assert polls[:30].sum() > 2 * polls[30:].sum()


def test_captured_is_the_ratio_of_sums() -> None:
    assert captured([(0.9, 0.8, 1.0), (0.5, 0.5, 0.6)]) == pytest.approx(0.1 / 0.3)
    assert np.isnan(captured([(0.9, 0.9, 0.9)]))
