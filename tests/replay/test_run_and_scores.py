"""Runs and scores against slow, obvious simulations; the yardsticks against theory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.model.freshness import freshness
from afresh.policy.policy import Policy, PolicyInput
from afresh.policy.registry import make_policy
from afresh.policy.rivals.uniform_policy import UniformPolicy
from afresh.replay.change_history import UNSEEN_CHANGES, ChangeHistory, HistoryPoller
from afresh.replay.compare import captured, replay
from afresh.replay.run import ORACLE_BATCHES, NoticeLog, batch_for, run_policy
from afresh.replay.scores import item_scores, seen_at
from afresh.values.errors import InputError

ITEMS, END = 3, 12
EVENTS = st.lists(st.tuples(st.integers(0, ITEMS - 1), st.integers(1, END)), max_size=20, unique=True)


def columns(events: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([e[0] for e in events], dtype=np.int64), np.array([e[1] for e in events], dtype=float)


def value_at(item: int, moment: int) -> float:
    """Some value, up and down."""
    return float((7 * moment + 3 * item) % 11)


@given(EVENTS, EVENTS, st.integers(0, END - 1))
@settings(max_examples=200, deadline=None)
def test_scores_are_what_stepping_through_time_finds(
    changes: list[tuple[int, int]], visits: list[tuple[int, int]], begin: int
) -> None:
    values = [value_at(item, moment) for item, moment in changes]
    history = ChangeHistory.of(
        ITEMS,
        *columns(changes),
        0.0,
        float(END),
        values=values,
        initial=[value_at(i, 0) for i in range(ITEMS)],
    )
    found = item_scores(history, *columns(visits), float(begin))
    want = {name: np.zeros(ITEMS) for name in found}
    for item in range(ITEMS):
        lacking: list[int] = []
        value = copy = value_at(item, 0)
        for moment in range(END):
            if (item, moment) in changes:
                lacking.append(moment)
                value = value_at(item, moment)
            if (item, moment) in visits:
                lacking, copy = [], value
            if moment < begin:
                continue
            # Over (moment, moment + 1]: constant counts, ages that grow by one.
            want["freshness"][item] += not lacking
            want["age"][item] += moment + 0.5 - lacking[0] if lacking else 0.0
            want["missed"][item] += len(lacking)
            want["lag"][item] += sum(moment + 0.5 - t for t in lacking)
            want["harmonic"][item] += sum(1 / (n + 1) for n in range(len(lacking)))
            want["error"][item] += abs(value - copy)
    for name, means in found.items():
        np.testing.assert_allclose(means, want[name] / (END - begin), atol=1e-12, err_msg=name)


@given(EVENTS, EVENTS)
@settings(max_examples=100, deadline=None)
def test_bits_and_seen_times(changes: list[tuple[int, int]], visits: list[tuple[int, int]]) -> None:
    history = ChangeHistory.of(ITEMS, *columns(changes), 0.0, float(END))
    watch = HistoryPoller(history)
    last = dict.fromkeys(range(ITEMS), 0)
    for item, moment in sorted(visits, key=lambda visit: visit[1]):
        bit = watch.poll(np.array([item]), np.array([float(moment)]))
        assert bit[0] == any(i == item and last[item] < t <= moment for i, t in changes)
        last[item] = moment
    seen = seen_at(history, *columns(visits))
    for change_item, change_time, when in zip(history.change_item, history.time, seen, strict=True):
        later = [t for i, t in visits if i == change_item and t >= change_time]
        assert when == min(later, default=END)


def test_uniform_and_oracle_reach_what_theory_says() -> None:
    rng = np.random.default_rng(5)
    rates = rng.gamma(0.6, 0.5, 600) + 1e-3
    length = 300.0
    count = rng.poisson(rates * length)
    time = rng.uniform(0.0, length, count.sum())
    history = ChangeHistory.of(600, np.repeat(np.arange(600), count), time, 0.0, length)
    start = replace(PolicyInput.of(600, 120.0), hour=None)
    uniform, oracle, adaptive, proportional = replay(
        history, ["uniform", "oracle", "adaptive", "proportional"], start, batch=40
    )
    assert uniform.after.scores.freshness == pytest.approx(float(np.mean(freshness(rates, 0.2))), abs=0.015)
    plan = allocate(history.rates(UNSEEN_CHANGES), 120.0)
    assert oracle.after.scores.freshness == pytest.approx(plan.freshness, abs=0.02)
    assert (uniform.after.captured, oracle.after.captured) == (0.0, 1.0)
    assert adaptive.after.captured > 0.7
    assert proportional.after.captured < 0.0
    low, high = uniform.after.scores.low, uniform.after.scores.high
    assert low < uniform.after.scores.freshness < high < low + 0.1


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_the_yardstick_is_the_index_rule_one_poll_at_a_time(objective: str) -> None:
    rng = np.random.default_rng(9)
    rates = rng.gamma(0.5, 0.4, 80)
    count = rng.poisson(rates * 200.0)
    time = rng.uniform(0.0, 200.0, count.sum())
    history = ChangeHistory.of(80, np.repeat(np.arange(80), count), time, 0.0, 200.0)
    (oracle,) = replay(history, ["oracle"], replace(PolicyInput.of(80, 20.0), objective=objective))
    known, last, chosen = history.rates(UNSEEN_CHANGES), np.zeros(80), []
    for poll in range(4000):
        expected = known * (poll / 20.0 - last)
        if objective == "freshness":
            index = (1 - (1 + expected) * np.exp(-expected)) / known
        else:
            index = (expected**2 / 2 - 1 + (1 + expected) * np.exp(-expected)) / known**2
        chosen.append(int(index.argmax()))
        last[chosen[-1]] = (poll + 1) / 20.0
    # The very first decision, all copies being new, is a tie; rounding may swap a few others.
    assert np.mean(oracle.visits.item == np.array(chosen)) > 0.99


def test_few_items_are_decided_on_one_by_one_and_many_in_small_parts() -> None:
    assert [batch_for(items, ORACLE_BATCHES) for items in (1, 1999, 4087, 10**6)] == [1, 1, 4, 333]
    assert [batch_for(items) for items in (1, 599, 4087, 10**6)] == [1, 1, 13, 333]


def test_an_hour_is_that_of_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float | None] = []

    def note(name: str, start: PolicyInput) -> Policy:
        seen.append(start.hour)
        return make_policy(name, start)

    monkeypatch.setattr("afresh.replay.compare.make_policy", note)
    for unit in ("s", "h", "d"):
        history = ChangeHistory.of(3, [0, 1], [1.0, 2.0], 0.0, 5.0, unit=unit)
        replay(history, ["uniform"], PolicyInput.of(3, 1.0))
    assert seen[::2] == [3600.0, 1.0, 1 / 24]
    replay(history, ["uniform"], replace(PolicyInput.of(3, 1.0), hour=None))
    assert seen[-1] is None


def test_progress_rises_to_the_end_over_all_runs() -> None:
    history = ChangeHistory.of(10, [0], [1.0], 0.0, 10.0)
    told: list[float] = []
    replay(history, ["nutch", "uniform"], PolicyInput.of(10, 2.0), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert sum(share <= 1 / 3 for share in told) == pytest.approx(len(told) / 3, abs=2)


def test_notices_are_worth_more_than_knowing_the_rates() -> None:
    rng = np.random.default_rng(6)
    item, time = rng.integers(0, 100, 4000), np.sort(rng.uniform(0.0, 400.0, 4000))
    history = ChangeHistory.of(100, item, time, 0.0, 400.0)
    told = rng.random(4000) < 0.8
    hints = NoticeLog(item[told], time[told])
    start = replace(PolicyInput.of(100, 15.0), hour=None)
    without, _ = replay(history, ["adaptive", "uniform"], start, batch=10)
    knowing, uniform = replay(history, ["adaptive", "uniform"], start, hints=hints, batch=10)
    assert knowing.after.scores.freshness > without.after.scores.freshness + 0.1
    assert uniform.after.captured == 0.0


@pytest.mark.parametrize("objective", ["age", "missed", "lag"])
def test_each_objective_beats_uniform_on_its_own_metric(objective: str) -> None:
    rng = np.random.default_rng(7)
    rates = rng.gamma(0.5, 0.4, 200) + 1e-3
    count = rng.poisson(rates * 300.0)
    time = rng.uniform(0.0, 300.0, count.sum())
    history = ChangeHistory.of(200, np.repeat(np.arange(200), count), time, 0.0, 300.0)
    start = replace(PolicyInput.of(200, 40.0), objective=objective, hour=None)
    adaptive, uniform = replay(history, ["adaptive", "uniform"], start, batch=10)
    own, other = (getattr(one.after.scores, objective) for one in (adaptive, uniform))
    assert own < other
    assert adaptive.after.captured > 0.4


def test_heavier_items_are_kept_fresher() -> None:
    rng = np.random.default_rng(8)
    item, time = rng.integers(0, 60, 6000), rng.uniform(0.0, 300.0, 6000)
    weight = np.where(np.arange(60) < 30, 10.0, 1.0)
    history = ChangeHistory.of(60, item, time, 0.0, 300.0, weights=weight)
    start = replace(PolicyInput.of(60, 12.0, weights=weight), hour=None)
    adaptive, uniform = replay(history, ["adaptive", "uniform"], start, batch=10)
    assert adaptive.after.scores.freshness > uniform.after.scores.freshness + 0.05
    polls = np.bincount(adaptive.visits.item, minlength=60)
    assert polls[:30].sum() > 2 * polls[30:].sum()


def test_a_batch_is_spread_over_its_time() -> None:
    history = ChangeHistory.of(10, [0], [1.0], 0.0, 10.0)
    visits = run_policy(history, UniformPolicy(PolicyInput.of(10, 2.0)), 2.0, batch=5)
    np.testing.assert_allclose(visits.time, np.arange(1, 21) / 2.0)


def test_captured_is_the_ratio_of_sums() -> None:
    assert captured([(0.9, 0.8, 1.0), (0.5, 0.5, 0.6)]) == pytest.approx(0.1 / 0.3)
    assert np.isnan(captured([(0.9, 0.9, 0.9)]))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((0, [], [], 0.0, 1.0), "needs items"),
        ((2, [0], [0.5], 1.0, 1.0), "window is empty"),
        ((2, [0], [7.0], 0.0, 1.0), "outside the window"),
        ((2, [0, 1], [0.5], 0.0, 1.0), "as many items as times"),
        ((2, [5], [0.5], 0.0, 1.0), "numbered from 0 to 1"),
    ],
)
def test_what_is_no_history_is_refused(arguments: tuple[object, ...], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        ChangeHistory.of(*arguments)  # type: ignore[arg-type]
