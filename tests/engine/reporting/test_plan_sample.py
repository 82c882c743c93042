"""What a sample for plans says of rates: medians, likelihoods, and the freshness and age of a plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.web.serving import engine_of, filled

from afresh.engine.reporting.plan_sample import RatePosteriors, take_plan_sample
from afresh.model.freshness import age, freshness

RATES = np.array([0.1, 1.0, 10.0])
POSTERIORS = RatePosteriors(
    ladder=RATES,
    prior=np.array([0.5, 0.25, 0.25]),
    mass=np.array([[0.5, 0.25, 0.25], [0.0, 0.4, 0.6]]),
    rates=np.tile(RATES, (2, 1)),
)


def test_medians_and_means_are_those_of_each_belief() -> None:
    frequency = np.array([2.0, 0.0])
    assert POSTERIORS.medians().tolist() == [0.1, 10.0]
    fresh = POSTERIORS.mass[0] @ freshness(RATES, np.full(3, 2.0))
    assert POSTERIORS.mean_freshness(frequency) == pytest.approx([fresh, 0.0])
    ages_s = POSTERIORS.mean_age_s(frequency)
    assert ages_s[0] == pytest.approx(POSTERIORS.mass[0] @ age(RATES, np.full(3, 2.0)))
    assert np.isinf(ages_s[1])  # it is never polled


def test_likelihoods_leave_the_prior_out() -> None:
    assert POSTERIORS.likelihoods()[0] == pytest.approx([1.0, 1.0, 1.0])  # polls told nothing
    assert POSTERIORS.likelihoods()[1] == pytest.approx([0.0, 2 / 3, 1.0])


def test_each_item_of_a_sample_stands_for_as_many_as_are_left_out(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        filled(engine)
        now_s = engine.clock.now_s()
        for most in (41, 1000):
            sample = take_plan_sample(engine.store, engine.settings, now_s, most, np.random.default_rng(1))
            assert sample.ids.size == min(most, 123)
            assert sample.active == 123
            assert sample.scale * sample.ids.size == pytest.approx(123)
            assert sample.posteriors.mass.sum(axis=1) == pytest.approx(np.ones(sample.ids.size))
            assert sample.stakes is None
        known = sample.freshness_with_known_rates("freshness", 2.0)
        assert known > float(
            sample.weight @ sample.posteriors.mean_freshness(np.full(123, 2.0 / 123)) / 124.5
        )
