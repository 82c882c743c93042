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

    def words(self) -> npt.NDArray[np.str_]:
        return np.array(STATUSES)[self.status]


@dataclass(frozen=True, slots=True)
class NextUnit:
    """What ``spend`` more units of budget gain in Σ weight·value (``gain``) and in weighted mean freshness.
    ``returning`` are the positions of the items that are dropped without them and refreshed with them."""

    spend: float
    gain: float
    freshness: float
    returning: npt.NDArray[np.intp]


def explain(rates: ArrayLike, plan: Allocation, **options: Unpack[ProblemOptions]) -> Explanation:
    """Return the freshness, age, marginal gain and status of each item of ``plan``.
    ``rates`` and the options must be those with which ``allocate`` made the plan.

    >>> from afresh.allocation.allocate import allocate
    >>> why = explain([1, 5, 0], allocate([1, 5, 0], 1))
    >>> why.marginal.round(3), why.words().tolist()
    (array([0.264, 0.2  , 0.   ]), ['kept', 'dropped', 'static'])
    """
    return explain_parts(rates, plan, **options)(slice(None))


def explain_parts(
    rates: ArrayLike, plan: Allocation, **options: Unpack[ProblemOptions]
) -> Callable[[slice], Explanation]:
    """Return a function that explains only a slice of the items, as ``explain`` does, to save memory.

    >>> from afresh.allocation.allocate import allocate
    >>> explain_parts([1, 5, 0], allocate([1, 5, 0], 1))(slice(1, 2)).words().tolist()
    ['dropped']
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


def next_unit(
    rates: ArrayLike, budget: float, *, spend: float = 1.0, **options: Unpack[ProblemOptions]
) -> NextUnit:
    """Return the gain if the budget grows from ``budget`` to ``budget + spend``, and the items that return.

    >>> more = next_unit([1, 2, 3, 4, 5], 5)
    >>> round(more.gain, 3), round(more.freshness, 3), more.returning
    (0.204, 0.041, array([4]))
    """
    problem = build_problem(rates, **options)
    now, then = find_optimal_plan(problem, budget), find_optimal_plan(problem, budget + spend)
    code_now, code_then = (statuses(problem, plan.frequency, plan.multiplier) for plan in (now, then))
    with np.errstate(invalid="ignore"):
        gained = problem.values(then.frequency) - problem.values(now.frequency)
    same = now.frequency == then.frequency
    return NextUnit(
        spend=problem.spend(then.frequency) - problem.spend(now.frequency),
        gain=float(np.where(same, 0.0, gained).sum()),
        freshness=problem.mean_freshness(then.frequency) - problem.mean_freshness(now.frequency),
        returning=np.flatnonzero((code_now == DROPPED) & (code_then != DROPPED)),
    )
