"""The course of freshness and age of one copy: averages, and the definition on a recorded history."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.model.decay import DECAYS, Exponential, decay_from
from afresh.model.freshness import age, freshness
from afresh.model.time_course import database_course
from afresh.papers.cho.cho_figures import observed_course

instants = st.lists(st.integers(1, 60).map(lambda i: i / 4), max_size=12)


@pytest.mark.parametrize("rate", [1e-9, 0.3, 4.0])
def test_its_average_over_an_interval_is_the_time_average(rate: float) -> None:
    interval = 2.5
    nodes, weights = np.polynomial.legendre.leggauss(40)
    t, weights = (nodes + 1) / 2 * interval, weights / 2
    decay = Exponential(rate)
    assert weights @ decay.survival(t) == pytest.approx(freshness(rate, 1 / interval), rel=1e-13)
    assert weights @ decay.loss(t) == pytest.approx(age(rate, 1 / interval), rel=1e-13)


@pytest.mark.parametrize("name", DECAYS)
def test_age_grows_by_the_share_that_is_stale(name: str) -> None:
    example = DECAYS[name].example
    decay = decay_from(name if example is None else f"{name}:{example}", [0.2, 1.3])
    t, dt = np.linspace(0.15, 5.15, 21)[:, None], 1e-6
    slope = (decay.loss(t + dt) - decay.loss(t - dt)) / (2 * dt)
    np.testing.assert_allclose(slope, 1 - decay.survival(t), atol=1e-7)


@settings(deadline=None)
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
