"""Freshness and age over time, before averaging."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.model.age import age
from afresh.model.decay import DECAYS, Exponential, Linear, decay_from
from afresh.model.freshness import freshness
from afresh.model.time_course import database_course
from afresh.papers.cho_time_course import expected_age, expected_freshness, observed_course
from afresh.values.errors import InputError

instants = st.lists(st.integers(1, 60).map(lambda i: i / 4), max_size=12)


@pytest.mark.parametrize("rate", [1e-9, 0.3, 4.0])
def test_its_average_over_an_interval_is_the_time_average(rate: float) -> None:
    interval = 2.5
    nodes, weights = np.polynomial.legendre.leggauss(40)
    t, weights = (nodes + 1) / 2 * interval, weights / 2
    decay = Exponential(rate)
    assert weights @ expected_freshness(decay, t) == pytest.approx(freshness(rate, 1 / interval), rel=1e-13)
    assert weights @ expected_age(decay, t) == pytest.approx(age(rate, 1 / interval), rel=1e-13)


@pytest.mark.parametrize("name", DECAYS)
def test_age_grows_by_the_share_that_is_stale(name: str) -> None:
    example = DECAYS[name].example
    decay = decay_from(name if example is None else f"{name}:{example}", [0.2, 1.3])
    t, dt = np.linspace(0.15, 5.15, 21)[:, None], 1e-6
    slope = (expected_age(decay, t + dt) - expected_age(decay, t - dt)) / (2 * dt)
    np.testing.assert_allclose(slope, 1 - expected_freshness(decay, t), atol=1e-7)


def test_a_database_refreshed_together_falls_and_recovers() -> None:
    course = database_course(Exponential([1.0, 2.0]), 1.0, [0.0, 0.999, 1.0, 1.5, 2.0])
    assert course.freshness[[0, 2, 4]] == pytest.approx([1, 1, 1])
    assert course.freshness[3] == pytest.approx((np.exp(-0.5) + np.exp(-1)) / 2)
    assert course.age[[0, 2, 4]] == pytest.approx([0, 0, 0])
    assert course.age[1] > course.age[3] > 0


def test_a_database_refreshed_evenly_stays_at_its_average() -> None:
    items = 400
    phase = (np.arange(items) + 0.5) / items * 3
    course = database_course(Exponential(0.7), 3.0, np.linspace(0, 9, 50), phase=phase)
    np.testing.assert_allclose(course.freshness, freshness(0.7, 1 / 3), atol=2e-3)
    np.testing.assert_allclose(course.age, age(0.7, 1 / 3), atol=5e-3)


def test_items_refreshed_once_and_at_their_own_intervals() -> None:
    course = database_course(Linear([0.1, 0.1]), [np.inf, 2.0], [1.0, 5.0])
    np.testing.assert_allclose(course.freshness, [0.9, (0.5 + 0.9) / 2])
    with pytest.raises(InputError, match="needs t ≥ phase"):
        database_course(Linear(0.1), [np.inf], [1.0], phase=[2.0])


@settings(deadline=None, max_examples=100)
@given(changes=instants, refreshes=instants)
def test_an_observed_course_is_what_the_definition_says(changes: list[float], refreshes: list[float]) -> None:
    # Off the instants, so that the order at one instant does not matter here.
    t = np.arange(0.1, 16, 0.33)
    course = observed_course(changes, refreshes, t)
    for now, fresh, old in zip(t, course.freshness, course.age, strict=True):
        last = max((s for s in refreshes if s <= now), default=0.0)
        missed = [s for s in changes if last < s <= now]
        assert fresh == (not missed)
        assert old == pytest.approx(now - min(missed) if missed else 0.0)


def test_many_observed_copies_average_to_the_expected_course() -> None:
    rng, rate, t = np.random.default_rng(5), 0.8, np.array([0.5, 1.5, 2.2, 3.9])
    refreshes = np.array([1.0, 2.0, 3.0])
    runs = [observed_course(np.cumsum(rng.exponential(1 / rate, 30)), refreshes, t) for _ in range(4000)]
    expected = database_course(Exponential(rate), [1.0], t)
    np.testing.assert_allclose(np.mean([r.freshness for r in runs], axis=0), expected.freshness, atol=0.03)
    np.testing.assert_allclose(np.mean([r.age for r in runs], axis=0), expected.age, atol=0.03)


def test_a_refresh_at_the_time_of_a_change_sees_it() -> None:
    course = observed_course([2.0], [2.0], [2.0, 3.0])
    np.testing.assert_array_equal(course.freshness, [1, 1])
