"""Decay functions from lifetimes: every class found again, censoring, the yardstick, and S against z."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from afresh.model.decay import DECAYS, Decay, Exponential, GammaDecay, Geometric, Linear, Lomax, Weibull
from afresh.money.best_interval import best_interval
from afresh.rates.decay_fit import DecayFit, fit_decays
from afresh.values.arrays import Floats
from afresh.values.errors import InputError

TRUE: dict[str, Decay] = {
    "exponential": Exponential(0.26),
    "linear": Linear(0.1),
    "weibull": Weibull(0.3, 2.0),
    "gamma": GammaDecay(0.3, 4.0),
    "lomax": Lomax(1.5, 2.0),
    "geometric": Geometric(0.3),
}


def lifetimes_of(
    decay: Decay, *, cut: float | None, size: int = 2000, seed: int = 17
) -> tuple[Floats, Floats]:
    """Lifetimes, cut off at random times of mean ``cut`` (on whole steps where the class has them)."""
    rng = np.random.default_rng(seed)
    lived = np.asarray(decay.sample(rng, size))
    if cut is None:
        return lived, np.ones(size)
    last = rng.exponential(cut, size)
    if isinstance(decay, Geometric):
        last = np.ceil(last)
    return np.minimum(lived, last), (lived <= last).astype(float)


def test_every_named_class_is_fitted_and_tried() -> None:
    assert set(TRUE) == set(DECAYS)
    assert {fit.name for fit in fit_decays([1.0, 2.0, 4.0]).fits} == set(DECAYS)


@pytest.mark.parametrize("samples", [3, pytest.param(15, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cut", [None, 5.0])
@pytest.mark.parametrize("name", list(TRUE))
def test_the_class_that_made_the_lifetimes_is_found_again(name: str, cut: float | None, samples: int) -> None:
    chosen = []
    for seed in range(samples):
        found = fit_decays(*lifetimes_of(TRUE[name], cut=cut, seed=seed))
        chosen.append(found.best.name)
        times = np.array([0.5, 2.0, 5.0])
        np.testing.assert_allclose(found.best.decay.survival(times), TRUE[name].survival(times), atol=0.05)
        assert found.best.relative_error < 0.2
        assert [fit.aic for fit in found.fits] == sorted(fit.aic for fit in found.fits)
    # AIC takes a wider class that holds the true one in about a sixth of the cases.
    assert chosen.count(name) >= (samples * 2 // 3 if name == "exponential" else samples)


def log_likelihood(decay: Decay, lived: Floats, ended: Floats) -> float:
    """By numeric differentiation of S: independent of the closed forms."""
    over, step = ended > 0, 1e-6
    lower, upper = lived[over] * (1 - step), lived[over] * (1 + step)
    density = (decay.survival(lower) - decay.survival(upper)) / (upper - lower)
    with np.errstate(divide="ignore"):
        return float(np.log(density).sum() + np.log(decay.survival(lived[~over])).sum())


@pytest.mark.parametrize("name", ["exponential", "weibull", "gamma", "lomax", "linear"])
def test_no_other_parameters_are_more_likely(name: str) -> None:
    lived, ended = lifetimes_of(Lomax(3.0, 4.0), cut=4.0, size=300)
    fit = next(fit for fit in fit_decays(lived, ended).fits if fit.name == name)
    if name != "linear":
        assert log_likelihood(fit.decay, lived, ended) == pytest.approx(fit.log_likelihood, abs=1e-4)
    _, _, shape = fit.spec.partition(":")

    def loss(change: Floats) -> float:
        rate = fit.rate * math.exp(change[0])
        spec = f"{name}:{float(shape) * math.exp(change[1])}" if shape else name
        moved = DecayFit(name, spec, rate, 1, 0.0, 0.0)
        return -log_likelihood(moved.decay, lived, ended)

    if name == "linear":  # an edge, not a stationary point: less is allowed, more is impossible
        assert loss(np.array([-0.01])) > loss(np.array([-1e-5]))
        assert loss(np.array([0.01])) == math.inf
    else:
        least = minimize(loss, np.zeros(2 if shape else 1), method="Nelder-Mead").fun
        assert -least <= fit.log_likelihood + 1e-3


def test_exponential_with_censoring_is_ends_over_time() -> None:
    found = fit_decays([1.0, 2.0, 3.0], [True, False, True])
    rate = next(fit.rate for fit in found.fits if fit.name == "exponential")
    assert rate == pytest.approx(2 / 6)
    assert (found.lifetimes, found.ended) == (3, 2)


def test_linear_with_a_censored_longest_lifetime_stays_possible() -> None:
    fit = next(fit for fit in fit_decays([1.0, 2.0, 8.0], [1, 1, 0]).fits if fit.name == "linear")
    # 2/λ = 8/(1−8λ)
    assert fit.rate == pytest.approx(1 / 12)
    assert math.isfinite(fit.aic)


def test_ignoring_the_lifetimes_not_ended_would_overstate_the_rate() -> None:
    lived, ended = lifetimes_of(Exponential(0.1), cut=5.0)
    with_all = fit_decays(lived, ended).fits
    only_ended = fit_decays(lived[ended > 0]).fits
    rate = {fit.name: fit.rate for fit in with_all}["exponential"]
    assert rate == pytest.approx(0.1, rel=0.1)
    assert {fit.name: fit.rate for fit in only_ended}["exponential"] > 2 * rate


@settings(deadline=None)
@given(
    lived=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=30),
    power=st.integers(-9, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_lifetimes_are_fitted_in_any_unit(lived: list[float], power: int, seed: int) -> None:
    ended = np.random.default_rng(seed).random(len(lived)) < 0.7
    ended[0] = True
    one, other = fit_decays(lived, ended), fit_decays(np.array(lived) * 10.0**power, ended)
    rates = {fit.name: fit.rate * 10.0**power for fit in other.fits}
    aic = {fit.name: fit.aic - 2 * math.log(10.0**power) * ended.sum() for fit in other.fits}
    in_steps = any(fit.name == "geometric" and not fit.why for fit in (*one.fits, *other.fits))
    for fit in one.fits:
        assert 0 < fit.rate < math.inf
        assert 0 <= fit.relative_error < math.inf
        if not in_steps and fit.name != "geometric":  # a step is one unit, and classes are judged by steps
            assert aic[fit.name] == pytest.approx(fit.aic, rel=1e-6, abs=1e-4)
        if fit.name in ("exponential", "linear"):
            assert rates[fit.name] == pytest.approx(fit.rate, rel=1e-6)


def test_geometric_needs_whole_steps_and_says_so() -> None:
    fits = {fit.name: fit for fit in fit_decays([1.0, 2.5, 3.0]).fits}
    assert fits["geometric"].aic == math.inf
    assert "whole steps" in fits["geometric"].why
    assert "first step" in {fit.name: fit for fit in fit_decays([1.0, 1.0]).fits}["geometric"].why


def test_the_sentence_names_class_rate_and_error() -> None:
    lived, ended = lifetimes_of(Weibull(0.3, 2.0), cut=None)
    words = fit_decays(lived, ended).sentence
    assert words.startswith("Of 2000 lifetimes 2000 ended; weibull of shape ")
    assert words.endswith("off the observed curve.")


def test_relative_error_of_a_curve_known_by_hand() -> None:
    # One lifetime of 1: observed is 1 on (0, 1); the exponential of rate 1 misses ∫(1−e^{−t}) = 1/e.
    fit = next(fit for fit in fit_decays([1.0]).fits if fit.name == "exponential")
    assert fit.relative_error == pytest.approx(1 / math.e, abs=1e-6)


@pytest.mark.parametrize("true", [Weibull(1.0, 2.0), Weibull(1.0, 0.7), Linear(0.5), Lomax(3.0, 2.0)])
def test_since_refresh_is_what_a_refresh_at_a_random_time_meets(true: Decay) -> None:
    """Lay lifetimes end to end, refresh at random times, and see how long the copy stays right."""
    rng = np.random.default_rng(9)
    lived = np.asarray(true.sample(rng, 60_000))
    ends = np.cumsum(lived)
    refresh = rng.random(40_000) * ends[-1]
    right = ends[np.minimum(np.searchsorted(ends, refresh, side="right"), ends.size - 1)] - refresh
    found = fit_decays(lived[:20_000])
    z = found.best.since_refresh()
    mean = float(true.total())
    for t in (0.3 * mean, mean, 2 * mean):
        assert float(z.survival(t)) == pytest.approx(float(np.mean(right > t)), abs=0.03)
        assert float(found.since_refresh.survival(t)) == pytest.approx(float(z.survival(t)), abs=0.03)


def test_using_the_lifetime_curve_for_a_copy_flatters_it() -> None:
    fit = DecayFit("weibull", "weibull:2.0", 1.0, 2, 0.0, 0.0)
    interval = 0.7
    assert float(fit.decay.integral(interval)) / interval == pytest.approx(0.855, abs=0.005)
    assert float(fit.since_refresh().integral(interval)) / interval == pytest.approx(0.63, abs=0.005)


def test_since_refresh_of_the_exponential_is_itself() -> None:
    fit = DecayFit("exponential", "exponential", 0.4, 1, 0.0, 0.0)
    times = np.linspace(0, 20, 50)
    np.testing.assert_array_equal(fit.since_refresh().survival(times), fit.decay.survival(times))


def test_since_refresh_of_an_endless_mean_is_refused() -> None:
    with pytest.raises(InputError, match="mean lifetime is infinite"):
        DecayFit("lomax", "lomax:0.9", 1.0, 2, 0.0, 0.0).since_refresh()


def test_fits_can_be_spent_by_money() -> None:
    lived, ended = lifetimes_of(Weibull(0.3, 2.0), cut=5.0)
    fit = fit_decays(lived, ended).best
    by_words = best_interval(fit.rate, 10.0, 1.0, decay=fit.spec)
    by_curve = best_interval(fit.rate, 10.0, 1.0, decay=fit.since_refresh())
    assert by_words.interval == pytest.approx(
        best_interval(0.3, 10.0, 1.0, decay="weibull:2").interval, rel=0.1
    )
    # A copy refreshed in mid-life goes wrong sooner, so it earns less and is refreshed more often.
    assert by_curve.net_income < by_words.net_income
    assert by_curve.interval < by_words.interval


@pytest.mark.parametrize(
    ("lived", "ended"),
    [([], []), ([1.0, 0.0], [1, 1]), ([1.0, 2.0], [0, 0]), ([1.0], [1, 1]), ([-1.0], [1]), ([math.inf], [1])],
)
def test_wrong_lifetimes_are_refused(lived: list[float], ended: list[int]) -> None:
    with pytest.raises(InputError):
        fit_decays(lived, ended)
