"""The plan against a slow solution in high precision, for every objective of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.allocation.objectives import OBJECTIVES

DIGITS = 80

# What one more refresh per time buys by the table of allocation/objectives.py, written in frequencies.
MARGINALS: dict[tuple[str, str], Any] = {
    ("freshness", "fixed"): lambda a, f: (1 - (1 + a / f) * mp.exp(-a / f)) / a,
    ("freshness", "memoryless"): lambda a, f: a / (a + f) ** 2,
    ("age", "fixed"): lambda a, f: ((a / f) ** 2 / 2 - 1 + (1 + a / f) * mp.exp(-a / f)) / a**2,
    ("age", "memoryless"): lambda a, f: 1 / f**2 - 1 / (f + a) ** 2,
    ("harmonic", "fixed"): lambda a, f: (a / f - 1 + mp.exp(-a / f)) / a,
    ("harmonic", "memoryless"): lambda a, f: a / (f * (f + a)),
    ("missed", "fixed"): lambda a, f: a / (2 * f**2),
    ("missed", "memoryless"): lambda a, f: a / f**2,
    ("lag", "fixed"): lambda a, f: a / (3 * f**3),
    ("lag", "memoryless"): lambda a, f: 2 * a / f**3,
}
TOPS = {("freshness", "fixed"): lambda a: 1 / a, ("freshness", "memoryless"): lambda a: 1 / a}
# Flat near their tops, where a root finder crawls; the textbook inverses have digits to spare here.
INVERSES: dict[tuple[str, str], Any] = {
    ("freshness", "fixed"): lambda a, y: a / -(1 + mp.lambertw((y * a - 1) / mp.e, -1).real),
    ("freshness", "memoryless"): lambda a, y: mp.sqrt(a / y) - a,
}


@dataclass(frozen=True)
class Instance:
    rates: list[float]
    weights: list[float]
    costs: list[float]
    budget: float


@st.composite
def instances(draw: st.DrawFn, decades: float = 4.0) -> Instance:
    n = draw(st.integers(1, 5))

    def column(width: float) -> list[float]:
        return draw(st.lists(st.floats(-width, width).map(lambda x: 10.0**x), min_size=n, max_size=n))

    rates, weights, costs = column(decades), column(1.0), column(1.0)
    changes = float(np.dot(rates, costs))
    return Instance(rates, weights, costs, changes * 10.0 ** draw(st.floats(-1.0, 2.0)))


def exact_plan(key: tuple[str, str], instance: Instance, price: float) -> list[Any]:
    """The optimal frequencies; ``price`` only brackets the search."""
    marginal, top = MARGINALS[key], TOPS.get(key)
    columns = (instance.rates, instance.weights, instance.costs)
    rows = [tuple(map(mp.mpf, row)) for row in zip(*columns, strict=True)]

    def frequency(rate: Any, threshold: Any) -> Any:
        if top is not None and threshold >= top(rate):
            return mp.mpf(0)
        if key in INVERSES:
            return INVERSES[key](rate, threshold)
        # Bracketed on log f, where the marginal is nearly a straight line.
        low, high = mp.log(rate) - 40, mp.log(rate) + 40

        def miss(x: Any) -> Any:
            return mp.log(marginal(rate, mp.exp(x)) / threshold)

        return mp.exp(mp.findroot(miss, (low, high), solver="anderson", tol=1e-50, maxsteps=200))

    def plan(log_price: Any) -> list[Any]:
        return [frequency(a, mp.exp(log_price) * c / w) for a, w, c in rows]

    def miss(log_price: Any) -> Any:
        return sum(row[2] * f for row, f in zip(rows, plan(log_price), strict=True)) / instance.budget - 1

    middle, width = mp.log(mp.mpf(price)), mp.mpf(10) ** -4
    low, high = middle - width, middle + width
    assert miss(low) >= 0 >= miss(high)
    root = mp.findroot(miss, (low, high), solver="anderson", tol=1e-24, maxsteps=400, verify=False)
    return plan(root) if abs(miss(root)) < 1e-9 else at_the_edge(plan, miss, low, high)


def at_the_edge(plan: Any, miss: Any, low: Any, high: Any) -> list[Any]:
    """Where the price is that at which an item enters: its frequency is what the others leave.

    It falls as 1/|log of the distance| there, so that no price of 80 digits meets the budget.
    """
    for _ in range(230):
        middle = (low + high) / 2
        low, high = (middle, high) if miss(middle) > 0 else (low, middle)
    more, less = plan(low), plan(high)
    share = miss(high) / (miss(high) - miss(low))
    return [b + share * (a - b) for a, b in zip(more, less, strict=True)]


@pytest.mark.parametrize("key", sorted(MARGINALS), ids="-".join)
@given(instance=instances())
@example(instance=Instance([1, 0.1, 0.1], [1, 0.1, 10**0.25], [1, 0.1, 10**0.1875], 0.34253128117314563))
@settings(deadline=None, max_examples=settings().max_examples // 2)
def test_l1_distance_to_the_exact_plan(key: tuple[str, str], instance: Instance) -> None:
    plan = allocate(
        instance.rates,
        instance.budget,
        weights=instance.weights,
        costs=instance.costs,
        objective=key[0],
        order=key[1],
    )
    assert plan.spend == pytest.approx(instance.budget, rel=1e-9)
    with mp.workdps(DIGITS):
        exact = np.array([float(f) for f in exact_plan(key, instance, plan.multiplier)])
    distance = float((np.array(instance.costs) * np.abs(plan.frequency - exact)).sum())
    assert distance < 1e-6 * instance.budget


def test_every_objective_is_known_to_the_oracle() -> None:
    # Shuffled order has the same solver and other curves, which test_objectives.py compares with formulas.
    known = {key: objective for key, objective in OBJECTIVES.items() if key[1] != "shuffled"}
    assert set(MARGINALS) == set(known)
    assert set(TOPS) == {key for key, objective in known.items() if np.isfinite(objective.top)}
