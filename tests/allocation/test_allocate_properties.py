"""What holds for any plan, checked for every objective of the table."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import POLICIES, allocate
from afresh.allocation.explain import explain_parts
from afresh.allocation.objectives import OBJECTIVES
from afresh.allocation.problem import ProblemOptions
from afresh.values.results import Allocation

every = pytest.mark.parametrize("key", sorted(OBJECTIVES), ids="-".join)
# Half as many as elsewhere: each property runs for ten objectives.
some = settings(deadline=None, max_examples=settings().max_examples // 2)


@dataclass(frozen=True)
class Instance:
    rates: np.ndarray
    weights: np.ndarray
    costs: np.ndarray
    budget: float

    def plan(self, key: tuple[str, str], policy: str = "optimal") -> Allocation:
        return allocate(self.rates, self.budget, policy=policy, **self.options(key))

    def options(self, key: tuple[str, str]) -> ProblemOptions:
        return ProblemOptions(weights=self.weights, costs=self.costs, objective=key[0], order=key[1])


@st.composite
def instances(draw: st.DrawFn, decades: float = 10.0) -> Instance:
    """Up to 12 items over 20 decades of rates, some static, some without weight."""
    n = draw(st.integers(1, 12))

    def column(width: float, zeros: bool) -> np.ndarray:
        number = st.floats(-width, width).map(lambda x: 10.0**x)
        return np.array(draw(st.lists(number | st.just(0.0) if zeros else number, min_size=n, max_size=n)))

    rates, weights, costs = column(decades, True), column(3.0, True), column(3.0, False)
    changes = float(np.dot(rates, costs)) or 1.0
    return Instance(rates, weights, costs, changes * 10.0 ** draw(st.floats(-6.0, 6.0)))


def active(instance: Instance) -> np.ndarray:
    return (instance.rates > 0) & (instance.weights > 0)


@every
@given(instance=instances())
@some
def test_spends_the_budget_and_proves_it(key: tuple[str, str], instance: Instance) -> None:
    plan = instance.plan(key)
    if active(instance).any():
        assert plan.spend == pytest.approx(instance.budget, rel=1e-9)
        assert float(instance.costs @ plan.frequency) == pytest.approx(instance.budget, rel=1e-9)
        # One unit is worth the multiplier, the whole budget at least that: the gap is tiny beside it.
        assert 0 <= plan.gap <= 1e-9 * plan.multiplier * instance.budget
    assert (plan.frequency[~active(instance)] == 0).all()
    assert plan.dropped == ((plan.frequency == 0) & active(instance)).sum()
    assert 0 <= plan.freshness <= 1
    assert plan.age >= 0


@every
@given(instance=instances(decades=4.0))
@some
def test_kkt_conditions(key: tuple[str, str], instance: Instance) -> None:
    """Every refreshed item is worth the same at the margin, every dropped one no more."""
    plan = instance.plan(key)
    marginal = explain_parts(instance.rates, plan, **instance.options(key))(slice(None)).marginal
    kept = plan.frequency > 0
    # 1−g loses its digits as r grows; 1e−9 is far above that and far below what a wrong plan shows.
    np.testing.assert_allclose(marginal[kept], plan.multiplier, rtol=1e-9)
    assert (marginal[~kept] <= plan.multiplier * (1 + 1e-9)).all()


@every
@given(instance=instances(), scale=st.sampled_from([2.0**-20, 8.0, 3600.0]))
@some
def test_scale_equivariance(key: tuple[str, str], instance: Instance, scale: float) -> None:
    plan = instance.plan(key)
    faster = replace(instance, rates=instance.rates * scale, budget=instance.budget * scale).plan(key)
    dearer = replace(instance, costs=instance.costs * scale, budget=instance.budget * scale).plan(key)
    heavier = replace(instance, weights=instance.weights * scale).plan(key)
    tolerance = 1e-9 * instance.budget
    for other, factor in ((faster, scale), (dearer, 1.0), (heavier, 1.0)):
        difference = instance.costs * np.abs(other.frequency / factor - plan.frequency)
        assert difference.sum() <= tolerance
    assert heavier.multiplier == pytest.approx(scale * plan.multiplier, rel=1e-6)


@every
@given(instance=instances(), more=st.floats(1.0, 10.0))
@some
def test_monotone_in_the_budget(key: tuple[str, str], instance: Instance, more: float) -> None:
    plan, richer = instance.plan(key), replace(instance, budget=instance.budget * more).plan(key)
    assert (richer.frequency >= plan.frequency * (1 - 1e-9) - 1e-12 * instance.budget / instance.costs).all()
    assert richer.multiplier <= plan.multiplier * (1 + 1e-9)


@every
@given(instance=instances(), more=st.floats(1.0, 10.0))
@some
def test_monotone_in_the_weight(key: tuple[str, str], instance: Instance, more: float) -> None:
    weights = instance.weights.copy()
    weights[0] *= more
    before, after = instance.plan(key), replace(instance, weights=weights).plan(key)
    slack = 1e-12 * instance.budget / instance.costs
    assert after.frequency[0] >= before.frequency[0] * (1 - 1e-9) - slack[0]
    assert (after.frequency[1:] <= before.frequency[1:] * (1 + 1e-9) + slack[1:]).all()


@every
@given(instance=instances(), data=st.data())
@some
def test_order_of_the_items_does_not_matter(
    key: tuple[str, str], instance: Instance, data: st.DataObject
) -> None:
    order = np.array(data.draw(st.permutations(range(len(instance.rates)))))
    plan = instance.plan(key)
    shuffled = Instance(
        instance.rates[order], instance.weights[order], instance.costs[order], instance.budget
    ).plan(key)
    difference = instance.costs[order] * np.abs(shuffled.frequency - plan.frequency[order])
    assert difference.sum() <= 1e-9 * instance.budget


@every
@given(instance=instances(decades=4.0))
@some
def test_no_policy_beats_the_optimal_one_by_more_than_its_gap_says(
    key: tuple[str, str], instance: Instance
) -> None:
    if not active(instance).any():
        return
    best = instance.plan(key)
    for policy in POLICIES[1:]:
        plan = instance.plan(key, policy)
        assert plan.spend == pytest.approx(instance.budget, rel=1e-9)
        lead = total(instance, key, best) - total(instance, key, plan)
        scale = abs(total(instance, key, best)) + abs(total(instance, key, plan))
        assert plan.gap == pytest.approx(lead, rel=1e-6, abs=1e-9 * scale)
        assert plan.gap >= 0


def total(instance: Instance, key: tuple[str, str], plan: Allocation) -> float:
    objective, rows = OBJECTIVES[key], active(instance)
    rates = instance.rates[rows]
    with np.errstate(divide="ignore"):
        values = objective.value(rates / plan.frequency[rows]) * rates ** (1.0 - objective.power)
    return float(instance.weights[rows] @ values)


@given(instance=instances(), more=st.floats(0.1, 10.0))
@settings(deadline=None)
def test_update_costs(instance: Instance, more: float) -> None:
    """c·f + c_u·λ·F is the spend, and the margin counts both: no item is worth more than any other."""
    update = more * instance.costs[::-1]
    plan = allocate(
        instance.rates, instance.budget, weights=instance.weights, costs=instance.costs, update_costs=update
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        r = instance.rates / plan.frequency
        fresh = np.where(plan.frequency > 0, -np.expm1(-r) / r, 0.0)
    spend = instance.costs * plan.frequency + update * instance.rates * fresh
    spend = spend[instance.rates > 0]
    assert float(spend.sum()) == pytest.approx(plan.spend, rel=1e-9, abs=1e-300)
    if not active(instance).any():
        return
    assert plan.spend == pytest.approx(instance.budget, rel=1e-9)
    assert plan.gap <= 1e-9 * max(plan.multiplier * instance.budget, 1e-300)
    why = explain_parts(
        instance.rates, plan, weights=instance.weights, costs=instance.costs, update_costs=update
    )(slice(None))
    kept = plan.frequency > 0
    np.testing.assert_allclose(why.marginal[kept], plan.multiplier, rtol=1e-6)
    assert (why.marginal[~kept] <= plan.multiplier * (1 + 1e-9)).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_float32_in_float32_out(policy: str) -> None:
    rates = np.array([1, 2, 3, 4, 5], dtype=np.float32)
    narrow, wide = allocate(rates, 5, policy=policy), allocate(rates.astype(np.float64), 5, policy=policy)
    assert narrow.frequency.dtype == np.float32
    np.testing.assert_array_equal(narrow.frequency, wide.frequency.astype(np.float32))
    assert narrow.spend == wide.spend


@every
def test_many_items_agree_with_few(key: tuple[str, str]) -> None:
    """Past some thousand items the search starts from a histogram: copies of few items get the same plan."""
    rates, weights = np.logspace(-3, 3, 60), np.linspace(1.0, 3.0, 60)
    few = allocate(rates, 30.0, weights=weights, objective=key[0], order=key[1])
    many = allocate(
        np.tile(rates, 100), 3000.0, weights=np.tile(weights, 100), objective=key[0], order=key[1]
    )
    for start, end in itertools.pairwise(range(0, 6001, 60)):
        np.testing.assert_allclose(many.frequency[start:end], few.frequency, rtol=1e-8)
    assert many.gap <= 1e-9 * many.multiplier * 3000.0


def test_past_a_hundred_thousand_items_the_plan_is_the_same() -> None:
    """There another solver takes over; ceilings that never bind keep it out."""
    rng = np.random.default_rng(11)
    rates, weights = rng.lognormal(0, 2, 100_000), rng.lognormal(0, 1, 100_000)
    large = allocate(rates, 5000.0, weights=weights)
    exact = allocate(rates, 5000.0, weights=weights, upper=1e9)
    assert np.abs(large.frequency - exact.frequency).sum() < 1e-6 * 5000.0
    assert large.spend == pytest.approx(exact.spend, rel=1e-9)
    assert large.freshness == pytest.approx(exact.freshness, rel=1e-9)
    assert large.multiplier == pytest.approx(exact.multiplier, rel=1e-6)
    assert large.dropped == exact.dropped
