"""Find the multiplier μ: the price of one unit of budget at which the plan spends the budget B.

f(μ) is the best frequency of an item of rate λ if one unit of budget costs μ, and C(μ) is what all items
spend then. Both fall as μ rises. If |C(μ) − B| ≤ ε, the plan at μ is within ε of the optimal plan f* in
Σ c·|f − f*|, with the cost c of a refresh. C may also jump: an item's frequency falls from λ/40 to 0 at once,
because its marginal rounds to 1 beyond 37 changes per refresh, and a decay function may have steps. Then the
search ends at adjacent doubles μ⁻ < μ⁺, and the plan is f(μ⁺) + θ(f(μ⁻) − f(μ⁺)) with θ = (B − C(μ⁺))/(C(μ⁻)
− C(μ⁺)), which respects all bounds.

Caps on the spend of groups are solved first. A group h that would spend more than its cap has a price m_h of
its own, at which it spends exactly its cap, and its items pay max(μ, m_h). Frequencies fall with the price,
so f(max(μ, m_h)) is the smaller of f(μ) and f(m_h): each cap becomes an upper bound f(m_h) on the items of
its group. These bounds are computed for all groups at once, and one search for μ remains. The multiplier of
the cap itself is ν_h = max(0, m_h − μ).

For many items the first guess of μ, accurate to five or six digits, comes from a small histogram. With
s = cλ^p/w (w the weight, p the power of the objective) the spend is C(μ) = Σ cλ/inverse(μs). So it depends
only on the total cλ of the items at each s. The items are put into bins of log s, each bin is represented by
its mean, and the root is found on the bins. If items can be dropped, the slope of the spend is infinite at
μs = ``top``. The few items near this edge are then used one by one, and the root is found again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from afresh.allocation.gains import RateGains
from afresh.allocation.objectives import Objective
from afresh.allocation.problem import AllocationProblem, GroupCaps
from afresh.model.roots import HUGE, JUST_ABOVE, TINY, solve_decreasing
from afresh.values.arrays import Float64s

_MANY = 4096  # from so many items on, the histogram saves more time than it takes


@dataclass(frozen=True, slots=True)
class OptimalPlan:
    """The frequencies of the optimal plan, and its multiplier, the price of a unit of budget.

    ``group_price`` is the price at which a group spends exactly its cap (m_h of the module's docstring).
    ``best`` are the frequencies that are best at these prices. They differ from ``frequency``, which spends
    the whole budget, by rounding errors and where the spend jumps."""

    frequency: Float64s
    multiplier: float
    group_price: Float64s
    best: Float64s


def find_optimal_plan(problem: AllocationProblem, budget: float) -> OptimalPlan:
    """Return the plan with the highest Σ weight·value of all that respect the budget, bounds and caps."""
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
    """Return a number such that no plan exceeds the plan ``frequency`` in Σ w·V by more than it.

    w is the weight and V the value of an item. Let μ ≥ 0 be the price of the budget B and m_h the price of
    group h. An item pays m = max(μ, m_h), and ν_h = max(0, m_h − μ). By weak duality every feasible plan has

        Σ w·V ≤ Σ [w·V(f(m)) − m·spend(f(m))] + μ·B + Σ ν_h·cap_h ,

    where f(m) is the item's best frequency at price m within its own bounds. The result is the right side
    minus the plan's value. It is summed item by item, so that equal terms cancel before they are rounded."""
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
        priced = (extra > 0) & np.isfinite(extra)  # at an infinite price there is one plan only, and no gap
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
    """Return a tuple (plan, best, μ): the plan that spends the budget, the best plan at μ, and μ.
    At the price ``highest`` items get only their lower bounds."""
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
    """Return a tuple (μ, slope) from which to search, with the slope dlog C/dlog μ of the spend C.
    For many items it comes from a histogram; else μ is the marginal value of the uniform plan."""
    active = problem.active()
    if len(active) >= _MANY and isinstance(problem.gains, RateGains):
        return first_multiplier(problem, problem.gains, budget)
    uniform = np.full(len(active), budget / problem.cost[active].sum())
    marginal = np.where(active, problem.weight * problem.gains.marginal(uniform), 0.0)
    return float(np.clip(marginal.sum() / problem.cost[active].sum(), TINY, HUGE)), -0.5


def apply_caps(problem: AllocationProblem, most: Float64s) -> tuple[AllocationProblem, Float64s]:
    """Return a tuple (problem, prices): the problem with caps turned into upper bounds, and the price at
    which each group spends exactly its cap. ``most`` is the plan at price 0. A group that stays below its cap
    even then has the price 0. A group whose lower bounds already spend its cap has an infinite price."""
    if problem.caps is None:
        return problem, np.zeros(0)
    caps = problem.caps
    with np.errstate(invalid="ignore"):
        tight = caps.sums(problem.spends(most)) > caps.cap
    if not tight.any():
        return problem, np.zeros(len(caps.cap))
    # Only the groups whose cap binds are solved; the items of the others belong to no group.
    number = np.where(tight, np.cumsum(tight) - 1, tight.sum())
    group = np.append(number, tight.sum())[caps.group]
    labels = tuple(label for label, keep in zip(caps.labels, tight, strict=True) if keep)
    ceiling, price = _solve_groups(problem, GroupCaps(group, caps.cap[tight], labels))
    ceiling = ceiling if problem.upper is None else np.minimum(problem.upper, ceiling)
    prices = np.zeros(len(caps.cap))
    prices[tight] = price
    return replace(problem, upper=ceiling), prices


def _solve_groups(problem: AllocationProblem, caps: GroupCaps) -> tuple[Float64s, Float64s]:
    """Return a tuple (frequencies, prices): each item's frequency if its group spends exactly its cap, and
    the price of each group. The frequency of an item without a group is infinite."""
    floor = problem.floor()
    entry = problem.prices()
    highest = np.full(len(caps.cap) + 1, TINY)
    np.maximum.at(highest, caps.group, np.minimum(entry * JUST_ABOVE, HUGE))
    floors = caps.sums(problem.spends(floor))

    def plan(price: Float64s) -> Float64s:
        return problem.plan(caps.spread(price, 1.0))

    def spends(price: Float64s) -> Float64s:
        return caps.sums(problem.spends(plan(price)))

    # A group whose lower bounds already spend its cap has no root: it buys nothing more at any price.
    room = caps.cap > floors
    target = np.where(room, caps.cap, 1.0)
    # First guess of each group's price: what one more unit buys if the group spends its cap uniformly.
    active = problem.active()
    cost = np.maximum(caps.sums(np.where(active, problem.cost, 0.0)), TINY)
    even = np.maximum(caps.spread(caps.cap / cost, 1.0), TINY)
    marginal = np.where(active, problem.weight * problem.gains.marginal(even), 0.0)
    guess = np.clip(caps.sums(marginal) / cost, TINY, HUGE)
    bracket = solve_decreasing(spends, target, guess, high=highest[:-1])
    share = caps.spread(bracket.share(target), 0.0)
    upper_plan = plan(bracket.high)
    at_cap = upper_plan + share * (plan(bracket.low) - upper_plan)
    at_cap = np.where(np.append(room, True)[caps.group], at_cap, floor)
    price = np.where(room, bracket.high, np.inf)
    return np.where(caps.group < len(caps.cap), at_cap, np.inf), price


_BINS = 2048
_EDGE_BINS = 3


def first_multiplier(problem: AllocationProblem, gains: RateGains, budget: float) -> tuple[float, float]:
    """Return a tuple (μ, slope): the μ with spend C(μ) ≈ budget, and the slope dlog C/dlog μ there.
    Bounds on frequencies are ignored. The module's docstring explains the histogram."""
    active = problem.active()
    rate, cost, weight = problem.rate[active], problem.cost[active], problem.weight[active]
    mass = cost * rate
    scale = np.log(mass / weight if gains.objective.power == 1 else mass * rate / weight)
    low = float(scale.min())
    width = max(float(scale.max()) - low, 1e-12) / _BINS
    points = _bin_masses(scale, mass, low, width)
    price, slope = _root_on_bins(gains.objective, *points, budget, math.exp(-float(np.median(points[0]))))
    if math.isinf(gains.objective.top):
        return price, slope
    near = np.abs(scale - math.log(gains.objective.top / price)) < _EDGE_BINS * width
    centre, total = _bin_masses(scale[~near], mass[~near], low, width)
    points = np.append(centre, scale[near]), np.append(total, mass[near])
    return _root_on_bins(gains.objective, *points, budget, price)


def _bin_masses(scale: Float64s, mass: Float64s, low: float, width: float) -> tuple[Float64s, Float64s]:
    """Return a tuple (centres, masses): the mean of ``scale`` weighted by ``mass``, and the sum of ``mass``,
    of each bin that is not empty. Bins are ``width`` wide and start at ``low``."""
    row = np.minimum(((scale - low) / width).astype(np.int64), _BINS - 1)
    total = np.bincount(row, weights=mass, minlength=_BINS).astype(np.float64, copy=False)
    centre = np.bincount(row, weights=mass * scale, minlength=_BINS).astype(np.float64, copy=False)
    filled = total > 0
    return centre[filled] / total[filled], total[filled]


def _root_on_bins(
    objective: Objective, scale: Float64s, mass: Float64s, budget: float, guess: float
) -> tuple[float, float]:
    """Return (μ, slope) as ``first_multiplier`` does, for bins of log s = ``scale`` and cλ = ``mass``."""
    position = np.exp(scale)

    def spend(price: Float64s) -> Float64s:
        r = objective.inverse(np.multiply.outer(price, position))
        return np.asarray((mass / r).sum(axis=-1))

    high = min(objective.top / float(position.min()), HUGE)
    bracket = solve_decreasing(spend, budget, guess, high=high, rtol=1e-9)
    price, step = float(bracket.low[0]), 1 + 1e-4
    with np.errstate(divide="ignore", invalid="ignore"):
        around = np.log(spend(np.array([price / step, price * step])))
        slope = float(around[1] - around[0]) / (2 * math.log(step))
    return price, slope if -100 < slope < 0 else -0.5
