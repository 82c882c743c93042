"""Statuses, marginals, the return of dropped items and the next unit of budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.allocation.explain import STATUSES, explain_parts, gain_of_next_unit, returns_at
from afresh.allocation.problem import ProblemOptions
from afresh.model.decay import Exponential


def test_every_status_in_its_order() -> None:
    options = ProblemOptions(
        weights=[1, 0, 1, 1, 1, 1, 1, 1],
        lower=[0, 0, 0, 0, 0, 0.3, 0, 0],
        upper=[9, 9, 0.2, 9, 9, 9, 9, 9],
        groups=["", "", "", "host", "", "", "", "host"],
        caps={"host": 0.5},
    )
    rates = [0.0, 1.0, 1.0, 1.0, 1.0, 9.0, 50.0, 90.0]
    plan = allocate(rates, 2.0, **options)
    why = explain_parts(rates, plan, **options)(slice(None))
    words = ["static", "unweighted", "ceiling", "capped", "kept", "floor", "dropped", "dropped"]
    assert [STATUSES[code] for code in why.status] == words
    assert set(words) == set(STATUSES)
    assert plan.dropped == 2
    assert (why.marginal[:2] == 0).all()
    assert why.marginal[3] > plan.multiplier
    assert why.marginal[4] == pytest.approx(plan.multiplier)
    assert why.marginal[6] == pytest.approx(1 / 50)


def test_status_is_small() -> None:
    rates = np.ones(1000, dtype=np.float32)
    assert explain_parts(rates, allocate(rates, 5.0))(slice(None)).status.dtype == np.uint8


@given(
    rates=st.lists(st.floats(-2, 2).map(lambda x: 10.0**x), min_size=2, max_size=8, unique=True),
    weights=st.lists(st.floats(-1, 1).map(lambda x: 10.0**x), min_size=8, max_size=8),
    update=st.sampled_from([0.0, 2.0]),
)
@settings(deadline=None)
def test_items_return_at_the_budget_told(rates: list[float], weights: list[float], update: float) -> None:
    options = ProblemOptions(weights=weights[: len(rates)], update_costs=update)
    budgets = returns_at(rates, range(len(rates)), **options)
    for item, budget in enumerate(budgets):
        before = allocate(rates, budget * (1 - 1e-6), **options)
        after = allocate(rates, budget * (1 + 1e-3) + 1e-9, **options)
        assert before.frequency[item] <= 1e-6 * max(budget, 1e-9)
        assert after.frequency[item] > 0


def test_what_never_returns() -> None:
    never = returns_at([0.0, 1.0, 2.0, 1.0], [0, 1, 2, 3], weights=[1, 0, 1, 1], upper=[9, 9, 0, 9])
    np.testing.assert_array_equal(never, [np.inf, np.inf, np.inf, 0.0])
    crowded = returns_at([1.0, 9.0, 2.0], [1], groups=["a", "a", "b"], caps={"a": 0.5})
    np.testing.assert_array_equal(crowded, [np.inf])


def test_the_next_unit_buys_a_little_less_than_the_multiplier() -> None:
    rates = [1.0, 2.0, 3.0, 4.0, 5.0]
    now, then = allocate(rates, 5e3), allocate(rates, 5e3 + 1.0)
    gain = gain_of_next_unit(rates, 5e3)
    assert then.multiplier < gain < now.multiplier
    assert gain == pytest.approx(5 * (then.freshness - now.freshness), rel=1e-6)


def test_the_next_unit_where_nothing_is_left_to_buy() -> None:
    assert gain_of_next_unit([1.0, 2.0], 9.0, upper=1.0) == 0


def test_parts_say_what_the_whole_says() -> None:
    rng = np.random.default_rng(2)
    rates = rng.gamma(0.5, 2.0, 50)
    options: dict[str, Any] = {"weights": rng.random(50), "lower": np.full(50, 0.01)}
    plans: list[dict[str, Any]] = [
        options,
        {"decay": ["linear", "weibull:2"] * 25},
        {"decay": Exponential(rates)},
        {"groups": np.arange(50) % 3, "caps": {1: 0.5}},
    ]
    for chosen in plans:
        plan = allocate(rates, 20, **chosen)
        whole, part = (
            explain_parts(rates, plan, **chosen)(slice(None)),
            explain_parts(rates, plan, **chosen)(slice(10, 30)),
        )
        for name in ("freshness", "age", "marginal", "status"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[10:30])


def test_where_a_step_is_always_caught_a_further_unit_gains_nothing() -> None:
    rates = [1.0, 2.0]
    plan = allocate(rates, 50, decay="geometric")
    assert plan.freshness == 1
    np.testing.assert_array_equal(explain_parts(rates, plan, decay="geometric")(slice(None)).marginal, 0)
