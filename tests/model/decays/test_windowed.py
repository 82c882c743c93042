"""Poisson changes under windows: exact against a fine grid of hours, and against polls in a replay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.allocation.budget_curve import budget_for
from afresh.allocation.gains import DecayAge, DecayFreshness
from afresh.model.decay import Exponential
from afresh.model.decays.windowed import OpenHours, Windowed
from afresh.policy.policy import OpenTime, PolicyInput
from afresh.policy.ranking_policy import UniformPolicy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import run_policy
from afresh.values.arrays import Float64s
from afresh.values.errors import InfeasibleError, InputError

OPENS, CLOSES, PERIOD = np.array([1.0, 10.0, 30.0]), np.array([4.0, 12.0, 31.0]), 48.0
HOURS = OpenHours.of(OPENS, CLOSES, PERIOD)
NIGHTS = OpenHours.of([0.0], [8.0], 24.0)


def real_gaps(apart: float, hours: int = 20_000) -> Float64s:
    """The real times between refreshes that are so far apart in open time, one for each open hour."""
    before = np.concatenate([[0.0], np.cumsum(CLOSES - OPENS)])
    begin = (np.arange(hours) + 0.5) / hours * before[-1]

    def real(elapsed: Float64s) -> Float64s:
        rounds, rest = np.divmod(elapsed, before[-1])
        at = np.minimum(np.searchsorted(before[1:], rest, side="right"), OPENS.size - 1)
        return np.asarray(rounds * PERIOD + OPENS[at] + rest - before[at])

    return real(begin + apart) - real(begin)


@pytest.mark.parametrize("mean", [0.3, 5.0, 20.0, 48.0, 130.0])
@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_right_time_and_age_are_those_of_refreshes_in_the_open_hours(rate: float, mean: float) -> None:
    gaps = real_gaps(mean * HOURS.open_time / PERIOD)
    assert gaps.mean() == pytest.approx(mean, rel=1e-3)
    poisson, decay = Exponential(rate), Windowed(rate, HOURS)
    assert decay.integral(mean) == pytest.approx(poisson.integral(gaps).mean(), rel=1e-3)
    age = float(decay.loss(mean) - decay.age_gain(mean) / mean)
    ages = gaps**2 / 2 - gaps / rate + poisson.integral(gaps) / rate
    assert age == pytest.approx(ages.mean() / gaps.mean(), rel=1e-3)


@given(st.floats(1e-3, 10.0), st.floats(0.01, 300.0))
def test_the_derivative_of_the_integral_is_the_survival(rate: float, mean: float) -> None:
    decay, step = Windowed(rate, HOURS), 1e-6 * mean
    ends = decay.integral(np.array([mean, mean + step]))
    survival = decay.survival(np.array([mean, mean + step]))
    slope = float(ends[1] - ends[0]) / step
    assert survival[1] - 1e-6 <= slope <= survival[0] + 1e-6


@given(st.floats(1e-4, 50.0))
def test_survival_falls_and_loss_grows(rate: float) -> None:
    decay, times = Windowed(rate, HOURS), np.linspace(0.0, 400.0, 500)
    assert np.all(np.diff(decay.survival(times)) <= 1e-12)
    assert np.all(np.diff(decay.loss(times)) >= -1e-9)
    assert decay.survival(np.inf) == 0.0
    assert decay.gain(np.inf) == pytest.approx(1 / rate)


def test_windows_that_are_always_open_change_nothing() -> None:
    always, rates = OpenHours.of([0.0], [24.0], 24.0), np.array([0.0, 0.1, 3.0])
    for name in ("survival", "integral", "gain", "loss", "age_gain"):
        for mean in (0.01, 7.0, 40.0, np.inf):
            found = getattr(Windowed(rates, always), name)(mean)
            assert found == pytest.approx(getattr(Exponential(rates), name)(mean), rel=1e-7, abs=1e-12), name


def test_equal_windows_every_day_have_the_period_of_a_day() -> None:
    days = np.arange(7.0) * 24
    found = OpenHours.of(days, days + 8, 168.0)
    assert (found.period, found.ends.tolist(), found.closed.tolist()) == (24.0, [8.0], [16.0])
    with pytest.raises(InputError, match="must close after they open"):
        OpenHours.of([0.0, 5.0], [6.0, 7.0], 24.0)


def test_the_freshness_of_uniform_refreshing_is_that_of_a_replay() -> None:
    """Sixty pages for eighty days, polled by a policy that may poll at night only."""
    rng, pages, days, rate = np.random.default_rng(2), 60, 80, 0.05
    length = 24.0 * days
    times = [np.sort(rng.uniform(0, length, rng.poisson(rate * length))) for _ in range(pages)]
    item = np.repeat(np.arange(pages), [one.size for one in times])
    history = ChangeHistory.of(pages, item, np.concatenate(times), 0.0, length)
    starts = np.arange(days) * 24.0
    budget = 5.0
    visits = run_policy(
        history,
        UniformPolicy(PolicyInput.of(pages, budget)),
        budget,
        open_time=OpenTime.of(starts, starts + 8.0),
    )
    fresh = []
    for page, changes in enumerate(times):
        polls = np.append(visits.time[visits.item == page], length)
        first = np.append(changes, np.inf)[np.searchsorted(changes, polls[:-1])]
        fresh.append(np.minimum(first, polls[1:]) - polls[:-1])
    begin = float(np.mean([visits.time[visits.item == page][0] for page in range(pages)]))
    measured = sum(one.sum() for one in fresh) / (pages * (length - begin))
    rates = np.full(pages, rate)
    plan = allocate(rates, budget, policy="uniform", decay=Windowed(rates, NIGHTS))
    usual = allocate(rates, budget, policy="uniform")
    assert measured == pytest.approx(plan.freshness, abs=0.01)
    assert abs(usual.freshness - plan.freshness) > 0.03, "otherwise this would show nothing"


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_no_item_of_the_plan_would_gain_from_another_frequency(objective: str) -> None:
    """Exact gains just below and above each frequency enclose the multiplier, as at an optimum."""
    rates = np.geomspace(1e-3, 2.0, 40)
    decay = Windowed(rates, HOURS)
    gains = (DecayFreshness if objective == "freshness" else DecayAge)(decay, rates.size)
    plan = allocate(rates, 3.0, decay=decay, objective=objective)
    frequency = np.asarray(plan.frequency, dtype=np.float64)
    kept = frequency > 0
    assert plan.spend == pytest.approx(3.0)
    assert kept.sum() > 30
    assert np.all(gains.marginal(1.005 * frequency)[kept] <= 1.02 * plan.multiplier)
    assert np.all(gains.marginal(0.995 * frequency)[kept] >= 0.98 * plan.multiplier)
    assert np.all(gains.max_marginal()[~kept] <= 1.001 * plan.multiplier)
    reached = plan.freshness if objective == "freshness" else -plan.age
    usual = np.asarray(allocate(rates, 3.0, objective=objective).frequency, dtype=np.float64)
    assert reached > float(gains.value(usual).mean()) + 1e-3, "a plan that ignores the windows is worse"


def test_no_budget_exceeds_the_limit_of_the_windows() -> None:
    rates = np.array([0.05, 0.1])
    decay = Windowed(rates, NIGHTS)
    most = float(decay.survival(0.0).mean())
    assert allocate(rates, 1e6, decay=decay).freshness == pytest.approx(most, abs=1e-3)
    assert allocate(rates, budget_for(rates, 0.7, decay=decay), decay=decay).freshness == pytest.approx(0.7)
    with pytest.raises(InfeasibleError, match="only the limit"):
        budget_for(rates, most + 0.01, decay=decay)


def test_samples_follow_the_survival() -> None:
    decay = Windowed(0.1, HOURS)
    drawn = decay.sample(np.random.default_rng(1), 2000)
    for time in (0.5, 5.0, 30.0):
        assert float(np.mean(drawn > time)) == pytest.approx(float(decay.survival(time)), abs=0.05)
