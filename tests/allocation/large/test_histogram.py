"""The histogram: sums that merge, and a root as good as the exact one."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.large.cutoff import Cutoff, inverse_phi, ratio_at
from afresh.allocation.large.histogram import Histogram
from afresh.allocation.large.item_columns import WHOLE, ItemColumns, double_to_bits
from afresh.model.curves import phi
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import InputError


def histogram_of(
    rates: ArrayLike, weights: ArrayLike | None = None, costs: ArrayLike | None = None
) -> Histogram:
    return Histogram.from_columns(ItemColumns.from_arrays(rates, weights, costs))


def items(seed: int, size: int, *, static: float = 0.1) -> tuple[Float64s, Float64s, Float64s]:
    rng = np.random.default_rng(seed)
    rates = np.exp(rng.normal(0, 2, size)) * (rng.random(size) >= static)
    weights = rng.pareto(1.5, size) * (rng.random(size) >= static)
    return rates, weights, rng.uniform(0.5, 3, size)


@given(st.floats(min_value=-300, max_value=np.log10(38)))
def test_table_of_phi(exponent: float) -> None:
    log_rest = np.array([10.0**exponent])
    assert inverse_phi(log_rest) * ratio_at(log_rest) == pytest.approx(1, rel=1e-12)
    ratio = ratio_at(log_rest)
    if log_rest > 1:
        assert ratio - np.log1p(ratio) == pytest.approx(log_rest, rel=1e-14)


@given(st.floats(min_value=1e-12, max_value=0.999), st.floats(min_value=1e-9, max_value=1e9))
def test_cutoff_is_phi_below_the_edge(y: float, edge: float) -> None:
    inverse = Cutoff(edge).inverse_ratio(np.array([y * edge, edge, 2 * edge]))
    assert inverse[0] == pytest.approx(1 / phi(y), rel=1e-10)
    assert list(inverse[1:]) == [0, 0]


def test_cutoff_with_items_at_the_edge() -> None:
    cutoff = Cutoff(2.0, ratio=50.0)
    inverse = cutoff.inverse_ratio(np.array([2.0, np.nextafter(2.0, 0), 2.0 * (1 - 1e-12), 2.1]))
    assert inverse[0] == 1 / 50
    assert 1 / inverse[1] == pytest.approx(ratio_at(np.array([53 * np.log(2)]))[0], rel=1e-5)
    assert 1 / inverse[2] == pytest.approx(ratio_at(np.array([12 * np.log(10)]))[0], rel=1e-4)
    assert inverse[3] == 0
    assert cutoff.multiplier == 0.5


@settings(deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 400), max_size=4))
def test_partitions_merge_to_the_whole(seed: int, cuts: list[int]) -> None:
    rates, weights, costs = items(seed, 400)
    ends = sorted({0, 400, *cuts})
    parts = [histogram_of(rates[a:b], weights[a:b], costs[a:b]) for a, b in pairwise(ends)]
    whole, merged = histogram_of(rates, weights, costs), sum(parts[1:], start=parts[0])
    assert np.array_equal(whole.start, merged.start)
    np.testing.assert_allclose(merged.sums, whole.sums, rtol=1e-13)
    assert (merged.static, merged.unweighted, merged.items) == (whole.static, whole.unweighted, 400)
    assert merged.total_weight == pytest.approx(weights.sum(), rel=1e-13)
    assert merged.solve(100.0).multiplier == pytest.approx(whole.solve(100.0).multiplier, rel=1e-11)


def test_travels_as_a_pickle() -> None:
    rates, weights, _ = items(1, 1000)
    one, other = (
        histogram_of(rates[:500], weights[:500]),
        histogram_of(rates[500:], weights[500:]),
    )
    back, whole = pickle.loads(pickle.dumps(one)) + other, histogram_of(rates, weights)
    assert np.array_equal(back.start, whole.start)
    np.testing.assert_allclose(back.sums, whole.sums, rtol=1e-13)
    assert (back.static, back.unweighted, back.items) == (whole.static, whole.unweighted, 1000)


@pytest.mark.parametrize("budget", [1e-3, 1.0, 1e3, 1e5, 1e9])
def test_sums_at_the_root_are_those_of_the_items(budget: float) -> None:
    rates, weights, costs = items(2, 200_000)
    bins = histogram_of(rates, weights, costs)
    cutoff = bins.solve(budget)
    assert bins.spend(cutoff) == pytest.approx(budget, rel=1e-12)
    live = (rates > 0) & (weights > 0)
    price = np.full_like(rates, np.inf)
    price[live] = costs[live] * rates[live] / weights[live]
    ratio = phi(cutoff.multiplier * price)
    # Few items share a poor budget, and those in the bin at the edge are known only by their moments.
    assert (costs * rates / ratio).sum() == pytest.approx(budget, rel=1e-3 if budget < 1 else 1e-4)
    assert bins.dropped(cutoff) == pytest.approx((live & np.isinf(ratio)).sum(), abs=200)


def test_a_closer_look_resolves_the_edge() -> None:
    rates, weights, costs = items(3, 200_000)
    columns, budget = ItemColumns(rates, weights, costs), 2e4
    bins = Histogram.from_columns(columns)
    cutoff = bins.solve(budget)
    window = bins.window(cutoff.edge, budget)
    assert window is not None
    assert window.shift == 32
    closer = bins.without(window) + Histogram.from_columns(columns, window)
    assert closer.items == bins.items
    assert closer.total_weight == pytest.approx(bins.total_weight, rel=1e-13)
    better = closer.solve(budget, near=cutoff)
    live = (rates > 0) & (weights > 0)
    price = (costs * rates)[live] / weights[live]
    exact = (costs * rates)[live] / phi(better.multiplier * price)
    assert exact.sum() == pytest.approx(budget, rel=1e-8)


def test_equal_items_share_a_tiny_budget() -> None:
    """Beyond r = 37 no multiplier in doubles meets the budget; the edge at their price does."""
    bins = histogram_of(np.full(1000, 3.0))
    for _ in range(4):  # down to a single double
        window = bins.window(bins.solve(1.0).edge, 1.0)
        assert window is not None
        bins = bins.without(window) + Histogram.from_columns(ItemColumns(np.full(1000, 3.0)), window)
    assert bins.window(bins.solve(1.0).edge, 1.0) is None
    cutoff = bins.solve(1.0)
    assert cutoff.edge == 3.0
    assert cutoff.ratio == pytest.approx(3000.0, rel=1e-12)
    assert bins.spend(cutoff) == pytest.approx(1.0, rel=1e-12)
    assert bins.dropped(cutoff) == 0


def test_a_rich_budget_follows_the_asymptote() -> None:
    rates = np.array([1.0, 4.0, 9.0])
    assert histogram_of(rates).solve(1e9).multiplier == pytest.approx((1 + 2 + 3) ** 2 / 2 / 1e18, rel=1e-7)


def test_nothing_to_buy() -> None:
    assert histogram_of([]).items == 0
    bins = histogram_of([0.0, 2.0], [1.0, 0.0]) + histogram_of([])
    assert (bins.items, bins.static, bins.unweighted, bins.total_weight) == (2, 1, 1, 1.0)


def test_budget_zero_has_the_price_of_the_best_item() -> None:
    assert histogram_of([4.0, 2.0]).solve(0.0).multiplier == pytest.approx(0.5)


def test_bins_cover_all_doubles_in_order() -> None:
    prices = np.array([5e-324, 1e-300, 1e-45, 1.0, 1.0 + 1e-9, 1e38, 1e308])
    bins = histogram_of(prices)
    assert bins.items == 7
    assert np.all(np.diff(bins.start) > 0)
    assert (bins.start >= WHOLE.bounds[0]).all()
    assert (bins.start < WHOLE.bounds[1]).all()
    assert np.int64(double_to_bits(0.3)).view(np.float64) == 0.3


def test_wrong_columns_are_named() -> None:
    with pytest.raises(InputError, match=r"cost\[1\] is 0: a refresh must cost more than nothing"):
        histogram_of([1.0, 2.0], None, [1.0, 0.0])
    with pytest.raises(InputError, match=r"rate\[0\] is nan"):
        histogram_of([np.nan])
    with pytest.raises(InputError, match="rate has 2 dimensions"):
        histogram_of([[1.0]])
