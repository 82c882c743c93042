"""Which stale items to build: the gain of a build, the order, the budget and dependencies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.allocation.build_selection import StaleItem, build_gain, select_builds

HOUR = 3600.0
A = StaleItem("a", 600.0, 1 / 900, 10.0)


@pytest.mark.parametrize("rate", [0.0, 1e-9, 1 / 7200, 1 / 60, 5.0])
@pytest.mark.parametrize("objective", ["age", "freshness"])
def test_the_gain_is_that_of_a_simulation(rate: float, objective: str) -> None:
    """With and without a build now, over an hour, for many random next changes."""
    rng = np.random.default_rng(7)
    item = replace(A, rate_per_s=rate)
    change = rng.exponential(1 / rate, 100_000) if rate else np.full(10, np.inf)
    fresh_s = np.minimum(change, HOUR)
    late_s = HOUR - fresh_s
    without = A.stale_s * HOUR + HOUR**2 / 2
    simulated = fresh_s.mean() if objective == "freshness" else without - (late_s**2 / 2).mean()
    assert build_gain(item, HOUR, objective) == pytest.approx(simulated, rel=0.01)


@given(
    st.lists(
        st.tuples(st.floats(0, 1e5), st.floats(0, 1), st.floats(0.01, 100), st.integers(0, 5)), max_size=12
    ),
    st.floats(0, 500),
    st.floats(0, 20),
    st.data(),
)
def test_a_selection_keeps_the_budget_and_builds_what_is_below_first(
    rows: list[tuple[float, float, float, int]], budget_s: float, overhead_s: float, data: st.DataObject
) -> None:
    items: dict[str, StaleItem] = {}
    for number, (stale_s, rate, cost_s, failures) in enumerate(rows):
        direct = data.draw(st.sets(st.sampled_from(sorted(items)), max_size=3)) if items else set()
        below = tuple(sorted({*direct, *(low for key in direct for low in items[key].below)}))
        items[str(number)] = StaleItem(str(number), stale_s, rate, cost_s, below=below, failures=failures)
    found = select_builds(items, HOUR, budget_s, overhead_s=overhead_s, owes_nothing=False)
    assert found.cost_s <= budget_s
    assert len(set(found.keys)) == len(found.keys)
    for place, key in enumerate(found.keys):
        assert set(items[key].below) <= set(found.keys[:place])
    if found.keys:
        costs = sum(items[key].cost_s for key in found.keys)
        assert found.cost_s == pytest.approx(costs + overhead_s)


def test_a_job_too_large_for_the_budget_is_built_when_nothing_is_owed() -> None:
    items = {"a": A, "b": replace(A, key="b", cost_s=1000.0, stale_s=1e7)}
    assert select_builds(items, HOUR, 100.0, owes_nothing=False).keys == ("a",)
    assert select_builds({"b": items["b"]}, HOUR, 100.0).keys == ("b",)
    assert select_builds({"b": items["b"]}, HOUR, 100.0, owes_nothing=False).keys == ()


def test_beyond_the_budget_as_many_jobs_are_built_as_pay_for_the_overhead() -> None:
    """An invocation of ten seconds is worth more than one cheap job, but not a dear one that gains little."""
    cheap = {name: replace(A, key=name, cost_s=1.0) for name in "abc"}
    items = {**cheap, "dear": replace(A, key="dear", cost_s=1000.0)}
    assert select_builds(items, HOUR, 5.0, overhead_s=10.0).keys == ("a", "b", "c")
    assert select_builds(items, HOUR, 5.0, overhead_s=10.0, owes_nothing=False).keys == ()
    new = {"new": replace(A, key="new", stale_s=float("inf"), cost_s=100.0)}
    assert select_builds(new, HOUR, 5.0).keys == ("new",)


def test_what_was_never_built_comes_first_and_what_fails_comes_later() -> None:
    new = replace(A, key="new", stale_s=float("inf"))
    failing = replace(A, key="failing", failures=3, stale_s=700.0)
    items = {each.key: each for each in (A, new, failing)}
    assert select_builds(items, HOUR, 10.0).keys == ("new",)
    assert select_builds({"a": A, "failing": failing}, HOUR, 10.0).keys == ("a",)


def test_an_item_without_weight_is_left_out() -> None:
    idle = replace(A, key="idle", weight=0.0, stale_s=float("inf"))
    assert select_builds({"a": A, "idle": idle}, HOUR, 1e9).keys == ("a",)
