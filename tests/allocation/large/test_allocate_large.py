"""The plan of many items against the exact one, by both engines."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.slow_cases import with_slow_cases

from afresh.allocation.large import allocate_large as large
from afresh.allocation.large import plan_search
from afresh.allocation.large.allocate_large import allocate_large
from afresh.model.curves import age_curve, freshness_curve, g
from afresh.values.arrays import Float64s, Floats
from afresh.values.errors import InputError, UsageError
from afresh.values.results import Allocation

pytestmark = pytest.mark.waits(together="numba")  # one process compiles for all

ENGINES = ("numpy", "numba")
# Numba compiles for each combination of types, for seconds: every run tests one combination with any items
# and the agreement with NumPy, the slow suite all others.
engines = pytest.mark.parametrize("engine", with_slow_cases(ENGINES, kept=1))

positive = st.floats(min_value=1e-10, max_value=1e10)
columns = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.one_of(positive, st.just(0.0), st.just(1.0)), min_size=n, max_size=n),
        st.lists(st.one_of(positive, st.just(0.0), st.just(1.0)), min_size=n, max_size=n),
        st.lists(st.floats(min_value=1e-3, max_value=1e3), min_size=n, max_size=n),
    )
)


def exact_ratio(log_rest: npt.NDArray[np.longdouble]) -> npt.NDArray[np.longdouble]:
    """Φ in extended precision from r − log1p(r) = L: by Newton's method, and by series where that cancels."""
    s = np.sqrt(2 * log_rest)
    far = log_rest + np.log1p(log_rest + np.log1p(log_rest + s))
    ratio = np.where(log_rest < 1, s + s * s / 3, far)
    for _ in range(6):
        ratio -= (ratio - np.log1p(ratio) - log_rest) * (1 + ratio) / ratio
    series = s * (1 + s * (1 / np.longdouble(3) + s * (1 / np.longdouble(36) - s * (1 / 270 - s / 4320))))
    return np.where(s < 1e-3, series, ratio)


def exact_plan(rates: Float64s, weights: Float64s, costs: Float64s, budget: float) -> Float64s:
    """The optimal plan by bisection of the edge 1/μ in extended precision.

    The edge is searched as the offset from the last price below it, on a log axis, so that 1−y is resolved at
    that price however small the budget is.
    """
    live = (rates > 0) & (weights > 0)
    rate, weight, cost = (column[live].astype(np.longdouble) for column in (rates, weights, costs))
    price = cost * rate / weight
    distinct = np.unique(price)
    frequency = np.zeros(len(rates))

    def plan(base: np.longdouble, log_offset: np.longdouble) -> npt.NDArray[np.longdouble]:
        edge = base + np.exp(log_offset)
        rest = ((base - price) + np.exp(log_offset)) / edge
        found = np.zeros(len(rate), dtype=np.longdouble)
        kept = price <= base
        target = -np.log(rest[kept])
        small = price[kept] / edge < 0.5
        target[small] = -np.log1p(-(price[kept] / edge)[small])
        found[kept] = rate[kept] / exact_ratio(target)
        return found

    # The edge lies above the last distinct price whose items cannot take the whole budget with those below.
    low, high = 0, len(distinct)
    while high - low > 1:
        middle = (low + high) // 2
        below = plan(distinct[middle - 1], np.log(distinct[middle] - distinct[middle - 1]))
        low, high = (middle, high) if (cost * below).sum() < budget else (low, middle)
    base = distinct[low]
    start, stop = np.longdouble(-11000.0), np.longdouble(11000.0)
    for _ in range(75):
        middle_log = (start + stop) / 2
        dear = (cost * plan(base, middle_log)).sum() > budget
        start, stop = (start, middle_log) if dear else (middle_log, stop)
    frequency[live] = plan(base, start).astype(np.float64)
    return frequency


def check(plan: Allocation, rates: Floats, weights: Floats, costs: Floats, budget: float) -> None:
    """Everything that is reported is true of the frequencies, and they are the optimal ones."""
    rates, weights, costs = (np.asarray(column, dtype=np.float64) for column in (rates, weights, costs))
    frequency = plan.frequency.astype(np.float64)
    live = (rates > 0) & (weights > 0)
    assert (frequency[~live] == 0).all()
    spend = costs * frequency
    assert spend.sum() == pytest.approx(plan.spend, rel=1e-12, abs=0)
    assert plan.spend == pytest.approx(budget, rel=1e-9, abs=0)
    best = exact_plan(rates, weights, costs, budget)
    assert (costs * np.abs(frequency - best)).sum() < 1e-6 * budget
    kept = live & (frequency > 0)
    assert plan.dropped == (live & ~kept).sum()
    ratio = np.divide(rates, frequency, out=np.full_like(rates, np.inf), where=kept)
    value = np.where(rates > 0, freshness_curve(ratio), 1.0)
    assert plan.freshness == pytest.approx((weights * value).sum() / weights.sum(), rel=1e-9)
    assert 0 <= plan.gap <= 1e-8 * weights.sum()
    if plan.dropped:
        assert plan.age == np.inf
    else:
        age = (weights[live] * age_curve(ratio[live]) / frequency[live]).sum() / weights.sum()
        assert plan.age == pytest.approx(age, rel=1e-9)
    marginal = weights[live] * g(ratio[live]) / (costs[live] * rates[live])
    assert marginal.max() <= plan.multiplier * (1 + 1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@settings(deadline=None)
@given(given_columns=columns, log_budget=st.floats(-3.5, 6))
def test_optimal_for_any_items(
    engine: str, given_columns: tuple[list[float], list[float], list[float]], log_budget: float
) -> None:
    rates, weights, costs = (np.array(column) for column in given_columns)
    live = (rates > 0) & (weights > 0)
    budget = float(10**log_budget * (costs * rates)[live].sum()) if live.any() else 1.0
    plan = allocate_large(rates, budget, weights, costs, engine=engine)
    if live.any():
        check(plan, rates, weights, costs, budget)
    else:
        assert (plan.spend, plan.multiplier, plan.gap, plan.freshness, plan.age, plan.dropped) == (
            0,
            0,
            0,
            1,
            0,
            0,
        )
        assert not plan.frequency.any()


def population(size: int, kind: str) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(5)
    if kind == "smooth":
        return np.exp(rng.normal(0, 2, size)), np.exp(rng.normal(0, 1, size))
    if kind == "wide":
        return 10 ** rng.uniform(-10, 10, size), np.ones(size)
    if kind == "classes":  # few distinct rates, as when all come from one estimator
        return rng.choice([1 / 365, 1 / 30, 1 / 7, 1.0, 24.0], size), np.ones(size)
    if kind == "half":  # many equal items among others
        rates, weights = population(size, "smooth")
        rates[::2], weights[::2] = 1.0, 1.0
        return rates, weights
    rates, weights = population(size, "smooth")
    return rates.astype(np.float32), weights.astype(np.float32)


@engines
@pytest.mark.parametrize("kind", ["smooth", "wide", "classes", "half", "float32"])
@pytest.mark.parametrize("per_item", with_slow_cases([1e-4, 0.5, 0.02, 20.0], kept=2))
def test_optimal_for_many_items(engine: str, kind: str, per_item: float) -> None:
    rates, weights = population(4000, kind)
    budget = per_item * float(np.median(rates)) * len(rates)
    out = np.empty(len(rates))
    plan = allocate_large(rates, budget, weights, out=out, engine=engine, threads=2)
    assert plan.frequency is out
    check(plan, rates, weights, np.ones(len(rates)), budget)


@pytest.mark.parametrize("with_costs", with_slow_cases([True, False], kept=1))
@pytest.mark.parametrize("budget", with_slow_cases([30.0, 3e4, 3e7], kept=1))
def test_engines_and_threads_agree(budget: float, with_costs: bool) -> None:
    rates, weights = population(100_000, "smooth")
    rates[::10], weights[5::10] = 0, 0
    costs = np.linspace(1, 2, len(rates)) if with_costs else None
    one, *others = [
        allocate_large(rates, budget, weights, costs, engine=engine, threads=threads)
        for engine, threads in [("numpy", 1), ("numpy", 3), ("numba", 1), ("numba", 3)]
    ]
    for other in others:
        np.testing.assert_allclose(
            other.frequency, one.frequency, rtol=1e-9, atol=1e-12 * one.frequency.max()
        )
        assert np.abs(other.frequency - one.frequency).sum() < 1e-12 * budget * 100
        assert other.multiplier == pytest.approx(one.multiplier, rel=1e-12)
        assert other.freshness == pytest.approx(one.freshness, rel=1e-12)
        assert other.age == pytest.approx(one.age, rel=1e-11)
        assert other.dropped == one.dropped


@engines
def test_float32_stays_float32(engine: str) -> None:
    rates, weights = population(50_000, "float32")
    single = allocate_large(rates, 1e4, weights, engine=engine)
    double = allocate_large(rates.astype(np.float64), 1e4, weights.astype(np.float64), engine=engine)
    assert single.frequency.dtype == np.float32
    np.testing.assert_array_equal(single.frequency, double.frequency.astype(np.float32))
    assert single.spend == double.spend
    assert allocate_large(rates, 1e4, weights.astype(np.float64)).frequency.dtype == np.float64


@engines
def test_denormal_float32_rates_are_rates(engine: str) -> None:
    rates = np.array([1e-44, 2e-44, 1e-40], dtype=np.float32)
    plan = allocate_large(rates, 1e-42, engine=engine, out=np.empty(3))
    check(plan, rates, np.ones(3), np.ones(3), 1e-42)


@engines
@pytest.mark.parametrize("budget", [1e-30, 1e-3, 1.0, 1e15])
def test_all_equal_share_equally(engine: str, budget: float) -> None:
    plan = allocate_large(np.full(20_000, 0.3), budget, engine=engine)
    np.testing.assert_allclose(plan.frequency, budget / 20_000, rtol=1e-9)
    assert plan.dropped == 0
    assert plan.freshness == pytest.approx(float(freshness_curve(0.3 * 20_000 / budget)), rel=1e-9)


@engines
def test_equal_items_at_the_cut_off_among_better_ones(engine: str) -> None:
    """5000 items of one rate get next to nothing: r is about 100, far beyond what 1−y in doubles shows."""
    rates = np.concatenate([np.linspace(0.1, 2.0, 100), np.full(5000, 10.0)])
    rich = allocate_large(rates[:100], 1e3, engine=engine).multiplier
    assert rich < 0.1
    rates[:100] /= 100  # now all of them are worth more than any of the 5000
    plan = allocate_large(rates, 600.0, engine=engine)
    check(plan, rates, np.ones(5100), np.ones(5100), 600.0)
    assert np.ptp(plan.frequency[100:]) == 0
    assert 50 < 10.0 / plan.frequency[-1] < 200


@engines
def test_no_budget_buys_nothing(engine: str) -> None:
    plan = allocate_large([3.0, 0.0, 2.0], 0.0, [1.0, 1.0, 2.0], engine=engine)
    assert not plan.frequency.any()
    assert (plan.spend, plan.dropped, plan.age) == (0.0, 2, np.inf)
    assert plan.freshness == pytest.approx(0.25)
    assert plan.multiplier == pytest.approx(1.0)  # w/(cλ) of the third


def test_monotone_in_budget() -> None:
    rates, weights = population(5000, "half")
    plans = [allocate_large(rates, budget, weights) for budget in np.geomspace(1, 1e5, 12)]
    for poor, rich in pairwise(plans):
        assert (rich.frequency >= poor.frequency * (1 - 1e-8)).all()
        assert rich.freshness > poor.freshness
        assert rich.multiplier < poor.multiplier
        assert rich.dropped <= poor.dropped


def test_scale_equivariance() -> None:
    rates, weights = population(5000, "smooth")
    plan = allocate_large(rates, 700.0, weights)
    faster = allocate_large(1e6 * rates, 7e8, 1e-3 * weights)
    assert np.abs(faster.frequency - 1e6 * plan.frequency).sum() < 1e-6 * 7e8
    assert faster.freshness == pytest.approx(plan.freshness, rel=1e-9)
    assert faster.multiplier == pytest.approx(1e-9 * plan.multiplier, rel=1e-8)


def test_a_crude_histogram_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a closer look at the edge the exact sums still bring the plan home."""
    monkeypatch.setattr(plan_search, "_LOOKS", 0)
    rates, weights = population(3000, "smooth")
    plan = allocate_large(rates, 500.0, weights)
    check(plan, rates, weights, np.ones(3000), 500.0)


def test_a_single_weight_or_cost_serves_all() -> None:
    plan = allocate_large([1.0, 2.0], 4.0, 3.0, 2.0)
    same = allocate_large([1.0, 2.0], 2.0)
    np.testing.assert_allclose(plan.frequency, same.frequency, rtol=1e-9)
    assert plan.multiplier == pytest.approx(1.5 * same.multiplier)


def test_wrong_questions() -> None:
    with pytest.raises(InputError, match="weight has 1 values for 2 items"):
        allocate_large([1.0, 2.0], 1.0, [1.0])
    with pytest.raises(InputError, match="budget is -1"):
        allocate_large([1.0], -1.0)
    with pytest.raises(InputError, match="out is int64 of shape"):
        allocate_large([1.0], 1.0, out=np.empty(1, dtype=np.int64))
    with pytest.raises(UsageError, match="did you mean 'numba'"):
        allocate_large([1.0], 1.0, engine="numbas")


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "find_spec", lambda _name: None)
    monkeypatch.setattr(large, "_NUMBA_FROM", 0)
    assert allocate_large([1.0, 2.0], 1.0).spend == pytest.approx(1.0)
    with pytest.raises(UsageError, match=r"pip install 'afresh\[fast\]'"):
        allocate_large([1.0], 1.0, engine="numba")


# To compile all of it takes five seconds. The small case imports it all, which is where the cache is missed.
WITHOUT_A_CACHE = [
    "passes_numba._compile(lambda x: x)(0)",
    "allocate_large.allocate_large([1.0, 2.0], 1.0, engine='numba').dropped",
]


@pytest.mark.parametrize("work", with_slow_cases(WITHOUT_A_CACHE, kept=1))
def test_where_no_cache_can_be_written_numba_compiles_anyway(work: str) -> None:
    code = (
        "import numba.core.caching as caching; caching.CacheImpl._locator_classes = []\n"
        f"from afresh.allocation.large import allocate_large, passes_numba\nprint({work})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
