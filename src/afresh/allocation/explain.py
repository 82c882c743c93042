"""Explain a plan: why each item has its frequency, what more budget gains, and when dropped items come back.

The status of an item is the first of these that applies:

    static       the item never changes
    unweighted   its weight is 0
    ceiling      its frequency is its upper bound
    capped       the cap of its group keeps its frequency below what the budget alone would give
    floor        its frequency is its lower bound, which is above 0
    dropped      it gets no refresh at this budget
    kept         none of these: one more unit of spend on the item gains the multiplier
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from afresh.allocation.gains import RateGains
from afresh.allocation.multiplier import apply_caps, find_optimal_plan
from afresh.allocation.problem import AllocationProblem, ProblemOptions, build_problem
from afresh.model.roots import JUST_ABOVE
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.results import Allocation

STATUSES = ("static", "unweighted", "ceiling", "capped", "floor", "dropped", "kept")
STATIC, UNWEIGHTED, CEILING, CAPPED, FLOOR, DROPPED, KEPT = range(len(STATUSES))

_ROUNDING = 1e-9  # spends and prices whose relative difference is smaller count as equal


def statuses(problem: AllocationProblem, frequency: Float64s, multiplier: float) -> npt.NDArray[np.uint8]:
    """Return the status of each item in the plan with this multiplier, as a position in ``STATUSES``."""
    code = np.where(frequency > 0, np.uint8(KEPT), np.uint8(DROPPED))
    if problem.lower is not None:
        code[(problem.lower > 0) & (frequency <= problem.lower)] = FLOOR
    if problem.caps is not None:
        spent = problem.caps.sums(problem.spends(frequency))
        full = problem.caps.spread(spent - problem.caps.cap * (1 - _ROUNDING), -1.0) >= 0
        code[full & (problem.prices(frequency) > multiplier * (1 + _ROUNDING))] = CAPPED
    if problem.upper is not None:
        code[frequency >= problem.upper] = CEILING
    code[problem.weight == 0] = UNWEIGHTED
    code[problem.rate == 0] = STATIC
    return code


@dataclass(frozen=True, slots=True)
class Explanation:
    """For every item of a plan: its freshness and age, what more spend on it gains, and its status.

    ``freshness`` and ``age`` are averages over time. ``marginal`` is the gain in Σ weight·value from one more
    unit of spend on the item; it is 0 for static and unweighted items. ``status`` is a position in
    ``STATUSES``."""

    freshness: Float64s
    age: Float64s
    marginal: Float64s
    status: npt.NDArray[np.uint8]


def explain_parts(
    rates: ArrayLike, plan: Allocation, **options: Unpack[ProblemOptions]
) -> Callable[[slice], Explanation]:
    """Return a function that explains a slice of the items of ``plan``; slices save memory.
    ``rates`` and the options must be those with which ``allocate`` made the plan.

    >>> from afresh.allocation.allocate import allocate
    >>> why = explain_parts([1, 5, 0], allocate([1, 5, 0], 1))(slice(None))
    >>> why.marginal.round(3), [STATUSES[code] for code in why.status]
    (array([0.264, 0.2  , 0.   ]), ['kept', 'dropped', 'static'])
    """
    decay = options.get("decay")
    named = decay is None or isinstance(decay, Sequence)
    if options.get("caps") is not None or not named:  # caps and decay objects need all items at once
        whole = _explanation(build_problem(rates, **options), plan, slice(None))
        return lambda part: Explanation(
            whole.freshness[part], whole.age[part], whole.marginal[part], whole.status[part]
        )
    given = np.asarray(rates)

    def explained(part: slice) -> Explanation:
        mine: Any = {name: _cut(value, part, given.shape) for name, value in options.items()}
        return _explanation(build_problem(given[part], **mine), plan, part)

    return explained


def _cut(value: Any, part: slice, shape: tuple[int, ...]) -> Any:
    """Return the elements ``part`` of an option that has one element per item; return others unchanged."""
    if isinstance(value, str) or value is None or np.ndim(value) == 0:
        return value
    return value[part] if isinstance(value, list | tuple) else np.asarray(value).reshape(shape)[part]


def _explanation(problem: AllocationProblem, plan: Allocation, part: slice) -> Explanation:
    frequency = np.asarray(plan.frequency[part], dtype=np.float64)
    changing = problem.rate > 0
    # If the decay has a step at this frequency, more spend gains the marginal value just above the step.
    above = frequency if isinstance(problem.gains, RateGains) else frequency * (1 + 1e-12)
    return Explanation(
        freshness=np.where(changing, problem.freshness.value(frequency), 1.0),
        age=np.where(changing, -problem.age.value(frequency), 0.0),
        marginal=problem.prices(above),
        status=statuses(problem, frequency, plan.multiplier),
    )


def returns_at(rates: ArrayLike, items: ArrayLike, **options: Unpack[ProblemOptions]) -> Float64s:
    """Return for each of ``items`` (positions) the budget above which it gets more than its lower bound.

    It is what a plan spends whose multiplier equals the gain of the next unit of spend on the item. It is
    infinite for items that are static, unweighted or limited by a cap. Each different multiplier takes one
    pass over all items.

    >>> from afresh.allocation.allocate import allocate
    >>> float(returns_at([1, 2, 3, 4, 5], [4])[0].round(3))
    5.485
    >>> allocate([1, 2, 3, 4, 5], 5.48).dropped, allocate([1, 2, 3, 4, 5], 5.49).dropped
    (1, 0)
    """
    problem = build_problem(rates, **options)
    limited, _ = apply_caps(problem, problem.max_plan())
    entry = limited.prices()
    if limited.upper is not None:
        entry = np.where(limited.floor() < limited.upper, entry, 0.0)
    asked, where = np.unique(entry[np.asarray(items, dtype=np.intp)], return_inverse=True)
    # Just above its own price the item certainly gets no more than its lower bound, in spite of rounding.
    budgets = [limited.spend(limited.plan(price * JUST_ABOVE)) if price > 0 else np.inf for price in asked]
    return np.array(budgets, dtype=np.float64)[where]


def gain_of_next_unit(rates: ArrayLike, budget: float, **options: Unpack[ProblemOptions]) -> float:
    """Return how much Σ weight·value grows if the budget grows by one unit.

    >>> round(gain_of_next_unit([1, 2, 3, 4, 5], 5), 3)
    0.204
    """
    problem = build_problem(rates, **options)
    now, then = (find_optimal_plan(problem, spend).frequency for spend in (budget, budget + 1.0))
    with np.errstate(invalid="ignore"):
        gained = problem.values(then) - problem.values(now)
    return float(np.where(now == then, 0.0, gained).sum())
