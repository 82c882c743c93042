"""Order, interval and frequency of queries; what has changed, and how much."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.probes.dissimilarity import (
    DISSIMILARITIES,
    absolute,
    record_change,
    relative,
)
from afresh.probes.query_order import (
    best_order,
    coefficients,
    interval_for,
    lag_after_round,
    lag_per_time,
    round_length,
    search_interval,
)
from afresh.probes.update_models import content_lag, deterministic_change, expected_lag
from afresh.values.errors import InputError, UsageError

sums = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5)


@given(groups=sums)
@settings(deadline=None)
def test_no_order_leaves_less_lag(groups: list[float]) -> None:
    a = coefficients(groups, 10, 2.0)
    place = np.empty(len(groups))
    place[best_order(groups)] = np.arange(1, len(groups) + 1)
    least = min(lag_after_round(a, order) for order in permutations(range(1, len(groups) + 1)))
    assert lag_after_round(a, place) == pytest.approx(least, rel=1e-12)
    length = round_length(len(groups), 2.0)
    assert lag_per_time(groups, 10, 2.0) == pytest.approx(least / length, rel=1e-12)


@given(groups=sums, alpha=st.floats(1e-6, 1e6), start=st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_the_papers_search_finds_the_closed_form(groups: list[float], alpha: float, start: float) -> None:
    closed = interval_for(groups, 7, alpha)
    assert search_interval(groups, 7, alpha, start=start) == pytest.approx(closed, rel=1e-9)
    if len(groups) > 1:
        assert lag_per_time(groups, 7, closed) == pytest.approx(alpha, rel=1e-9)
    else:
        assert closed == np.inf


def test_a_threshold_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="above 0"):
        search_interval([1.0, 2.0], 3, 0.0)


def test_the_expected_lag_is_the_mean_of_the_lag() -> None:
    rng = np.random.default_rng(3)
    lags = [content_lag(np.flatnonzero(rng.random(400) < 0.05) / 100, 4.0) for _ in range(4000)]
    # 0.05 per hundredth: λ = 5, changes at the grid's points 0, 0.01, …
    assert np.mean(lags) == pytest.approx(float(expected_lag(5.0, 4.0)), rel=0.02)


def test_models_keep_float32_and_scale() -> None:
    assert expected_lag(np.array([2.0], np.float32), np.array([3.0], np.float32)).dtype == np.float32
    assert deterministic_change(14.0, 7.0) == 2.0
    with pytest.raises(InputError, match="rate"):
        expected_lag([-1.0], [1.0])


@pytest.mark.parametrize("name", sorted(DISSIMILARITIES))
def test_nothing_differs_from_itself(name: str) -> None:
    measure = DISSIMILARITIES[name]
    assert measure("7.5", "7.5") == 0.0
    assert measure("7.5", "9") == measure("9", "7.5") > 0.0


def test_fields_add_up_and_missing_ones_count() -> None:
    fields = {"price": absolute, "rank": relative}
    assert record_change({"price": "3", "rank": "10"}, {"price": "5", "rank": "5"}, fields) == 2.5
    assert record_change({"price": "3"}, {"price": "3", "rank": "5"}, fields) == 1.0
    with pytest.raises(UsageError, match="finite number of 0 or more"):
        record_change({"a": "1"}, {"a": "2"}, {"a": lambda *_: -1.0})
    with pytest.raises(InputError, match="is not a number: use the dissimilarity unequal"):
        absolute("cheap", "3")
