"""Empirical Bayes: the fit against a general optimiser, groups, hierarchy, sampling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import gamma
from tests.rates.populations import draw_rates, poll

import afresh.rates.priors.gamma_prior as prior_module
from afresh.rates.likelihood import log_likelihood, rate_grid, scale_to_maximum
from afresh.rates.poll_table import PollTable, polls_from_intervals
from afresh.rates.priors.gamma_prior import GammaPrior, cell_masses, fit_gamma, weak_prior
from afresh.values.arrays import Float64s


@pytest.mark.parametrize("population", ["gamma 0.2", "gamma 0.5", "gamma 2", "lognormal"])
def test_the_fit_is_the_maximum_of_the_marginal_likelihood(population: str) -> None:
    rng = np.random.default_rng(0)
    polls = poll(draw_rates(population, 1500, rng), 3, 20, rng)
    rates = rate_grid(polls)
    likelihood = scale_to_maximum(log_likelihood(polls, rates))

    def loss(log_shape_and_mean: Float64s) -> float:
        shape, mean = np.exp(log_shape_and_mean)
        return -float(np.log(likelihood @ cell_masses(GammaPrior.of(shape, shape / mean), rates)[0]).sum())

    found = fit_gamma(polls)
    start = np.log([found.shape[0], found.mean()[0]])
    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6})
    assert loss(start) - best.fun < 0.5  # of a log-likelihood of thousands
    np.testing.assert_allclose(start, best.x, atol=0.15)


def exact_maximum(polls: PollTable) -> Float64s:
    """ln a and ln mean that maximise the marginal likelihood, by the polls themselves on a fine grid."""
    rates = np.exp(np.linspace(np.log(1e-3), np.log(20.0), 500))
    table = np.zeros((polls.items, rates.size))
    for column, rate in enumerate(rates):
        x = rate * polls.elapsed
        value = np.where(polls.changed, np.log(-np.expm1(-x)), -x)
        table[:, column] = np.bincount(polls.item, value, minlength=polls.items)
    likelihood = scale_to_maximum(table)

    def loss(at: Float64s) -> float:
        shape, mean = np.exp(at)
        return -float(np.log(likelihood @ (gamma.pdf(rates, shape, scale=mean / shape) * rates)).sum())

    best = minimize(loss, np.log([8.0, 0.4]), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-3})
    return np.asarray(best.x, dtype=np.float64)


@pytest.mark.parametrize("seed", [101, 103])
def test_nearly_equal_rates_are_fitted_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = np.exp(rng.normal(-1.0, 0.3, 2000))
    polls = poll(rates, 10, 10, rng, scale=4.0)
    one, wanted = fit_gamma(polls), exact_maximum(polls)
    two = fit_gamma(polls, (np.arange(2000) >= 1000).astype(np.int64))
    assert np.log(one.shape[0]) == pytest.approx(wanted[0], abs=0.15)
    assert np.log(one.mean()[0]) == pytest.approx(wanted[1], abs=0.02)
    assert np.all(np.abs(np.log(two.shape) - wanted[0]) < 0.5)  # half as many items each, held near the whole


def test_a_large_group_is_itself_and_a_small_one_leans_on_the_whole() -> None:
    rng = np.random.default_rng(1)
    groups = np.concatenate((np.zeros(1000), np.ones(1000), [2, 2])).astype(np.int64)
    rates = np.concatenate((rng.gamma(5.0, 0.01, 1000), rng.gamma(5.0, 0.4, 1000), [2.0, 2.0]))
    polls = poll(rates, 5, 5, rng)
    fitted = fit_gamma(polls, groups)
    whole = float(fit_gamma(polls).mean()[0])
    assert fitted.mean()[0] == pytest.approx(0.05, rel=0.15)
    assert fitted.mean()[1500] == pytest.approx(2.0, rel=0.15)
    assert fitted.shape[1500] > 2.0  # narrower than the whole
    assert 0.4 * whole < fitted.mean()[-1] < 2.0 * whole
    assert fitted.mean()[-1] == fitted.mean()[-2]


def test_the_shape_can_be_capped() -> None:
    rng = np.random.default_rng(2)
    polls = poll(rng.gamma(8.0, 0.1, 1000), 10, 10, rng)
    assert fit_gamma(polls).shape[0] > 4


@pytest.mark.parametrize("changed", [True, False])
def test_polls_that_all_agree_still_give_a_proper_prior(changed: bool) -> None:
    item = np.repeat(np.arange(30), 5)
    fitted = fit_gamma(polls_from_intervals(np.ones(150), np.full(150, changed), item=item))
    assert np.isfinite(fitted.mean()[0])
    assert (fitted.mean()[0] > 1.0) == changed


def test_without_any_poll_it_is_the_weak_prior() -> None:
    nothing = PollTable(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool), 5)
    fitted, weak = fit_gamma(nothing), weak_prior(nothing)
    assert fitted.mean()[0] == pytest.approx(weak.mean()[0], rel=0.2)


def test_a_sample_of_items_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    rates = np.sort(rng.gamma(0.5, 1.0, 8000))  # sorted: a sample from the front would be all wrong
    groups = (np.arange(8000) % 2).astype(np.int64)
    polls = poll(rates, 5, 5, rng)
    everyone, by_group = fit_gamma(polls), fit_gamma(polls, groups)
    monkeypatch.setattr(prior_module, "ITEMS_ENOUGH", 2000)
    assert fit_gamma(polls).mean()[0] == pytest.approx(everyone.mean()[0], rel=0.1)
    np.testing.assert_allclose(fit_gamma(polls, groups).mean(), by_group.mean(), rtol=0.15)
