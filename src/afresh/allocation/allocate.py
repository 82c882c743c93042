"""``allocate``, which distributes a budget of refreshes over items.

Besides the optimal plan there are two simple policies for comparison. Uniform gives every item the same
frequency, also items that never change. Proportional gives frequencies proportional to the rates. Both spend
the whole budget. For any rates, uniform is never worse than proportional in freshness and in age (Cho &
Garcia-Molina 2000, §4.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from afresh.allocation.explain import DROPPED, statuses
from afresh.allocation.multiplier import find_optimal_plan, optimality_gap
from afresh.allocation.problem import (
    AllocationProblem,
    CapsLike,
    Labels,
    ProblemOptions,
    build_problem,
    check_budget,
)
from afresh.model.decay import Decay
from afresh.model.roots import solve_decreasing
from afresh.values.arrays import ArrayLike, Float64s, Floats, as_floats, like_inputs
from afresh.values.errors import UsageError, one_of
from afresh.values.results import Allocation

POLICIES = ("optimal", "uniform", "proportional")


def policy_shape(problem: AllocationProblem, policy: str) -> Float64s:
    """Return the frequencies of the policy uniform or proportional, up to a common factor.
    Raise ``UsageError`` if the problem has bounds or caps, which these policies cannot respect."""
    if problem.lower is not None or problem.upper is not None or problem.caps is not None:
        raise UsageError(f"policy {policy!r} takes no bounds and no caps: use 'optimal'")
    return np.ones_like(problem.rate) if policy == "uniform" else problem.rate


def scale_to_budget(problem: AllocationProblem, shape: Float64s, budget: float) -> Float64s:
    """Return the frequencies that are proportional to ``shape`` and spend the budget; 0 if ``shape`` is 0."""
    total = float((problem.cost * shape).sum())
    if total == 0 or budget == 0:
        return np.zeros_like(shape)
    if problem.update_cost is None:
        return shape * (budget / total)
    # The search is for 1/factor, here called interval; without update costs it would be total/budget.
    bracket = solve_decreasing(
        lambda interval: np.array([problem.spend(shape / interval[0])]), budget, total / budget, slope=-1.0
    )
    return np.asarray(shape / bracket.low[0], dtype=np.float64)


def marginal_of_shape(problem: AllocationProblem, shape: Float64s, frequency: Float64s) -> float:
    """Return the gain in Σ weight·value if one more unit of budget is spent in proportion to ``shape``."""
    marginal = np.where(problem.active(), problem.gains.marginal(frequency), 0.0)
    gained = (problem.weight * marginal * shape).sum()
    outlay = problem.cost * shape
    if problem.update_cost is not None:
        outlay = outlay + problem.update_cost * problem.rate * problem.freshness.marginal(frequency) * shape
    spent = outlay.sum()
    return float(gained / spent) if spent > 0 else 0.0


_MANY = 100_000  # from so many items on, a histogram and one pass are faster than a search over all items


def allocate(
    rates: ArrayLike,
    budget: float,
    *,
    weights: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    update_costs: ArrayLike | None = None,
    objective: str = "freshness",
    order: str = "fixed",
    policy: str = "optimal",
    decay: str | Sequence[str] | Decay | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    groups: Labels | None = None,
    caps: CapsLike | None = None,
) -> Allocation:
    """Return how often to refresh each item so that Σ cost·frequency = budget and the objective is best.

    ``rates``        changes of each item per unit of time; an item of rate 0 gets only its lower bound.
    ``budget``       cost units per unit of time.
    ``weights``      importance of each item (default 1).
    ``costs``        cost of one refresh (default 1).
    ``update_costs`` cost added when a refresh finds a change (freshness in fixed order only).
    ``objective``    freshness, age, harmonic, missed or lag.
    ``order``        how an item's refreshes follow each other: fixed, shuffled or memoryless (``ORDERS``).
    ``policy``       optimal, uniform or proportional; the last two take no bounds and no caps.
    ``decay``        name of a decay function, a name for each item, or a decay object (freshness and age).
    ``lower``, ``upper``  bounds on the frequency of each item.
    ``groups``       a label for each item.
    ``caps``         the most that each group may spend: by label, or as a list for groups numbered from 0.

    The example of Cho & Garcia-Molina 2000, Table 5: items that change 1 to 5 times a day, 5 refreshes a day.

    >>> plan = allocate([1, 2, 3, 4, 5], 5)
    >>> plan.frequency.round(2), plan.dropped
    (array([1.15, 1.36, 1.35, 1.14, 0.  ]), 1)
    >>> allocate([1, 2, 3, 4, 5], 5, objective="age").frequency.round(2)
    array([0.83, 0.97, 1.03, 1.07, 1.09])

    Razniewski 2016, §2: two addresses that become wrong within 10 and 20 years get 3 updates in 10 years. The
    paper gives them 2 and 1 updates, with a freshness of 0.75; fractions of updates give a little more.

    >>> plan = allocate([1 / 10, 1 / 20], 3 / 10, decay="linear")
    >>> (10 * plan.frequency).round(2), round(plan.freshness, 3)
    (array([1.76, 1.24]), 0.757)
    """
    one_of("policy", policy, POLICIES)
    budget = check_budget(budget)
    plain = (objective, order, policy) == ("freshness", "fixed", "optimal")
    plain &= all(given is None for given in (update_costs, decay, lower, upper, caps))
    if plain and np.size(rates) >= _MANY:
        # Imported only here, because smaller problems do not need its threads and tables.
        from afresh.allocation.large.allocate_large import allocate_large

        return allocate_large(rates, budget, weights, costs)
    options: ProblemOptions = {"weights": weights, "costs": costs, "update_costs": update_costs}
    options |= {"objective": objective, "order": order, "decay": decay}
    options |= {"lower": lower, "upper": upper, "groups": groups, "caps": caps}
    return _evaluate_plan(build_problem(rates, **options), budget, policy, as_floats("rate", rates))


def _evaluate_plan(problem: AllocationProblem, budget: float, policy: str, rates: Floats) -> Allocation:
    shape = None if policy == "optimal" else policy_shape(problem, policy)
    optimum = find_optimal_plan(problem, budget)
    frequency, multiplier = optimum.frequency, optimum.multiplier
    if shape is not None:
        frequency = scale_to_budget(problem, shape, budget)
        multiplier = marginal_of_shape(problem, shape, frequency)
    return Allocation(
        frequency=like_inputs(frequency, rates),
        multiplier=multiplier,
        spend=problem.spend(frequency),
        gap=optimality_gap(problem, frequency, budget, optimum),
        freshness=problem.mean_freshness(frequency),
        age=problem.mean_age(frequency),
        dropped=int((statuses(problem, frequency, multiplier) == DROPPED).sum()),
    )
