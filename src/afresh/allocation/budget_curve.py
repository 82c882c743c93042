"""Find the least budget that reaches a target, and the optimal plan at each of many budgets.

A plan belongs to a multiplier μ, the price of a unit of budget. As μ rises, all frequencies and the freshness
fall, and age and content lag rise. So one search finds the μ whose plan just meets the target. What that plan
spends is the least budget. (If all rates are equal, freshness 0.8 takes 2.15 refreshes per change.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from afresh.allocation.allocate import POLICIES, marginal_of_shape, policy_shape, scale_to_budget
from afresh.allocation.explain import DROPPED, statuses
from afresh.allocation.multiplier import apply_caps, find_optimal_plan
from afresh.allocation.problem import AllocationProblem, ProblemOptions, build_problem
from afresh.model.roots import HUGE, TINY, solve_decreasing
from afresh.values.arrays import ArrayLike, Float64s, Ints, nonnegative
from afresh.values.errors import InfeasibleError, UsageError, one_of

_TARGETS = ("freshness", "age", "lag")


def budget_for(
    rates: ArrayLike,
    target: float,
    *,
    target_is: str | None = None,
    policy: str = "optimal",
    **options: Unpack[ProblemOptions],
) -> float:
    """Return the least budget whose plan has a weighted mean freshness, a mean age, or a content lag, of
    ``target``.

    ``target_is`` is "freshness", "age" or "lag"; by default age if the objective is age, else freshness. The
    options are those of ``allocate``. The plan maximises the option ``objective``, by default ``target_is``,
    because that plan reaches the target with the least budget. Under another objective the budget is larger.

    >>> round(budget_for([1.0], 0.8), 4)
    2.1542
    >>> round(budget_for([1, 5], 0.25, target_is="age"), 2)
    1.88
    >>> round(budget_for([1, 5], 0.25, target_is="age", objective="freshness"), 2)
    2.1
    >>> round(budget_for([6.0], 0.25, target_is="lag"), 12)  # λ/(6f²) = 1/4
    2.0
    >>> from afresh.allocation.allocate import allocate
    >>> round(allocate([1.0], budget_for([1.0], 0.8)).freshness, 12)
    0.8
    """
    default = "age" if options.get("objective") == "age" else "freshness"
    aim = one_of("target", target_is or default, _TARGETS)
    if aim == "freshness" and not 0 <= target <= 1:
        raise UsageError(f"a freshness of {target:g} is no target: give a number from 0 to 1")
    if aim != "freshness" and not 0 <= target < np.inf:
        named = "an age" if aim == "age" else "a content lag"
        raise UsageError(f"{named} of {target:g} is no target: give a number of 0 or more")
    one_of("policy", policy, POLICIES)
    options.setdefault("objective", aim)
    problem = build_problem(rates, **options)
    if policy != "optimal":
        shape = policy_shape(problem, policy)
        # The search is over the factor 1/interval; freshness falls as the interval grows, as with prices.
        most = np.where(shape > 0, np.inf, 0.0)
        return _search(problem, _Goal(aim, target), lambda interval: shape / interval, most)
    return budget_for_problem(apply_caps(problem, problem.max_plan())[0], target, aim)


def budget_for_problem(problem: AllocationProblem, target: float, aim: str) -> float:
    """Return the least budget for a problem whose caps ``apply_caps`` has turned into upper bounds.
    ``aim`` says what ``target`` is: "freshness", "age" or "lag"."""
    return _search(problem, _Goal(aim, target), problem.plan, problem.max_plan())


@dataclass(frozen=True, slots=True)
class _Goal:
    """A target for ``aim`` ("freshness", "age" or "lag"), and a score of plans that is 1 at the target."""

    aim: str
    target: float

    def reached(self, problem: AllocationProblem, frequency: Float64s) -> float:
        if self.aim == "freshness":
            return problem.mean_freshness(frequency)
        if self.aim == "lag":
            return problem.mean_lag(frequency)
        age = problem.mean_age(frequency)
        # Where changes come in steps, an age of 0 can be reached, but rounding leaves some 1e−32 intervals.
        return 0.0 if age * float(frequency.max(initial=0.0)) < 1e-24 else age

    def met(self, reached: float) -> bool:
        return reached >= self.target if self.aim == "freshness" else reached <= self.target

    def score(self, reached: float) -> float:
        """Return 1 if the freshness, age or lag ``reached`` is the target, and more if it is better."""
        if self.aim == "freshness":
            # The odds F/(1−F) have the same precision near F = 0 and near F = 1.
            return _ratio(_ratio(reached, 1 - reached), _ratio(self.target, 1 - self.target))
        return _ratio(self.target, reached)


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else np.inf


def _search(
    problem: AllocationProblem, goal: _Goal, plan: Callable[[float], Float64s], most: Float64s
) -> float:
    """Return the spend of the cheapest ``plan(price)`` that meets the goal; ``most`` is ``plan(0)``."""
    floor = problem.floor()
    if goal.met(goal.reached(problem, floor)):
        return problem.spend(floor)
    best, spend = goal.reached(problem, most), problem.spend(most)
    if not goal.met(best) or (np.isinf(spend) and best == goal.target):
        wanted = f"reaches {goal.aim} {goal.target:g}: {best:g} is"
        if np.isinf(spend):
            raise InfeasibleError(f"no finite budget {wanted} only the limit")
        raise InfeasibleError(f"no budget {wanted} the best there is, at {spend:g}")
    if best == goal.target:
        return spend

    def score(price: Float64s) -> Float64s:
        return np.array([goal.score(goal.reached(problem, plan(float(price[0]))))])

    bracket = solve_decreasing(score, 1.0, 1.0, low=TINY, high=HUGE)
    low, high = float(bracket.low[0]), float(bracket.high[0])
    dear = plan(low)
    return problem.spend(dear) if low == high else _between(problem, goal, dear, plan(high))


def _between(problem: AllocationProblem, goal: _Goal, dear: Float64s, cheap: Float64s) -> float:
    """Return the least spend of a mixture of two plans that meets the goal; ``dear`` alone meets it."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        enough = goal.met(goal.reached(problem, cheap + middle * (dear - cheap)))
        low, high = (low, middle) if enough else (middle, high)
    return problem.spend(cheap + high * (dear - cheap))


_POINTS = 41


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """The plans at many budgets. Every array has one number per budget.
    ``freshness`` and ``age`` are weighted means over the items, ``marginal`` is the multiplier (the gain from
    one more unit of budget), and ``dropped`` is the number of dropped items."""

    budget: Float64s
    freshness: Float64s
    age: Float64s
    marginal: Float64s
    dropped: Ints


def budget_curve(
    rates: ArrayLike,
    budgets: ArrayLike | None = None,
    *,
    policy: str = "optimal",
    on_point: Callable[[float], None] | None = None,
    **options: Unpack[ProblemOptions],
) -> BudgetCurve:
    """Return the freshness, age and multiplier of the plan at each of ``budgets``.
    By default there are 41 budgets, in geometric progression, with which optimal plans gain 1 % to 99 % of
    the reachable freshness. ``on_point`` is called with the share of budgets done. ``policy`` and the options
    are those of ``allocate``.

    >>> curve = budget_curve([1, 2, 3, 4, 5], [0, 5, 50])
    >>> curve.freshness.round(3), curve.dropped
    (array([0.   , 0.374, 0.873]), array([5, 1, 0]))
    """
    one_of("policy", policy, POLICIES)
    problem = build_problem(rates, **options)
    shape = None if policy == "optimal" else policy_shape(problem, policy)
    limited, _ = apply_caps(problem, problem.max_plan())
    budget = default_budgets(limited) if budgets is None else nonnegative("budget", budgets)
    budget = np.atleast_1d(np.asarray(budget, dtype=np.float64))
    points: list[tuple[float, ...]] = []
    for one in budget:
        if shape is None:
            optimum = find_optimal_plan(replace(limited, caps=None), float(one))
            plan, multiplier = optimum.frequency, optimum.multiplier
        else:
            plan = scale_to_budget(problem, shape, float(one))
            multiplier = marginal_of_shape(problem, shape, plan)
        dropped = int((statuses(problem, plan, multiplier) == DROPPED).sum())
        points.append((problem.mean_freshness(plan), problem.mean_age(plan), multiplier, dropped))
        if on_point:
            on_point(len(points) / budget.size)
    columns = np.array(points, dtype=np.float64).reshape(-1, 4).T
    return BudgetCurve(budget, columns[0], columns[1], columns[2], columns[3].astype(np.int64))


def default_budgets(problem: AllocationProblem) -> Float64s:
    """Return 41 budgets, in geometric progression, that gain 1 % to 99 % of the reachable freshness."""
    least, most = (problem.mean_freshness(frequency) for frequency in (problem.floor(), problem.max_plan()))
    if most <= least:
        return np.array([problem.spend(problem.floor())])
    targets = (least + share * (most - least) for share in (0.01, 0.99))
    first, last = (budget_for_problem(problem, target, "freshness") for target in targets)
    return np.asarray(np.geomspace(first, last, _POINTS), dtype=np.float64)
