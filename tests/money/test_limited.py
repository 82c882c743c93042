"""Plans that money or the number of refreshes holds back: one price for all items, and no swap pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from afresh.allocation.allocate import allocate
from afresh.money.best_interval import best_intervals
from afresh.money.limited import LimitedPlan, with_money, with_refreshes
from afresh.money.total_refreshes import best_total_refreshes
from afresh.papers.razniewski.incomes import against_uniform, net_income
from afresh.values.errors import InputError

TIMES = settings(deadline=None)
SPECS = ["exponential", "linear", "weibull:0.7", "lomax:1.5"]
amounts = hnp.arrays(np.float64, 6, elements=st.floats(1e-2, 1e1))
columns = st.fixed_dictionaries(
    {
        "rate": amounts,
        "benefit": amounts,
        "cost": hnp.arrays(np.float64, 6, elements=st.floats(1e-3, 1.0)),
        "update_cost": st.one_of(st.just(0.0), st.floats(1e-3, 1e-1)),
        "decay": st.sampled_from(SPECS),
    }
)


def assert_no_swap_pays(plan: LimitedPlan, given_columns: dict[str, Any], use: Any) -> None:
    """One more unit of the limit earns the price at every item that is refreshed: no swap can pay."""
    frequency, scale = plan.frequency, given_columns["benefit"].sum()
    kept = np.flatnonzero(frequency > 1e-6 * frequency.max()).tolist()
    slope = []
    for i in kept:
        step = 1e-5 * frequency[i]
        ends = [frequency + sign * step * (np.arange(6) == i) for sign in (-1, 1)]
        income = [net_income(1 / f[i], **one_of(given_columns, i)) for f in ends]
        used = [use(f[i], one_of(given_columns, i)) for f in ends]
        slope.append((income[1] - income[0]) / (used[1] - used[0]))
    assert slope == pytest.approx([plan.price] * len(slope), rel=1e-3, abs=1e-6 * scale)


def one_of(given_columns: dict[str, Any], i: int) -> dict[str, Any]:
    return {
        name: value[i] if isinstance(value, np.ndarray) else value for name, value in given_columns.items()
    }


def spent(frequency: float, item: dict[str, Any]) -> float:
    """Cost per time of one item: the income it would have for nothing, less its income."""
    free = item | {"cost": 0.0, "update_cost": 0.0}
    return float(net_income(1 / frequency, **free) - net_income(1 / frequency, **item))


@TIMES
@given(columns, st.floats(0.05, 0.95))
def test_limited_refreshes_have_one_price(given_columns: dict[str, Any], share: float) -> None:
    given_columns |= {"decay": "exponential"}
    free = best_intervals(**given_columns)
    limit = share * float(free.frequency.sum())
    if limit == 0:
        return
    plan = with_refreshes(**given_columns, refreshes=limit)
    assert plan.refreshes == pytest.approx(limit, rel=1e-9)
    assert plan.price > 0
    assert_no_swap_pays(plan, given_columns, lambda f, _: f)
    assert plan.net_income.sum() <= free.net_income.sum() + 1e-9


@TIMES
@given(columns, st.floats(0.05, 0.95))
def test_limited_money_has_one_price(given_columns: dict[str, Any], share: float) -> None:
    given_columns |= {"decay": "exponential"}
    all_of_it = with_money(**given_columns, money=1e9)
    if all_of_it.spend == 0:
        return
    plan = with_money(**given_columns, money=share * all_of_it.spend)
    assert plan.spend == pytest.approx(share * all_of_it.spend, rel=1e-9)
    assert_no_swap_pays(plan, given_columns, spent)
    assert all_of_it.price == 0
    assert all_of_it.interval == pytest.approx(best_intervals(**given_columns).interval)


@TIMES
@given(columns)
def test_money_is_a_budget(given_columns: dict[str, Any]) -> None:
    """Within a binding budget of money the plan is that of allocate, with μ = 1 + price."""
    given_columns |= {"decay": "exponential", "update_cost": 0.0}
    rate, benefit, cost = (given_columns[name] for name in ("rate", "benefit", "cost"))
    free = with_money(**given_columns, money=1e9)
    if free.spend == 0:
        return
    plan = with_money(**given_columns, money=0.5 * free.spend)
    budget = allocate(rate, 0.5 * free.spend, weights=benefit, costs=cost)
    assert plan.frequency == pytest.approx(budget.frequency, rel=1e-6, abs=1e-9 * budget.frequency.max())
    assert 1 + plan.price == pytest.approx(budget.multiplier, rel=1e-6)


@pytest.mark.parametrize("decay", SPECS)
def test_items_that_give_up_together_share_what_is_left(decay: str) -> None:
    """Equal items leave at one price; the limit is met all the same, each getting its part."""
    plan = with_refreshes(np.full(10, 0.3), 1.0, 0.5, 0.2, decay=decay)
    assert plan.refreshes == pytest.approx(0.2)
    assert plan.frequency == pytest.approx(np.full(10, 0.02))


def test_a_limit_of_nothing() -> None:
    plan = with_refreshes([0.2, 0.4], 1.0, 1.0, 0)
    assert plan.refreshes == 0
    assert plan.interval.tolist() == [np.inf, np.inf]
    assert plan.price == pytest.approx(1 / 0.2 - 1.0)  # what the first refresh of the slower item would earn
    for limit in (-1.0, np.inf, np.nan):
        with pytest.raises(InputError, match="refreshes is"):
            with_refreshes([0.2], 1.0, 1.0, limit)


def test_wrong_lengths_are_named() -> None:
    for ask in (
        lambda: best_total_refreshes([1.0, 2.0], 1.0, 1.0, count=[1, 2, 3]),
        lambda: against_uniform([1.0, 2.0], 1.0, 1.0, interval=1.0, count=[1, 2, 3]),
    ):
        with pytest.raises(InputError, match="lengths differ: rate 2, count 3"):
            ask()


def test_float32_rates_are_solved_in_double() -> None:
    rates = np.array([0.2, 0.4, 0.8], dtype=np.float32)
    plan = with_refreshes(rates, 1.0, 0.5, 0.3)
    assert plan.frequency.dtype == np.float32
    assert plan.refreshes == pytest.approx(0.3, rel=1e-12)
