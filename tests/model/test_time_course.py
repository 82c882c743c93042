"""Freshness and age over time, before averaging."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.model.decay import Exponential, Linear
from afresh.model.freshness import age, freshness
from afresh.model.time_course import database_course
from afresh.values.errors import InputError


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
