"""Mixed bulks: their optimum is global, their rows add up, and one record is no bulk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from afresh.money.best_interval import best_intervals
from afresh.money.priced_items import build_items
from afresh.money.record_bulks import build_bulks, solve_bulks
from afresh.papers.razniewski.incomes import net_income

TIMES = settings(deadline=None)
SPECS = ["exponential", "linear", "weibull:0.7", "weibull:2", "lomax:1.5", "gamma:2", "geometric"]
amounts = st.floats(1e-2, 1e2)
extras = st.one_of(st.just(0.0), st.floats(1e-2, 1e1))
RECORDS = 6


def column(elements: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    return hnp.arrays(np.float64, RECORDS, elements=elements)


records = st.fixed_dictionaries(
    {
        "rate": column(st.one_of(st.just(0.0), amounts)),
        "benefit": column(st.one_of(st.just(0.0), amounts)),
        "cost": amounts,
        "update_cost": st.one_of(st.just(0.0), column(extras)),
        "stale_cost": st.one_of(st.just(0.0), column(extras)),
        "size": column(st.floats(1.0, 50.0)),
        "cost_of_size": st.sampled_from(["constant", "sqrt", "linear"]),
        "decay": st.one_of(
            st.sampled_from(SPECS), st.lists(st.sampled_from(SPECS), min_size=RECORDS, max_size=RECORDS)
        ),
    }
)
BULK = ["a", "b", "a", "c", "b", "a"]


def incomes_at(u: npt.NDArray[np.float64], given_records: dict[str, Any]) -> npt.NDArray[np.float64]:
    """NI of the bulks a, b, c at every u, straight from the formula."""
    free = given_records | {"cost": 0.0}
    each = net_income(u[:, None], **free)
    member = np.array([0, 1, 0, 2, 1, 0])
    sizes = np.bincount(member, given_records["size"])
    grow = {"constant": np.ones(3), "sqrt": np.sqrt(sizes), "linear": sizes}[given_records["cost_of_size"]]
    together = np.stack([each[:, member == bulk].sum(axis=1) for bulk in range(3)], axis=1)
    return np.asarray(together - given_records["cost"] * grow / u[:, None])


@TIMES
@given(records)
def test_no_interval_beats_it(given_records: dict[str, Any]) -> None:
    found = best_intervals(**given_records, bulk=BULK)
    member = np.array([0, 1, 0, 2, 1, 0])
    total = np.bincount(member, found.net_income)
    scale = np.bincount(
        member, given_records["size"] * (given_records["benefit"] + given_records["stale_cost"])
    )
    searched = incomes_at(np.geomspace(1e-5, 1e6, 1000), given_records).max(axis=0)
    # geometric records make the income jump: the search is then good to within a step
    slack = 2e-2 if "geometric" in given_records["decay"] else 1e-9
    assert np.all(total >= searched - slack * scale)
    for bulk in range(3):
        assert len(set(found.interval[member == bulk])) == 1
        assert len(set(found.futile[member == bulk])) == 1


@TIMES
@given(records)
def test_a_bulk_of_one_is_an_item(given_records: dict[str, Any]) -> None:
    given_records |= {"decay": "exponential"}
    alone, bulked = best_intervals(**given_records), best_intervals(**given_records, bulk=[""] * RECORDS)
    scale = given_records["size"] * (given_records["benefit"] + given_records["stale_cost"])
    assert np.all(np.abs(bulked.net_income - alone.net_income) <= 1e-9 * scale)
    clear = alone.net_income - net_income(np.inf, **given_records) > 1e-6 * scale
    assert bulked.interval[clear] == pytest.approx(alone.interval[clear], rel=1e-6)
    worth = given_records["benefit"] > 0
    finite = worth & np.isfinite(alone.break_even)
    assert bulked.break_even[finite] == pytest.approx(alone.break_even[finite], rel=1e-6, abs=1e-9)


@TIMES
@given(records, st.floats(1e-2, 1e2))
def test_equal_records_are_one_sized_item(given_records: dict[str, Any], rate: float) -> None:
    same: dict[str, Any] = {
        "benefit": 2.0,
        "cost": 3.0,
        "update_cost": 0.1,
        "stale_cost": 0.2,
        "cost_of_size": "sqrt",
    }
    bulked = best_intervals(np.full(RECORDS, rate), **same, size=given_records["size"], bulk=["x"] * RECORDS)
    sized = best_intervals(rate, **same, size=given_records["size"].sum())
    assert bulked.interval == pytest.approx(np.full(RECORDS, sized.interval), rel=1e-9)
    assert bulked.net_income.sum() == pytest.approx(float(sized.net_income), rel=1e-9)
    assert bulked.break_even == pytest.approx(np.full(RECORDS, sized.break_even), rel=1e-9)


@TIMES
@given(records)
def test_the_factor_is_where_refreshing_begins_to_pay(given_records: dict[str, Any]) -> None:
    given_records |= {"decay": "exponential"}
    best = solve_bulks(build_bulks(build_items(**given_records), BULK, given_records["cost_of_size"]))
    member = np.array([0, 1, 0, 2, 1, 0])
    known = np.isfinite(best.factor) & (best.factor > 0)
    for side, futile in ((1 - 1e-6, True), (1 + 1e-6, False)):
        scaled = given_records["benefit"] * (np.where(known, best.factor, 1.0) * side)[member]
        found = best_intervals(**given_records | {"benefit": scaled}, bulk=BULK)
        # with a stale cost a millionth of the benefit may be lost in rounding
        if not np.any(given_records["stale_cost"]):
            assert np.all(found.futile[known[member]] == futile)


def test_the_factor_is_exact_where_one_dear_update_makes_humps() -> None:
    """Bulks of three records at random paces, one with a dear update: a hump that barely pays is narrow."""
    rng = np.random.default_rng(0)
    records, bulks = 600, 200
    given_records: dict[str, Any] = {
        "rate": 10 ** rng.uniform(-2, 2, records),
        "benefit": 10 ** rng.uniform(-2, 2, records),
        "update_cost": np.where(np.arange(records) % 3 == 0, 10 ** rng.uniform(-1, 2, records), 0.0),
        "cost": 1.0,
    }
    member = np.repeat(np.arange(bulks), 3)
    best = solve_bulks(build_bulks(build_items(**given_records), member))
    for side, futile in ((1 - 1e-6, True), (1 + 1e-6, False)):
        scaled = given_records["benefit"] * (best.factor * side)[member]
        assert np.all(best_intervals(**given_records | {"benefit": scaled}, bulk=member).futile == futile)


def test_two_humps_and_the_higher_one_wins() -> None:
    """Fast and slow records without update cost and one between with a dear update: two local maxima."""
    rates, benefits, updates = (
        np.array([300.0, 1.0, 1e-3]),
        np.array([40.0, 3.0, 0.2]),
        np.array([0.0, 30.0, 0.0]),
    )
    u = np.geomspace(1e-4, 1e5, 200_000)
    both = net_income(u[:, None], rates, benefits, 0.0, update_cost=updates).sum(axis=1) - 0.03 / u
    rising = np.diff(both) > 0
    assert (rising[:-1] & ~rising[1:]).sum() == 2
    found = best_intervals(rates, benefits, 0.03, update_cost=updates, bulk=["x"] * 3)
    assert found.net_income.sum() == pytest.approx(both.max(), rel=1e-7)
    assert found.interval[0] == pytest.approx(u[both.argmax()], rel=1e-3)


def test_many_bulks_at_once_are_each_of_them() -> None:
    rng = np.random.default_rng(3)
    rates, bulk = 10 ** rng.uniform(-2, 1, 400), rng.integers(0, 60, 400)
    found = best_intervals(rates, 1.0, 2.0, update_cost=0.05, bulk=bulk.tolist())
    for label in np.unique(bulk):
        some = bulk == label
        alone = best_intervals(rates[some], 1.0, 2.0, update_cost=0.05, bulk=["x"] * int(some.sum()))
        assert found.interval[some] == pytest.approx(alone.interval, rel=1e-9)
        assert found.net_income[some] == pytest.approx(alone.net_income, abs=1e-9)


def test_static_and_worthless_bulks_are_futile() -> None:
    found = best_intervals([0.0, 0.0, 1.0], [1.0, 1.0, 0.0], 1.0, bulk=["a", "a", "b"])
    assert found.futile.all()
    assert found.net_income == pytest.approx([1.0, 1.0, 0.0])
    assert found.break_even.tolist() == [np.inf, np.inf, np.inf]


def test_free_refreshes_of_a_bulk_are_made_all_the_time() -> None:
    found = best_intervals([1.0, 2.0], 5.0, 0.0, update_cost=1.0, bulk=["a", "a"])
    assert found.interval.tolist() == [0.0, 0.0]
    assert found.freshness.tolist() == [1.0, 1.0]
    assert found.net_income == pytest.approx([4.0, 3.0])


def test_a_bulk_is_refreshed_just_before_the_step_that_costs_most() -> None:
    """The income has a narrow maximum just before each step of a record; the best is not the nearest one."""
    rng = np.random.default_rng(0)
    steps = np.arange(1, 200) * (1 - 1e-12)
    for _ in range(40):
        count = int(rng.integers(2, 6))
        records: dict[str, Any] = {
            "rate": 10 ** rng.uniform(-2, 1, count),
            "benefit": 10 ** rng.uniform(-2, 1, count),
            "update_cost": 10 ** rng.uniform(-2, 1.5, count),
            "stale_cost": 10 ** rng.uniform(-2, 1, count),
            "decay": [str(name) for name in rng.choice(["geometric", "exponential", "linear"], count)],
        }
        cost = float(10 ** rng.uniform(-2, 1.5))
        found = best_intervals(**records, cost=cost, bulk=["a"] * count)
        searched = net_income(steps[:, None], **records, cost=0.0).sum(axis=1) - cost / steps
        at_stake = float(np.sum(records["benefit"]) + np.sum(records["stale_cost"]))
        assert float(found.net_income.sum()) >= float(searched.max()) - 1e-9 * at_stake
