"""The grid posterior against direct sums and integrals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from tests.rates.populations import draw_rates, poll

from afresh.rates.estimator import estimate_polls
from afresh.rates.estimators.grid_posterior import GridPosterior
from afresh.rates.likelihood import MOST_POINTS, log_likelihood, points_per_octave, rate_grid
from afresh.rates.poll_table import PollTable, polls_from_intervals
from afresh.rates.priors.gamma_prior import GammaPrior, fit_gamma, weak_prior
from afresh.values.arrays import Float64s


def told_polls(rng: np.random.Generator) -> PollTable:
    polls = poll(draw_rates("lognormal", 50, rng), 0, 20, rng)
    some = rng.random(polls.size)
    since = np.where(polls.changed & (some < 0.3), polls.elapsed * rng.random(polls.size), np.nan)
    count = np.where(some > 0.7, np.where(polls.changed, 3.0, 0.0), np.nan)
    return replace(polls, since=since, count=count)


def test_the_table_is_the_sum_over_polls() -> None:
    polls = told_polls(np.random.default_rng(0))
    assert polls.since is not None
    assert polls.count is not None
    rates = rate_grid(polls)
    wanted = np.zeros((polls.items, rates.size))
    for item, t, changed, since, count in zip(
        polls.item, polls.elapsed, polls.changed, polls.since, polls.count, strict=True
    ):
        if not np.isnan(count):
            wanted[item] += count * np.log(rates) - rates * t
        elif not changed:
            wanted[item] -= rates * t
        elif np.isnan(since):
            wanted[item] += np.log(-np.expm1(-rates * t))
        else:
            wanted[item] += np.log(rates) - rates * since
    np.testing.assert_allclose(log_likelihood(polls, rates), wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("number", [1, 3, 30, 300, 30_000])
def test_the_grid_spans_what_the_polls_can_tell(number: int) -> None:
    polls = polls_from_intervals(
        np.full(number, 7.0), np.arange(number) > 0, item=np.zeros(number, dtype=np.int64)
    )
    rates = rate_grid(polls)
    assert rates.size <= MOST_POINTS
    assert points_per_octave(rates) in (1, 2, 3)
    assert rates[0] <= 0.02 / (7.0 * number)
    assert rates[-1] >= 4.0 / 7.0


def exact(polls: PollTable, shape: float, rate: float) -> tuple[float, float, float]:
    """Posterior mean, 5 % and 95 % quantile of one item by adaptive quadrature."""
    changed, quiet = polls.elapsed[polls.changed], polls.elapsed[~polls.changed].sum()

    def log_density(u: float) -> float:
        lam = np.exp(u)
        return float(shape * u - (rate + quiet) * lam + np.sum(np.log(-np.expm1(-lam * changed))))

    axis = np.linspace(-14.0, 6.0, 4001)
    heights = np.array([log_density(u) for u in axis])
    top, peak = heights.max(), axis[heights.argmax()]
    inside = axis[heights > top - 40]
    ends = (float(inside[0]) - 0.1, float(inside[-1]) + 0.1)

    def integral(until: float, power: int) -> float:
        integrand = lambda u: np.exp(log_density(u) - top + power * u)  # noqa: E731
        return float(quad(integrand, ends[0], until, points=[min(peak, until)], limit=400, epsabs=0)[0])

    total = integral(ends[1], 0)
    quantiles = [np.exp(brentq(lambda u, p=p: integral(u, 0) / total - p, *ends)) for p in (0.05, 0.95)]
    return integral(ends[1], 1) / total, float(quantiles[0]), float(quantiles[1])


@pytest.mark.parametrize(("number", "found"), [(4, 0), (4, 1), (4, 4), (40, 7), (400, 130)])
def test_mean_and_interval_are_those_of_the_exact_posterior(number: int, found: int) -> None:
    rng = np.random.default_rng(number + found)
    elapsed = 0.2 + rng.exponential(1.0, number)
    polls = polls_from_intervals(elapsed, np.arange(number) < found, item=np.zeros(number, dtype=np.int64))
    shape, rate = 0.8, 1.3
    grid = GridPosterior(rate_grid(polls))
    state = grid.update(grid.start(GammaPrior.of(shape, rate), 1), polls)
    mean, low, high = exact(polls, shape, rate)
    assert grid.rate(state)[0] == pytest.approx(mean, rel=0.01)
    ends = grid.interval(state, 0.9)
    assert ends[0][0] == pytest.approx(low, rel=0.03)
    assert ends[1][0] == pytest.approx(high, rel=0.015)


def test_below_the_grid_the_prior_goes_on_as_a_power() -> None:
    polls = polls_from_intervals(np.ones(30), np.zeros(30, dtype=bool), item=np.zeros(30, dtype=np.int64))
    prior = GammaPrior.of(0.1, 1.0)
    grid = GridPosterior(rate_grid(polls))
    low, high = grid.interval(grid.update(grid.start(prior, 1), polls), 0.9)
    exact_low, exact_high = GammaPrior.of(0.1, 31.0).interval(0.9)
    assert low[0] == pytest.approx(exact_low[0], rel=0.1)  # 1e−14, far below the grid
    assert high[0] == pytest.approx(exact_high[0], rel=0.02)


def learned_state(polls: PollTable, fitted: GammaPrior) -> tuple[GridPosterior, Float64s]:
    grid = GridPosterior(rate_grid(polls))
    state = grid.update(grid.start(fitted, polls.items), polls)
    return grid, grid.rate(grid.with_learned_priors(state, fitted))


def test_a_learned_prior_sees_two_kinds_where_a_gamma_cannot() -> None:
    rng = np.random.default_rng(8)
    rates = draw_rates("two points", 2000, rng)
    polls = poll(rates, 20, 20, rng)
    fitted = GammaPrior.of(0.4, 0.6)
    grid, learned = learned_state(polls, fitted)
    plain = grid.rate(grid.update(grid.start(fitted, polls.items), polls))
    assert np.mean(np.abs(learned - rates)) < 0.7 * np.mean(np.abs(plain - rates))


def test_groups_learn_priors_of_their_own() -> None:
    rng = np.random.default_rng(9)
    groups = np.arange(1200) % 3
    rates = np.array([0.05, 0.5, 3.0])[groups]
    polls = poll(rates, 2, 4, rng)
    _, learned = learned_state(polls, fit_gamma(polls, groups))
    for group, rate in enumerate((0.05, 0.5, 3.0)):
        assert float(np.median(learned[groups == group])) == pytest.approx(rate, rel=0.3)


def test_items_of_a_weak_prior_share_one_row() -> None:
    polls = polls_from_intervals([1.0, 1.0], [True, False])
    state = GridPosterior().start(weak_prior(polls), 2)
    assert state.log_prior.shape[0] == 1


def test_the_interval_holds_the_rate_also_under_a_learned_prior() -> None:
    """The mean is under another prior than the interval: after three changes of three it lay outside."""
    rng = np.random.default_rng(0)
    found = estimate_polls(poll(draw_rates("gamma 2", 1500, rng), 3, 3, rng), method="grid")
    assert np.all((found.low <= found.rate) & (found.rate <= found.high))
