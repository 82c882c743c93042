"""Forgetting: on when rates drift, off when they do not."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.rates.drift import choose_horizon, predictive_scores
from afresh.rates.gamma_filter import GammaFilter
from afresh.rates.gamma_prior import GammaPrior
from afresh.rates.observations import Polls, polls_of
from afresh.rates.prior import fit_gamma

ITEMS, NUMBER = 300, 60


def drifting(rng: np.random.Generator, memory: float) -> Polls:
    """Rates drawn anew after exponential times of mean ``memory``."""
    elapsed = rng.exponential(1.0, (ITEMS, NUMBER)) + 0.05
    rate = rng.gamma(1.0, 0.5, ITEMS)
    rates = np.empty_like(elapsed)
    for k in range(NUMBER):
        anew = rng.random(ITEMS) < -np.expm1(-elapsed[:, k] / memory)
        rate = np.where(anew, rng.gamma(1.0, 0.5, ITEMS), rate)
        rates[:, k] = rate
    changed = rng.random(elapsed.shape) < -np.expm1(-rates * elapsed)
    return Polls(np.repeat(np.arange(ITEMS), NUMBER), elapsed.ravel(), changed.ravel(), ITEMS)


@pytest.mark.parametrize("seed", range(5))
def test_steady_rates_are_not_forgotten(seed: int) -> None:
    polls = drifting(np.random.default_rng(seed), np.inf)
    chosen = choose_horizon(polls, fit_gamma(polls))
    assert not chosen.supported
    assert chosen.horizon == np.inf


@pytest.mark.parametrize("seed", range(3))
def test_drifting_rates_are_forgotten_over_about_their_memory(seed: int) -> None:
    polls = drifting(np.random.default_rng(seed), 20.0)
    chosen = choose_horizon(polls, fit_gamma(polls))
    assert chosen.supported
    assert 4.0 < chosen.horizon < 40.0
    assert chosen.gain > 0


def test_the_score_is_that_of_the_filter_asked_poll_by_poll() -> None:
    rng = np.random.default_rng(0)
    item = np.repeat([0, 1], [7, 4])
    polls = Polls(item, rng.exponential(1.0, 11) + 0.1, rng.random(11) < 0.5, 2)
    prior, horizon = GammaPrior.of(0.7, 1.1), 3.0
    wanted = np.zeros(2)
    estimator = GammaFilter(horizon)
    for which in (0, 1):
        state = estimator.start(prior, 1)
        for k in np.flatnonzero(item == which):
            t = polls.elapsed[k]
            keep = np.exp(-t / horizon)
            a, b = 0.7 + (state.shape[0] - 0.7) * keep, 1.1 + (state.rate[0] - 1.1) * keep
            quiet = (1 + t / b) ** -a
            wanted[which] += np.log(1 - quiet if polls.changed[k] else quiet)
            state = estimator.update(state, polls_of(t, polls.changed[k]))
    np.testing.assert_allclose(predictive_scores(polls, prior, np.array([horizon]))[0], wanted, rtol=1e-10)


def test_too_little_to_tell_is_no_drift() -> None:
    assert not choose_horizon(polls_of([1.0, 1.0], [True, False]), GammaPrior.of(1.0, 1.0)).supported
