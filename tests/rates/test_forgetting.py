"""Forgetting: on when rates drift, off when they do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rates.logs import drifting, steady
from tests.slow_cases import with_slow_cases

from afresh.rates.estimator import estimate_many
from afresh.rates.estimators.gamma_filter import GammaFilter
from afresh.rates.forgetting import choose_horizon, poll_ages, predictive_scores, weigh_by_age
from afresh.rates.likelihood import log_likelihood, rate_grid
from afresh.rates.poll_table import PollTable, polls_from_intervals, polls_from_times
from afresh.rates.priors.gamma_prior import GammaPrior, fit_gamma


@pytest.mark.parametrize("seed", range(5))
def test_steady_rates_are_not_forgotten(seed: int) -> None:
    polls = drifting(np.random.default_rng(seed), np.inf)
    assert choose_horizon(polls, fit_gamma(polls)) == np.inf


@pytest.mark.parametrize("seed", range(3))
def test_drifting_rates_are_forgotten_over_about_their_memory(seed: int) -> None:
    polls = drifting(np.random.default_rng(seed), 20.0)
    assert 4.0 < choose_horizon(polls, fit_gamma(polls)) < 40.0


@pytest.mark.parametrize("regular", [True, False])
@pytest.mark.parametrize("number", with_slow_cases([10, 60], kept=1))
def test_items_that_are_all_alike_are_not_called_drifting(number: int, regular: bool) -> None:
    # Forgetting leads back to the prior, which is right for every one: it predicts better all the same.
    called = 0
    for seed in range(20):
        polls = steady(np.random.default_rng(seed), number, regular=regular)
        called += choose_horizon(polls, fit_gamma(polls)) < np.inf
    assert called <= 1


@pytest.mark.parametrize("method", ["grid", "gamma", "counts"])
def test_rates_are_of_now_where_old_polls_fade(method: str) -> None:
    # Busy until 100, quiet afterwards; the second item was not looked at again.
    first = [(0, day, 1 if day <= 100 else 0) for day in range(201)]
    second = [(1, day, 1) for day in range(101)]
    item, times, changed = (np.array(column) for column in zip(*first, *second, strict=True))
    now = estimate_many(item, times, changed, method=method, horizon=10.0)
    all_of_it = estimate_many(item, times, changed, method=method)
    assert now.rate[0] < min(0.1, 0.6 * all_of_it.rate[0])
    # What is known of it has faded: its interval reaches down to what anything might be.
    assert now.low[1] < 0.3 * all_of_it.low[1]


def test_ages_are_those_since_the_latest_poll_of_all() -> None:
    polls = polls_from_times([0, 0, 1, 1], [0.0, 4.0, 1.0, 9.0], [0, 1, 0, 1])
    assert poll_ages(polls).tolist() == [5.0, 0.0]


@given(st.floats(0.5, 50.0), st.integers(0, 2**31))
def test_a_weighted_poll_counts_as_often_as_its_weight_says(horizon: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    polls = weigh_by_age(
        PollTable(np.zeros(9, dtype=np.int64), rng.exponential(1.0, 9) + 0.1, rng.random(9) < 0.5, 1), horizon
    )
    assert polls.weight is not None
    rates = rate_grid(polls)
    chance = np.exp(-rates * polls.elapsed[:, None])
    logs = np.where(polls.changed[:, None], np.log1p(-chance), -rates * polls.elapsed[:, None])
    np.testing.assert_allclose(log_likelihood(polls, rates)[0], polls.weight @ logs, rtol=1e-9, atol=1e-12)


def test_the_score_is_that_of_the_filter_asked_poll_by_poll() -> None:
    rng = np.random.default_rng(0)
    item = np.repeat([0, 1], [7, 4])
    polls = PollTable(item, rng.exponential(1.0, 11) + 0.1, rng.random(11) < 0.5, 2)
    prior, horizon = GammaPrior.of(0.7, 1.1), 3.0
    wanted = np.zeros(2)
    estimator = GammaFilter(horizon=horizon)
    for which in (0, 1):
        state = estimator.start(prior, 1)
        for k in np.flatnonzero(item == which):
            t = polls.elapsed[k]
            keep = np.exp(-t / horizon)
            a, b = 0.7 + (state.shape[0] - 0.7) * keep, 1.1 + (state.rate[0] - 1.1) * keep
            quiet = (1 + t / b) ** -a
            wanted[which] += np.log(1 - quiet if polls.changed[k] else quiet)
            state = estimator.update(state, polls_from_intervals(t, polls.changed[k]))
    np.testing.assert_allclose(predictive_scores(polls, prior, np.array([horizon]))[0], wanted, rtol=1e-10)


def test_too_little_to_tell_is_no_drift() -> None:
    polls = polls_from_intervals([1.0, 1.0], [True, False])
    assert choose_horizon(polls, GammaPrior.of(1.0, 1.0)) == np.inf
