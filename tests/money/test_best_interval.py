"""Many items at once: agreement with one at a time, equivariance, monotony, verdicts and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from afresh.model.decay import Weibull
from afresh.money.best_interval import best_interval, best_intervals
from afresh.money.terms import VERDICT_TEXTS, RefreshVerdict
from afresh.papers.razniewski.incomes import net_income
from afresh.values.errors import InputError, UsageError

TIMES = settings(deadline=None)
SPECS = ["exponential", "linear", "geometric", "weibull:0.7", "weibull:2", "lomax:1.5"]
# geometric decay has a clock of its own, so that time cannot be rescaled
RESCALED = [spec for spec in SPECS if spec != "geometric"]


def column(low: float, high: float, *, zero: bool = False) -> st.SearchStrategy[npt.NDArray[np.float64]]:
    positive = st.floats(low, high)
    return hnp.arrays(np.float64, 5, elements=st.one_of(st.just(0.0), positive) if zero else positive)


columns = st.fixed_dictionaries(
    {
        "rate": column(1e-3, 1e3, zero=True),
        "benefit": column(1e-3, 1e3, zero=True),
        "cost": column(1e-3, 1e2),
        "update_cost": column(1e-3, 1e1, zero=True),
        "stale_cost": column(1e-3, 1e1, zero=True),
        "size": column(1.0, 100.0),
        "decay": st.lists(st.sampled_from(SPECS), min_size=5, max_size=5),
        "cost_of_size": st.sampled_from(["constant", "sqrt", "linear"]),
    }
)


@TIMES
@given(columns)
def test_many_are_each_of_them(given_columns: dict[str, Any]) -> None:
    many = best_intervals(**given_columns)
    for i in range(5):
        options = {
            name: value if name == "cost_of_size" else value[i] for name, value in given_columns.items()
        }
        one = best_interval(**options)
        assert one.futile == many.futile[i]
        assert one.interval == pytest.approx(many.interval[i], rel=1e-12)
        assert one.net_income == pytest.approx(many.net_income[i], rel=1e-12)
        assert one.break_even == pytest.approx(many.break_even[i], rel=1e-12)
        assert one.reason.startswith(VERDICT_TEXTS[RefreshVerdict(int(many.verdict[i]))])
        assert many.frequency[i] == pytest.approx(1 / one.interval)


@TIMES
@given(columns)
def test_income_is_that_of_the_interval_and_none_is_higher(given_columns: dict[str, Any]) -> None:
    best = best_intervals(**given_columns)
    scale = given_columns["size"] * (given_columns["benefit"] + given_columns["stale_cost"])
    said = net_income(best.interval, **given_columns)
    assert np.all(np.abs(said - best.net_income) <= 1e-11 * scale)
    others = net_income([[u] for u in np.geomspace(1e-4, 1e5, 200)], **given_columns)
    assert np.all(others <= best.net_income + 1e-11 * scale)
    never = net_income(np.inf, **given_columns)
    assert np.array_equal(best.futile, np.isinf(best.interval))
    assert np.all((best.net_income > never) | best.futile)
    assert np.all((best.net_income == never) | ~best.futile)


@TIMES
@given(columns)
def test_futile_below_the_break_even_and_only_there(given_columns: dict[str, Any]) -> None:
    best = best_intervals(**given_columns)
    known = np.isfinite(best.break_even) & (best.break_even > 0)
    # a hair more than the rounding of the break-even itself, which stale costs may dwarf
    level = np.where(known, best.break_even, 0.0)
    margin = 1e-6 * (level + given_columns["stale_cost"])
    above = best_intervals(**given_columns | {"benefit": level + margin})
    below = best_intervals(**given_columns | {"benefit": np.maximum(level - margin, 0.0)})
    assert not above.futile[known].any()
    assert below.futile[known & (level > margin)].all()
    assert best.futile[np.isinf(best.break_even)].all()


@pytest.mark.parametrize("spec", RESCALED)
@TIMES
@given(given_columns=columns, factor=st.sampled_from([1e-6, 0.125, 60.0, 1e9]))
def test_another_unit_of_time(spec: str, given_columns: dict[str, Any], factor: float) -> None:
    """In units ``factor`` times as long, rates and benefits grow by it, intervals shrink."""
    base = given_columns | {"decay": spec}
    here = best_intervals(**base)
    there = best_intervals(**base | {name: base[name] * factor for name in ("rate", "benefit", "stale_cost")})
    scale = base["size"] * (base["benefit"] + base["stale_cost"])
    assert there.net_income / factor == pytest.approx(here.net_income, abs=1e-9 * scale.max())
    clear = here.net_income - net_income(np.inf, **base) > 1e-6 * scale
    assert there.interval[clear] * factor == pytest.approx(here.interval[clear], rel=1e-6)


@TIMES
@given(columns, st.sampled_from([2.0**-20, 0.5, 1024.0]))
def test_another_currency(given_columns: dict[str, Any], factor: float) -> None:
    """Powers of two, so that nothing rounds: intervals stay to the last bits, incomes are multiplied."""
    money = ("benefit", "cost", "update_cost", "stale_cost")
    here = best_intervals(**given_columns)
    there = best_intervals(**given_columns | {name: given_columns[name] * factor for name in money})
    assert there.interval == pytest.approx(here.interval, rel=1e-12)
    assert there.net_income == pytest.approx(factor * here.net_income, rel=1e-12, abs=1e-300)
    assert there.break_even == pytest.approx(factor * here.break_even, rel=1e-12)


@TIMES
@given(columns, st.floats(1.001, 100))
def test_worth_more_is_refreshed_more_and_earns_more(given_columns: dict[str, Any], factor: float) -> None:
    base = best_intervals(**given_columns)
    richer = best_intervals(**given_columns | {"benefit": factor * given_columns["benefit"]})
    dearer = best_intervals(**given_columns | {"cost": factor * given_columns["cost"]})
    slack = 1e-9
    assert np.all(richer.interval <= base.interval * (1 + slack))
    assert np.all(dearer.interval >= base.interval * (1 - slack))
    scale = given_columns["size"] * (given_columns["benefit"] + given_columns["stale_cost"])
    assert np.all(richer.net_income >= base.net_income - slack * scale)
    assert np.all(dearer.net_income <= base.net_income + slack * scale)


def test_sizes_multiply_benefits_and_costs() -> None:
    sized = best_interval(0.24, 1.0, 2.0, update_cost=0.1, stale_cost=0.5, size=9, cost_of_size="sqrt")
    plain = best_interval(0.24, 9.0, 6.0, update_cost=0.9, stale_cost=4.5)
    assert sized.interval == plain.interval
    assert sized.net_income == plain.net_income
    assert sized.break_even == pytest.approx(plain.break_even / 9)
    own = best_interval(0.24, 1.0, 2.0, size=9, cost_of_size=lambda n: n**0.25)
    assert own.interval == best_interval(0.24, 9.0, 2.0 * 9**0.25).interval


def test_float32_in_float32_out() -> None:
    rates = np.array([0.457, 0.316], dtype=np.float32)
    found = best_intervals(rates, 1.0, 1.0)
    assert found.interval.dtype == found.net_income.dtype == np.float32
    assert found.interval == pytest.approx(best_intervals(rates.astype(float), 1.0, 1.0).interval, rel=1e-7)
    assert best_intervals(rates, np.ones(2), 1.0).interval.dtype == np.float64


def test_shapes_are_kept_and_empty_is_fine() -> None:
    grid = best_intervals(np.array([[0.1], [0.2]]), np.array([1.0, 2.0, 3.0]), 1.0)
    assert grid.interval.shape == grid.futile.shape == grid.verdict.shape == (2, 3)
    for decay in ("exponential", "weibull:2"):
        assert best_intervals([], 1.0, 1.0, decay=decay).interval.shape == (0,)
    assert best_intervals([], 1.0, 1.0, decay=[]).interval.shape == (0,)
    assert best_intervals([], 1.0, 1.0, bulk=[]).interval.shape == (0,)


def test_many_items_are_solved_in_blocks() -> None:
    """More items than one block holds, half of them futile."""
    rates = np.geomspace(1e-6, 1e6, 200_001)
    found = best_intervals(rates, 1.0, 1.0, decay="weibull:1")
    assert found.interval[rates < 0.99] == pytest.approx(
        best_intervals(rates, 1.0, 1.0).interval[rates < 0.99]
    )
    assert found.futile[rates >= 1.001].all()


@pytest.mark.parametrize(
    ("columns", "verdict"),
    [
        ({"rate": 0.1}, RefreshVerdict.PAYS),
        ({"rate": 0.0}, RefreshVerdict.STATIC),
        ({"rate": 0.1, "benefit": 0.0}, RefreshVerdict.WORTHLESS),
        ({"rate": 10.0}, RefreshVerdict.TOO_DEAR),
        ({"rate": 0.5, "update_cost": 3.0}, RefreshVerdict.TOO_DEAR),
        ({"rate": 1.0, "cost": 1e3, "decay": "lomax:1"}, RefreshVerdict.TOO_RARE),
    ],
)
def test_verdicts(columns: dict[str, Any], verdict: RefreshVerdict) -> None:
    found = best_intervals(**{"benefit": 1.0, "cost": 1.0} | columns)
    assert found.verdict == verdict
    assert found.futile == (verdict is not RefreshVerdict.PAYS)


def test_reasons_name_the_break_even() -> None:
    assert "pays above a benefit of 20, 10 times the cost" in best_interval(10.0, 1.0, 2.0).reason
    assert best_interval(0.0, 1.0, 2.0).reason == VERDICT_TEXTS[RefreshVerdict.STATIC]
    assert best_interval(0.1, 1.0, 2.0).break_even_ratio == pytest.approx(0.1)
    assert best_interval(0.1, 1.0, 0.0, update_cost=1.0).break_even_ratio == np.inf


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"rate": [-1.0]}, r"rate\[0\] is -1.0"),
        ({"benefit": np.nan}, "benefit is nan"),
        ({"cost": [1.0, np.inf]}, r"cost\[1\] is inf"),
        ({"size": 0}, "size is 0: must be above 0"),
        ({"rate": [1.0, 2.0], "cost": [1.0, 2.0, 3.0]}, "lengths differ: rate 2, cost 3"),
        ({"rate": [1.0, 2.0], "decay": ["linear"] * 3}, "lengths differ: rate 2, decay 3"),
        ({"rate": [1.0, 2.0], "bulk": ["a"]}, "lengths differ: rate 2, bulk 1"),
        ({"rate": [1.0, 2.0], "decay": Weibull([1.0, 2.0, 3.0], 2.0)}, "lengths differ: decay 3"),
        ({"rate": [1.0, 2.0], "cost": [1.0, 2.0], "bulk": ["a", "a"]}, "one refresh of a bulk has one cost"),
        ({"size": [2.0, 3.0], "cost_of_size": lambda n: n[:1]}, "returned 1 numbers for 2 sizes"),
        ({"size": 2.0, "cost_of_size": lambda n: -n}, "cost of size.* is -2.0"),
    ],
)
def test_wrong_data_is_named(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        best_intervals(**{"rate": 1.0, "benefit": 1.0, "cost": 1.0} | columns)


def test_wrong_questions_are_named() -> None:
    with pytest.raises(UsageError, match="did you mean 'linear'"):
        best_interval(1.0, 1.0, 1.0, decay="linar")
    with pytest.raises(UsageError, match="unknown cost of size 'root'"):
        best_interval(1.0, 1.0, 1.0, cost_of_size="root")
    with pytest.raises(UsageError, match="takes one item"):
        best_interval([1.0, 2.0], 1.0, 1.0)  # type: ignore[arg-type]
