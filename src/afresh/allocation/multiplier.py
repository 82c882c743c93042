"""The multiplier μ: the price of one unit of spend at which the plan uses up the budget, C(μ) = B.

C falls as μ rises, so by monotony the plan at a μ with |C(μ) − B| ≤ ε is within ε of the optimal plan in
Σ c·|f − f*|. C may also jump: beyond r ≈ 37 g rounds to 1 and f falls from λ/40 to 0, and a decay function
may have steps. Then the search ends at adjacent doubles μ⁻ < μ⁺ and the plan is f(μ⁺) + θ(f(μ⁻) − f(μ⁺)),
θ = (B − C(μ⁺))/(C(μ⁻) − C(μ⁺)), which keeps all bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.allocation.gains import RateGains
from afresh.allocation.group_caps import apply_caps
from afresh.allocation.large.first_multiplier import first_multiplier
from afresh.allocation.problem import AllocationProblem
from afresh.model.roots import HUGE, JUST_ABOVE, TINY, solve_decreasing
from afresh.values.arrays import Float64s

_MANY = 4096  # items from which the histogram's start pays


@dataclass(frozen=True, slots=True)
class OptimalPlan:
    """The optimal plan, the multiplier of the budget and the price m_h of each capped group.

    ``best`` is the plan at these prices, without regard to the budget: the same but for rounding and jumps.
    """

    frequency: Float64s
    multiplier: float
    group_price: Float64s
    best: Float64s


def find_optimal_plan(problem: AllocationProblem, budget: float) -> OptimalPlan:
    """The plan of the highest weighted value within the budget."""
    floor_spend = problem.floor_spend(budget)
    most = problem.max_plan()
    problem, group_price = apply_caps(problem, most)
    if problem.upper is not None:
        most = np.minimum(most, problem.upper)
    if problem.spend(most) <= budget:
        return OptimalPlan(most, 0.0, group_price, most)
    floor = problem.floor()
    entry = problem.prices()
    if problem.upper is not None:
        entry = np.where(floor < problem.upper, entry, 0.0)
    if budget <= floor_spend:
        return OptimalPlan(floor, float(entry.max(initial=0.0)), group_price, floor)
    frequency, best, multiplier = _search(problem, budget, float(min(entry.max() * JUST_ABOVE, HUGE)))
    return OptimalPlan(frequency, multiplier, group_price, best)


def optimality_gap(
    problem: AllocationProblem, frequency: Float64s, budget: float, optimum: OptimalPlan
) -> float:
    """The most by which any plan can beat ``frequency`` in Σ w·value; 0 up to rounding at the optimum.

    For any price μ ≥ 0 of the budget and prices m_h of the groups (an item pays m = max(μ, m_h), ν_h = m_h −
    μ if positive), weak duality bounds the value of every feasible plan by

        Σ [w·V(f(m)) − m·spend(f(m))] + μ·B + Σ ν_h·cap_h ,

    f(m) the item's best frequency at price m within its own bounds. The gap is that bound less the plan's
    value, summed item by item so that what is equal cancels before it is added up.
    """
    price, best = optimum.multiplier, optimum.best
    if np.isinf(price):
        return 0.0  # the lower bounds leave no other plan
    spends = problem.spends(frequency)
    bound = price * (budget - float(spends.sum()))
    prices: float | Float64s = price
    if problem.caps is not None:
        extra = np.maximum(optimum.group_price - price, 0.0)
        prices = price + problem.caps.spread(extra, 0.0)
        left = problem.caps.cap - problem.caps.sums(spends)
        priced = (extra > 0) & np.isfinite(extra)  # an infinite price leaves no choice, and so no gap
        bound += float((extra[priced] * left[priced]).sum())
        best = problem.plan(prices) if price > 0 else best
    if best is frequency:
        return max(0.0, bound)
    with np.errstate(invalid="ignore"):
        gained = problem.values(best) - problem.values(frequency)
        gained -= prices * (problem.spends(best) - spends)
    # Equal frequencies gain nothing, even where both values are infinite.
    return max(0.0, bound + float(np.where(best == frequency, 0.0, gained).sum()))


def _search(problem: AllocationProblem, budget: float, highest: float) -> tuple[Float64s, Float64s, float]:
    """The root between price 0, where the plan is too dear, and ``highest``, where it is the floor."""
    guess, slope = _start(problem, budget)
    plans: dict[float, Float64s] = {}

    def spend(price: Float64s) -> Float64s:
        plans.clear()  # keep only the latest plan, to save memory
        plan = plans[price[0]] = problem.plan(float(price[0]))
        return np.array([problem.spend(plan)])

    bracket = solve_decreasing(spend, budget, guess, low=TINY, high=highest, slope=slope)
    low, high = float(bracket.low[0]), float(bracket.high[0])
    dear = plans[low] if low in plans else problem.plan(low)
    if low == high:
        return dear, dear, low
    cheap = problem.plan(high)
    share = float(bracket.share(np.array([budget]))[0])
    return cheap + share * (dear - cheap), cheap, high


def _start(problem: AllocationProblem, budget: float) -> tuple[float, float]:
    """A first price and slope: from the histogram, or what the uniform plan would pay for one more unit."""
    active = problem.active()
    if len(active) >= _MANY and isinstance(problem.gains, RateGains):
        return first_multiplier(problem, problem.gains, budget)
    uniform = np.full(len(active), budget / problem.cost[active].sum())
    marginal = np.where(active, problem.weight * problem.gains.marginal(uniform), 0.0)
    return float(np.clip(marginal.sum() / problem.cost[active].sum(), TINY, HUGE)), -0.5
