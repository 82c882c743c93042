"""Belief, worth, calibration, notices, season, windows and caps, each against something exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.objectives.registry import objective_for
from afresh.model.curves import g
from afresh.model.index import poisson_due
from afresh.policy.belief import SILENT, Belief
from afresh.policy.calibration import Calibration
from afresh.policy.caps import Allowances
from afresh.policy.knowledge import Knowledge
from afresh.policy.notices import Notices
from afresh.policy.opening import OpenTime
from afresh.policy.policy import Start, best
from afresh.policy.roster import Roster
from afresh.policy.season_clock import SeasonClock
from afresh.policy.worth import Worth
from afresh.values.errors import InputError
from afresh.values.objective_names import OBJECTIVE_NAMES


def test_the_posterior_is_bayes() -> None:
    belief = Belief(1, 1.0)
    belief.horizon = np.inf
    rng = np.random.default_rng(1)
    log_posterior = np.zeros(belief.rates.size)
    one = np.array([0])
    for _ in range(60):
        elapsed, bit = rng.uniform(0.1, 5.0, 1), rng.random(1) < 0.4
        belief.learn(one, elapsed, bit, belief.expected(elapsed))
        expected = belief.rates * elapsed
        log_posterior += np.log(-np.expm1(-expected)) if bit[0] else -expected
    want = np.exp(log_posterior - log_posterior.max())
    np.testing.assert_allclose(belief.of(one)[0], want / want.sum(), atol=2e-5)


def test_one_silence_does_not_make_a_busy_item_slow() -> None:
    """However long: found changed thirty times running, then once not, it is not starved."""
    known = Knowledge(Start.of(1, 1.0))
    one = np.zeros(1, dtype=np.int64)
    for day in range(3, 93, 3):
        known.learn(one, np.array([float(day)]), np.array([True]))
    before = known.rates()[0]
    known.learn(one, np.array([400.0]), np.array([False]))
    assert known.rates()[0] > 0.2 * before
    telling = known.belief.telling(np.array([1e-9, 1.0, 1e9]))
    assert np.all(telling <= np.log(1.0 / SILENT) * (1 + 1e-12))
    np.testing.assert_allclose(telling[0], (1.0 - SILENT) * 1e-9 * known.belief.rates, rtol=1e-6)


def test_the_prior_is_learned_and_serves_new_items() -> None:
    rng = np.random.default_rng(2)
    truth = rng.choice([0.02, 2.0], 600, p=[0.7, 0.3])
    belief, every = Belief(600, 1.0), np.arange(600)
    for _ in range(40):
        elapsed = np.full(600, 1.0)
        belief.learn(every, elapsed, rng.random(600) < -np.expm1(-truth), belief.expected(elapsed))
    belief.refit(np.ones(600, dtype=bool))
    low = belief.prior[belief.rates < 0.2].sum()
    assert 0.6 < low < 0.8
    belief.grow(1)
    np.testing.assert_allclose(belief.of(np.array([600]))[0], belief.prior, atol=1e-7)


@pytest.mark.parametrize("objective", OBJECTIVE_NAMES)
@given(st.floats(1e-6, 1e3))
@settings(max_examples=30, deadline=None)
def test_worth_is_the_marginal_of_allocation(objective: str, expected: float) -> None:
    worth = Worth(objective, np.array([1.0]))
    want = objective_for(objective, "fixed").marginal(np.array([[expected]]))
    np.testing.assert_allclose(worth.gain(np.array([[expected]])), want, rtol=3e-7)


def test_due_times_are_where_the_index_crosses() -> None:
    rates = np.exp2(np.arange(-10, 6) / 1.0)
    worth = Worth("freshness", rates)
    certain = np.eye(rates.size, dtype=np.float32)
    level = np.full(rates.size, 0.3)
    due, want = worth.due(certain, level), poisson_due(rates, 0.3)
    np.testing.assert_array_equal(np.isinf(due), np.isinf(want))
    seen = np.isfinite(want)
    np.testing.assert_allclose(due[seen], want[seen], rtol=0.12)
    assert np.all(g(rates[seen] * due[seen]) / rates[seen] > 0.25)


def test_calibration_follows_what_polls_find_by_class() -> None:
    calibration = Calibration(20, 1.0)
    busy, idle = np.arange(10), np.arange(10, 20)
    for _ in range(300):
        calibration.classify(busy, np.full(10, 3.0), np.ones(10, dtype=bool))
        calibration.classify(idle, np.full(10, 0.01), np.zeros(10, dtype=bool))
        calibration.count(np.arange(20), np.full(20, 0.5), np.repeat([0.75, 0.25], 10), 20)
    assert calibration.of(busy)[0] == pytest.approx(1.36, abs=0.08)  # 1.5 but for the doubt
    assert calibration.of(idle)[0] == pytest.approx(0.64, abs=0.08)


def test_recall_and_false_rate_are_learned() -> None:
    rng = np.random.default_rng(3)
    notices, items = Notices(500, 1.0), np.arange(500)
    for _ in range(40):
        changes = rng.poisson(0.3, 500)
        number = rng.binomial(changes, 0.8) + rng.poisson(0.03, 500)
        notices.hear(np.repeat(items, number))
        notices.learn(items, np.ones(500), changes > 0, np.full(500, 0.3))
    assert notices.recall[0] == pytest.approx(0.8, abs=0.05)
    assert notices.false_rate[0] == pytest.approx(0.03, rel=0.15)
    told = notices.told(items[:1], np.array([0.3]))
    assert told.hints[0, 0] == 0.0
    assert told.recall == pytest.approx(notices.recall[0])
    assert told.once == pytest.approx(1.0)


def test_sources_of_notices_are_told_apart() -> None:
    """A good source, one that invents, and one that came late: each gets its own recall and false rate."""
    rng = np.random.default_rng(7)
    notices, items = Notices(500, 1.0), np.arange(500)
    for turn in range(60):
        changes = rng.poisson(0.3, 500)
        notices.hear(np.repeat(items, rng.binomial(changes, 0.9)), "good")
        notices.hear(np.repeat(items, rng.poisson(0.3, 500)), "invents")
        if turn >= 30:
            notices.hear(np.repeat(items, rng.binomial(changes, 0.5)), "late")
        notices.learn(items, np.ones(500), changes > 0, np.full(500, 0.3))
    assert notices.sources == ["good", "invents", "late"]
    np.testing.assert_allclose(notices.recall, [0.9, 0.0, 0.5], atol=0.06)
    np.testing.assert_allclose(notices.false_rate, [0.0, 0.3, 0.0], atol=0.03)
    notices.hear(np.array([3, 3]), "invents")
    assert notices.told(np.array([3]), np.array([0.3])).hints[0, 0] < 0.1
    notices.hear(np.array([3]), "good")
    told = notices.told(np.array([3]), np.array([0.3]))
    assert told.hints[0, 0] > 2.0
    assert told.recall == pytest.approx(0.95, abs=0.04)
    assert told.once == pytest.approx(told.recall / 1.4, rel=0.1)


def test_a_season_is_learned_and_its_absence_too() -> None:
    rng = np.random.default_rng(4)
    daily, flat = SeasonClock(1.0), SeasonClock(1.0)
    last = np.zeros(200)
    for hour in np.arange(3.0, 2000.0, 3.0):
        items = rng.choice(200, 20, replace=False)
        begin, now = last[items], np.full(20, hour)
        day = np.arange(int(begin.min()), int(hour))
        noon = (day % 24 >= 10) & (day % 24 < 14)
        inside = day[:, None] >= begin
        daily.record(
            items, now, now - begin, rng.random(20) < -np.expm1(-0.05 * (noon[:, None] & inside).sum(0))
        )
        flat.record(items, now, now - begin, rng.random(20) < -np.expm1(-0.008 * (now - begin)))
        last[items] = hour
    for clock in (daily, flat):
        clock.refit(np.full(200, 0.008))
    assert flat.season is not None
    assert daily.season is not None
    assert not flat.season.is_supported
    assert daily.season.is_supported
    quarter = daily.read(np.array([168.0 + 10, 168.0 + 14]))
    assert quarter[1] - quarter[0] > 7.0


def test_open_time_runs_only_while_open() -> None:
    opening = OpenTime.of([0.0, 10.0], [2.0, 13.0])
    assert opening.total == 5.0
    np.testing.assert_allclose(opening.moment([0.0, 1.5, 2.0, 4.9]), [0.0, 1.5, 10.0, 12.9])
    assert opening.moment([5.0])[0] == np.inf
    for elapsed in np.linspace(0.0, 4.99, 50):
        assert opening.elapsed(float(opening.moment(elapsed))) == pytest.approx(elapsed)
    with pytest.raises(InputError, match="follow each other"):
        OpenTime.of([0.0, 1.0], [2.0, 3.0])


def test_allowances_never_hoard() -> None:
    caps = Allowances.of(np.zeros(5, dtype=np.int64), np.array([1.0]), np.ones(5), 0.0)
    five = np.arange(5)
    assert caps.allowed(five, 0.0).tolist() == [True, False, False, False, False]
    caps.spend(five[:1])
    assert caps.allowed(five, 100.0).sum() == 5  # a batch for a long time
    assert caps.allowed(five, 100.0).sum() == 5  # asked again at once, it is still there
    assert caps.allowed(five, 100.5).sum() == 1  # unspent, it is gone


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 45))
@settings(max_examples=100, deadline=None)
def test_best_is_a_stable_sort(values: list[int], k: int) -> None:
    value = np.array(values, dtype=float)
    want = sorted(range(len(values)), key=lambda place: (-values[place], place))[:k]
    assert best(value, min(k, value.size)).tolist() == want


def test_other_costs_are_counted_and_other_weights_need_not_be() -> None:
    roster = Roster(Start.of(4, 2.0))
    roster.remove([3])
    roster.reweigh([0, 1], [5.0, 0.0], [1.0, 1.0])
    assert roster.weight.tolist() == [5.0, 0.0, 1.0, 1.0]
    assert (roster.number, roster.cost_of_all) == (3, 3.0)
    roster.reweigh([1, 3], 1.0, [4.0, 9.0])
    assert (roster.number, roster.cost_of_all, roster.mean_frequency) == (3, 6.0, 2.0 / 6.0)
