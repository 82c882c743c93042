"""Beliefs about rates: Bayes' rule, a bounded effect of silence, and a prior learned from all items."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.policy.adaptive.rate_belief import RateBelief


def test_the_posterior_is_bayes() -> None:
    belief = RateBelief(1, 1.0)
    belief.horizon = np.inf
    rng = np.random.default_rng(1)
    log_posterior = np.zeros(belief.rates.size)
    one = np.array([0])
    for _ in range(60):
        elapsed, bit = rng.uniform(0.1, 5.0, 1), rng.random(1) < 0.4
        belief.learn(one, elapsed, bit, -np.expm1(-belief.expected(elapsed)))
        expected = belief.rates * elapsed
        log_posterior += np.log(-np.expm1(-expected)) if bit[0] else -expected
    want = np.exp(log_posterior - log_posterior.max())
    np.testing.assert_allclose(belief.posteriors(one)[0], want / want.sum(), atol=2e-5)


@pytest.mark.parametrize("slowest", [None, 1e-8])
def test_the_chance_of_a_change_is_exact_at_every_rate(slowest: float | None) -> None:
    belief, elapsed = RateBelief(1, 1.0, slowest), np.geomspace(1e-9, 1e9, 500)
    want = -np.expm1(-elapsed[:, None] * belief.rates)
    np.testing.assert_allclose(belief.change_chance(elapsed), want, rtol=1e-14)


def test_the_prior_is_learned_and_serves_new_items() -> None:
    rng = np.random.default_rng(2)
    truth = rng.choice([0.02, 2.0], 600, p=[0.7, 0.3])
    belief, every = RateBelief(600, 1.0), np.arange(600)
    for _ in range(40):
        elapsed = np.full(600, 1.0)
        belief.learn(
            every, elapsed, rng.random(600) < -np.expm1(-truth), -np.expm1(-belief.expected(elapsed))
        )
    belief.refit(np.ones(600, dtype=bool))
    low = belief.prior[belief.rates < 0.2].sum()
    assert 0.6 < low < 0.8
    belief.grow(1)
    np.testing.assert_allclose(belief.posteriors(np.array([600]))[0], belief.prior, atol=1e-7)
