"""Best intervals for every decay there is, named or not, against dense search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.slow_cases import with_slow_cases

from afresh.model.decay import DECAYS, Decay, Empirical, Exponential, Linear, Lomax, Weibull, decay_from
from afresh.model.decays.empirical import kaplan_meier
from afresh.money.best_interval import best_interval, find_optimum
from afresh.money.excess_income import SMOOTH_DECAYS, change_probability, excess_income, turning_term
from afresh.money.interval_optima import any_optimum
from afresh.money.terms import IncomeTerms

TIMES = settings(deadline=None)
SPECS = [name if kind.example is None else f"{name}:{kind.example}" for name, kind in DECAYS.items()]
SHAPED = [*SPECS, "weibull:0.3", "weibull:1", "weibull:2", "weibull:12", "lomax:0.5", "lomax:1", "lomax:4"]
SHAPED += ["gamma:0.3", "gamma:1", "gamma:9"]
CURVES = {
    "steps": Empirical([0.5, 1.0, 2.5, 4.0], [0.9, 0.5, 0.4, 0.0]),
    "steps to a plateau": Empirical([0.5, 1.0, 2.5, 4.0], [0.9, 0.5, 0.4, 0.3]),
    "lines": Empirical([0.5, 1.0, 2.5, 4.0], [0.9, 0.5, 0.4, 0.0], linear=True),
    "lines to a plateau": Empirical([0.5, 1.0, 2.5, 4.0], [0.9, 0.5, 0.4, 0.3], linear=True),
    "lifetimes": Empirical.from_lifetimes([0.3, 0.7, 1.0, 2.2, 5.0], [True, True, True, False, True]),
    "restarted lifetimes": Empirical(*kaplan_meier([0.3, 0.7, 1.0, 2.2, 5.0])),
}
amounts = st.floats(1e-2, 1e2)
extras = st.one_of(st.just(0.0), st.floats(1e-2, 1e1))
extremes = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)


def terms(gain: float, check: float, update: float = 0.0) -> IncomeTerms:
    return IncomeTerms(*(np.array([x]) for x in (gain, 0.0, check, update)))


def assert_highest(decay: Decay, some: IncomeTerms, scale: float = 1.0) -> None:
    """Nothing on a dense grid earns more; the income, freshness and threshold said fit the interval said."""
    gain, best = float(some.gain[0]), find_optimum(decay, some)
    grid = scale * np.geomspace(1e-6, 1e6, 6001)
    if isinstance(decay, Empirical):
        grid = np.concatenate([grid, np.asarray(decay.times)[1:] * (1 - 1e-14)])
    assert best.excess[0] >= max(0.0, float(excess_income(decay, some, grid).max())) - 1e-11 * gain
    if np.isfinite(best.interval[0]):
        assert excess_income(decay, some, best.interval)[0] == pytest.approx(best.excess[0], abs=1e-11 * gain)
        assert decay.integral(best.interval)[0] / best.interval[0] == pytest.approx(best.freshness[0])
    else:
        assert best.excess[0] == 0
        assert best.freshness[0] == decay.plateau()
    # beyond 1e300 an interval cannot be said: lomax with a ≤ 1 pays there for any gain
    if abs(gain - best.threshold[0]) > 1e-9 * gain and best.threshold[0] > 0:
        assert (best.excess[0] > 0) == (gain > best.threshold[0])


@pytest.mark.parametrize("spec", SHAPED)
@TIMES
@given(rate=amounts, gain=amounts, check=amounts, update=extras)
def test_no_interval_beats_it(spec: str, rate: float, gain: float, check: float, update: float) -> None:
    assert_highest(decay_from(spec, rate), terms(gain, check, update), 1 / rate)


@pytest.mark.parametrize("name", CURVES)
@TIMES
@given(gain=amounts, check=amounts, update=extras)
def test_no_interval_beats_it_on_a_curve(name: str, gain: float, check: float, update: float) -> None:
    assert_highest(CURVES[name], terms(gain, check, update))


@pytest.mark.parametrize(
    "spec", with_slow_cases([spec for spec in SHAPED if spec != "geometric"], kept=len(SPECS) - 1)
)
@settings(deadline=None, max_examples=settings().max_examples // 2)
@given(rate=amounts, gain=amounts, check=amounts, update=extras)
def test_search_by_income_alone_agrees(
    spec: str, rate: float, gain: float, check: float, update: float
) -> None:
    """A decay that money has no method for: the income is exact, the interval as far as it shows."""
    decay, some = decay_from(spec, rate), terms(gain, check, update)
    known, searched = find_optimum(decay, some), any_optimum(decay, some)
    assert searched.excess == pytest.approx(known.excess, abs=1e-12 * gain)
    if known.excess[0] > 1e-6 * gain:
        # near its top E falls by about (K/u)·(du/u)², which must exceed the rounding of G
        flat = np.sqrt(gain * known.interval[0] / check)
        assert searched.interval == pytest.approx(known.interval, rel=1e-7 * flat)
    assert searched.threshold == pytest.approx(known.threshold, rel=1e-6)


@pytest.mark.parametrize("spec", SHAPED)
@TIMES
@given(rate=extremes, gain=extremes, check=extremes, update=st.one_of(st.just(0.0), extremes))
def test_extreme_numbers_give_numbers(
    spec: str, rate: float, gain: float, check: float, update: float
) -> None:
    best = find_optimum(decay_from(spec, rate), terms(gain, check, update))
    for column in (best.interval, best.excess, best.freshness, best.threshold):
        assert not np.isnan(column).any()
    assert best.interval[0] > 0
    assert 0 <= best.excess[0] <= gain
    assert 0 <= best.freshness[0] <= 1


@TIMES
@given(rate=amounts, gain=amounts, check=amounts, update=extras)
def test_shape_one_and_large_shape_are_exponential(
    rate: float, gain: float, check: float, update: float
) -> None:
    some = terms(gain, check, update)
    plain, weibull = find_optimum(Exponential(rate), some), find_optimum(Weibull(rate, 1.0), some)
    lomax = find_optimum(Lomax(1e9, 1e9 / rate), some)
    assert weibull.excess == pytest.approx(plain.excess, abs=1e-12 * gain)
    assert lomax.excess == pytest.approx(plain.excess, abs=1e-7 * gain)
    if plain.excess[0] > 1e-6 * gain:
        assert weibull.interval == pytest.approx(plain.interval, rel=1e-9)
        assert lomax.interval == pytest.approx(plain.interval, rel=1e-2)


@pytest.mark.parametrize(
    "decay", [Exponential(0.7), Linear(0.7), Weibull(0.7, 0.6), Weibull(0.7, 3.0), Lomax(1.5, 2.0)]
)
def test_pieces_are_those_of_the_survival(decay: Decay) -> None:
    """1−z by its own formula, and 1−z+u·z' by a difference quotient."""
    assert isinstance(decay, SMOOTH_DECAYS)
    u = np.array([0.01, 0.3, 1.2, 1.4])
    step = 1e-6 * u
    assert change_probability(decay, u) == pytest.approx(1 - decay.survival(u), abs=1e-15)
    quotient = (decay.survival(u + step) - decay.survival(u - step)) / (2 * step)
    assert turning_term(decay, u) == pytest.approx(1 - decay.survival(u) + u * quotient, abs=1e-8)


@pytest.mark.parametrize("spec", ["exponential", "linear", "weibull:0.8", "weibull:1.7", "lomax:1.5"])
def test_tiny_ages_lose_no_digits(spec: str) -> None:
    """The same item in three units of time, at an age of 1e−7 and below."""
    rates = np.array([1e-20, 1e-10, 1.0])
    checks = 1e-14 / rates
    found = [
        find_optimum(decay_from(spec, rate), terms(1.0, check)).interval[0]
        for rate, check in zip(rates, checks, strict=True)
    ]
    assert found * rates == pytest.approx([found[2]] * 3, rel=1e-12)


def test_steps_are_taken_just_in_time() -> None:
    """With an update cost the supremum lies before the step; without one the step itself is as good."""
    sure_until_two = Empirical([2.0], [0.0])
    free = best_interval(0.0, 1.0, 1.0, decay=sure_until_two)
    dear = best_interval(0.0, 1.0, 1.0, update_cost=50.0, decay=sure_until_two)
    assert free.interval == 2.0
    assert dear.interval < 2.0
    assert dear.interval == pytest.approx(2.0)
    assert free.net_income == dear.net_income == pytest.approx(0.5)


def test_a_plateau_is_earned_without_refreshing() -> None:
    half_for_ever = Empirical([1.0], [0.5])
    futile = best_interval(0.0, 2.0, 3.0, stale_cost=1.0, decay=half_for_ever)
    assert futile.futile
    assert futile.net_income == pytest.approx(0.5 * 2 - 0.5 * 1)
    assert futile.freshness == 0.5
    # one refresh is right for half a unit of time more than none: 3 = (B+1)/2
    assert futile.break_even == pytest.approx(5.0)
    assert not best_interval(0.0, 5.1, 3.0, stale_cost=1.0, decay=half_for_ever).futile


def test_one_value_for_ever_is_never_refreshed() -> None:
    found = best_interval(0.0, 2.0, 1.0, decay=Empirical([0.0], [0.8]))
    assert (found.interval, found.futile, found.break_even) == (np.inf, True, np.inf)
    assert found.net_income == pytest.approx(1.6)


def test_heavy_tails_pay_some_day() -> None:
    rare = best_interval(1.0, 1.0, 1e3, decay="lomax:1")
    assert rare.futile
    assert rare.break_even == 0
    assert rare.reason.startswith("pays only at intervals beyond 1e300")
    assert best_interval(1.0, 1.0, 1e2, decay="lomax:1").interval == pytest.approx(np.exp(101), rel=0.01)


def test_shapes_of_every_kind_in_one_decay() -> None:
    """One Weibull object whose items fall due, age and barely decay: each as if alone."""
    shapes = np.array([0.02, 0.3, 1.0, 2.0, 100.0])
    mixed = IncomeTerms(*(np.full(5, x) for x in (3.0, 0.0, 0.5, 0.4)))
    together = find_optimum(Weibull(np.full(5, 0.7), shapes), mixed)
    alone = [find_optimum(Weibull(0.7, float(k)), terms(3.0, 0.5, 0.4)) for k in shapes]
    assert together.interval == pytest.approx([best.interval[0] for best in alone], rel=1e-9)
    assert together.threshold == pytest.approx([best.threshold[0] for best in alone], rel=1e-9)
