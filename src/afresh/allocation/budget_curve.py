"""The budget curve: the freshness, age and marginal value of the optimal plan at each of many budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from afresh.allocation.budget_for import budget_for_problem
from afresh.allocation.explain import DROPPED, statuses
from afresh.allocation.group_caps import apply_caps
from afresh.allocation.multiplier import find_optimal_plan
from afresh.allocation.problem import AllocationProblem
from afresh.allocation.problem_inputs import ProblemOptions, build_problem
from afresh.values.arrays import ArrayLike, Float64s, Ints, nonnegative

_POINTS = 41


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """Optimal plans over budgets: weighted mean freshness and age, multiplier, number of items dropped."""

    budget: Float64s
    freshness: Float64s
    age: Float64s
    marginal: Float64s
    dropped: Ints


def budget_curve(
    rates: ArrayLike,
    budgets: ArrayLike | None = None,
    *,
    on_point: Callable[[float], None] | None = None,
    **options: Unpack[ProblemOptions],
) -> BudgetCurve:
    """The optimal plan at each budget; the options are those of ``allocate``.

    Without ``budgets``, 41 of them in even ratios, from the one that buys 1 % of the freshness within reach
    to the one that buys 99 %.

    >>> curve = budget_curve([1, 2, 3, 4, 5], [0, 5, 50])
    >>> curve.freshness.round(3), curve.dropped
    (array([0.   , 0.374, 0.873]), array([5, 1, 0]))
    """
    problem = build_problem(rates, **options)
    limited, _ = apply_caps(problem, problem.max_plan())
    budget = default_budgets(limited) if budgets is None else nonnegative("budget", budgets)
    budget = np.atleast_1d(np.asarray(budget, dtype=np.float64))
    points = []
    for one in budget:
        points.append(_point(problem, replace(limited, caps=None), float(one)))
        if on_point:
            on_point(len(points) / budget.size)
    columns = np.array(points, dtype=np.float64).reshape(-1, 4).T
    return BudgetCurve(budget, columns[0], columns[1], columns[2], columns[3].astype(np.int64))


def default_budgets(problem: AllocationProblem) -> Float64s:
    """Budgets in even ratios that buy from 1 % to 99 % of the freshness within reach."""
    least, most = (problem.mean_freshness(frequency) for frequency in (problem.floor(), problem.max_plan()))
    if most <= least:
        return np.array([problem.spend(problem.floor())])
    first, last = (
        budget_for_problem(problem, least + share * (most - least), "freshness") for share in (0.01, 0.99)
    )
    return np.asarray(np.geomspace(first, last, _POINTS), dtype=np.float64)


def _point(
    problem: AllocationProblem, limited: AllocationProblem, budget: float
) -> tuple[float, float, float, int]:
    optimum = find_optimal_plan(limited, budget)
    plan = optimum.frequency
    dropped = int((statuses(problem, plan, optimum.multiplier) == DROPPED).sum())
    return problem.mean_freshness(plan), problem.mean_age(plan), optimum.multiplier, dropped
