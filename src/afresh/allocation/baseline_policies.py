"""Two simple policies to compare with: the same frequency for all items, or one proportional to the rate.

Uniform gives every item the same frequency, static and unweighted ones too; proportional gives f ∝ λ. Both
spend the whole budget. Uniform is never worse than proportional, by freshness and by age, whatever the rates
(Cho & Garcia-Molina 2000, §4.1).
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.problem import AllocationProblem
from afresh.model.roots import solve_decreasing
from afresh.values.arrays import Float64s
from afresh.values.errors import UsageError

POLICIES = ("optimal", "uniform", "proportional")


def policy_shape(problem: AllocationProblem, policy: str) -> Float64s:
    """Frequencies up to a common factor; bounds and caps would break the shape and are refused."""
    if problem.lower is not None or problem.upper is not None or problem.caps is not None:
        raise UsageError(f"policy {policy!r} takes no bounds and no caps: use 'optimal'")
    return np.ones_like(problem.rate) if policy == "uniform" else problem.rate


def scale_to_budget(problem: AllocationProblem, shape: Float64s, budget: float) -> Float64s:
    """The multiple of ``shape`` that spends the budget (nothing where no item asks for any)."""
    total = float((problem.cost * shape).sum())
    if total == 0 or budget == 0:
        return np.zeros_like(shape)
    if problem.update_cost is None:
        return shape * (budget / total)
    # Spend over interval falls; the update costs only make the interval longer.
    bracket = solve_decreasing(
        lambda interval: np.array([problem.spend(shape / interval[0])]), budget, total / budget, slope=-1.0
    )
    return np.asarray(shape / bracket.low[0], dtype=np.float64)


def marginal_of_shape(problem: AllocationProblem, shape: Float64s, frequency: Float64s) -> float:
    """Gain in Σ w·value for one more unit of spend, spread as the policy spreads it."""
    marginal = np.where(problem.active(), problem.gains.marginal(frequency), 0.0)
    gained = (problem.weight * marginal * shape).sum()
    outlay = problem.cost * shape
    if problem.update_cost is not None:
        outlay = outlay + problem.update_cost * problem.rate * problem.freshness.marginal(frequency) * shape
    spent = outlay.sum()
    return float(gained / spent) if spent > 0 else 0.0
