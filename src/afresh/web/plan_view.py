"""The Plan page: Cho's curve with one's own items on it, and what another budget would give.

A plan for a million items is not solved at every touch of a slider. A sample of the active items, of at most
a few thousand, stands for all: budgets are scaled by the share of the items that it holds, so shares
and ages are those of the whole up to the sample's own error, about 1/√n, and numbers of items are scaled up.
Where copies earn money, items count by what is at stake, and no budget is spent beyond what pays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from afresh.allocation.inputs import problem_from
from afresh.allocation.multiplier import Optimum, solve
from afresh.allocation.problem import Problem
from afresh.allocation.summary import mean_age, mean_freshness
from afresh.engine.earnings import earns
from afresh.engine.engine import Engine
from afresh.engine.policy import Policy
from afresh.engine.settings import BudgetTable
from afresh.engine.snapshot import loaded, recalled, sampled
from afresh.rates.planning_rate import planning_rate
from afresh.values.outcome import Spent
from afresh.web.plan_money import PAYS, Stakes, price_per_request, stakes_of

SAMPLE, DOTS, NAMED = 4000, 1500, 8
CURVE_POINTS, BUDGET_POINTS = 160, 41
_SPAN, _LEVEL = 64.0, 0.9
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlanItems:
    """The items planned for: ``scale`` real ones stand behind each; rates per second, as planned with."""

    ids: npt.NDArray[np.int64]
    rate: Floats
    weight: Floats
    cost: Floats
    interval_s: Floats
    active: int
    scale: float
    stakes: Stakes | None = None


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """What one budget gives: weighted freshness and age, items dropped, what it costs and earns a day.

    ``income_per_day`` is net of the cost; None where no source says what a copy earns.
    """

    requests_per_s: float
    freshness: float
    age_s: float
    marginal: float
    dropped: int
    money_per_day: float
    income_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class PlanView:
    """Everything the page draws. The curve is for ``weight/cost`` = ``typical``; frequencies per second."""

    objective: str
    items: int
    sample: int
    now: BudgetPoint
    budgets: list[BudgetPoint]
    curve_rate: list[float]
    curve_frequency: list[float]
    dot_rate: list[float]
    dot_frequency: list[float]
    dot_weight: list[float]
    dot_key: list[str]
    typical: float
    equal_weights: bool
    priced: bool
    earns: bool
    most_money_per_day: float | None


@dataclass(frozen=True, slots=True)
class OtherBudget:
    """Another budget against today's: what it gives, how many items it drops or brings back, some by name."""

    then: BudgetPoint
    now: BudgetPoint
    back: int
    gone: int
    back_named: list[str]
    gone_named: list[str]


def plan_items(engine: Engine, now_s: float, seed: int = 0) -> PlanItems:
    """The active items with a weight, or a sample of them drawn evenly."""
    store, settings = engine.store, engine.current()
    counts = store.items.counts()
    total = sum(count.items for count in counts)
    policy = recalled(store, settings, loaded(sampled(store, total)), now_s)
    memory = policy.memory
    rows = np.flatnonzero(memory.ranked_weight(slice(None)) > 0)
    active = round(rows.size * total / max(memory.size, 1))
    if rows.size > SAMPLE:
        rows = np.sort(np.random.default_rng(seed).choice(rows, SAMPLE, replace=False))
    spend = float(memory.cost[rows].mean()) * active if rows.size else 0.0
    mean_interval_s = spend / settings.budget.requests
    return PlanItems(
        ids=memory.ids[rows],
        rate=_rates(policy, rows, mean_interval_s),
        weight=memory.ranked_weight(rows),
        cost=memory.ranked_cost(rows),
        interval_s=policy.due_times(rows, now_s) - now_s,
        active=active,
        scale=active / max(rows.size, 1),
        stakes=stakes_of(store, settings, policy, rows) if earns(settings) else None,
    )


def plan_view(engine: Engine, items: PlanItems, objective: str, spent: Spent) -> PlanView:
    """The page's data for one objective."""
    settings = engine.current().budget
    ratio = items.weight / items.cost if items.rate.size else np.ones(1)
    typical = float(np.median(ratio))
    dots = np.unique(np.linspace(0, items.rate.size - 1, min(DOTS, items.rate.size)).astype(np.intp))
    now = budget_point(items, objective, settings.requests, settings, spent)
    rate, frequency = chos_curve(items, objective, now.marginal, typical)
    known = {item.id: item.key for item in engine.store.items.by_id(items.ids[dots].tolist())}
    return PlanView(
        objective=objective,
        items=items.active,
        sample=int(items.rate.size),
        now=now,
        budgets=budgets(items, objective, settings, spent),
        curve_rate=rate.tolist(),
        curve_frequency=frequency.tolist(),
        dot_rate=items.rate[dots].tolist(),
        dot_frequency=_frequencies(items.interval_s[dots]).tolist(),
        dot_weight=ratio[dots].tolist(),
        dot_key=[known.get(int(item_id), "") for item_id in items.ids[dots]],
        typical=typical,
        equal_weights=bool(np.ptp(ratio) < 1e-9 * typical),
        priced=price_per_request(settings, spent) > 0,
        earns=items.stakes is not None,
        most_money_per_day=None if settings.money is None else 86400.0 * settings.money,
    )


def budgets(items: PlanItems, objective: str, settings: BudgetTable, spent: Spent) -> list[BudgetPoint]:
    """What budgets from a 64th to 64 times today's give."""
    if not items.rate.size:
        return []
    asked = settings.requests * np.geomspace(1 / _SPAN, _SPAN, BUDGET_POINTS)
    return [budget_point(items, objective, budget, settings, spent) for budget in asked.tolist()]


def budget_point(
    items: PlanItems, objective: str, requests: float, settings: BudgetTable, spent: Spent
) -> BudgetPoint:
    """What one budget gives."""
    money = requests * price_per_request(settings, spent)
    if not items.rate.size:
        return BudgetPoint(requests, 1.0, 0.0, 0.0, 0, 86400.0 * money)
    problem, optimum = planned(items, objective, requests)
    frequency, income = optimum.frequency, None
    if items.stakes is not None:
        money = items.scale * items.stakes.cost_per_s(frequency)
        income = 86400.0 * items.scale * items.stakes.income_per_s(items.rate, frequency)
    return BudgetPoint(
        requests,
        mean_freshness(problem, frequency),
        mean_age(problem, frequency),
        optimum.multiplier,
        round(items.scale * np.count_nonzero((frequency <= 0) & (items.rate > 0))),
        86400.0 * money,
        income,
    )


def planned(items: PlanItems, objective: str, requests: float) -> tuple[Problem, Optimum]:
    """The best plan at a budget; where copies earn, nothing is spent beyond what pays."""
    problem = problem_from(items.rate, weights=items.weight, costs=items.cost, objective=objective)
    optimum = solve(problem, requests / items.scale)
    if items.stakes is None or objective != "freshness" or optimum.multiplier >= PAYS:
        return problem, optimum
    return problem, replace(optimum, frequency=problem.plan(PAYS), multiplier=PAYS)


def other_budget(
    engine: Engine, items: PlanItems, objective: str, requests: float, spent: Spent
) -> OtherBudget:
    """Today's plan and that of another budget, compared item by item."""
    settings = engine.current().budget
    then = budget_point(items, objective, requests, settings, spent)
    now = budget_point(items, objective, settings.requests, settings, spent)
    if not items.rate.size:
        return OtherBudget(then, now, 0, 0, [], [])
    before, after = (
        planned(items, objective, budget)[1].frequency > 0 for budget in (settings.requests, requests)
    )
    back, gone = np.flatnonzero(~before & after), np.flatnonzero(before & ~after)
    return OtherBudget(
        then,
        now,
        back=round(back.size * items.scale),
        gone=round(gone.size * items.scale),
        back_named=_named(engine, items, back),
        gone_named=_named(engine, items, gone),
    )


def chos_curve(items: PlanItems, objective: str, multiplier: float, typical: float) -> tuple[Floats, Floats]:
    """The optimal frequency over the rate, at today's price μ, for an item of the typical weight per cost.

    It is the answer of a plan whose budget is the spend at that price: solved with the rates of the curve
    as items, each with a floor on nothing else (Cho & Garcia-Molina 2000, Fig. 9).
    """
    if not items.rate.size or not 0 < multiplier < math.inf:
        return np.empty(0), np.empty(0)
    end = typical / multiplier if objective == "freshness" else float(items.rate.max())
    low, high = min(float(items.rate.min()), end / 100), max(float(items.rate.max()), 1.3 * end)
    rate = np.geomspace(max(low, high * 1e-7), high, CURVE_POINTS)
    if objective == "freshness":  # the curve ends in a corner: draw it exactly
        rate = np.sort(np.r_[rate, end * (1 - np.geomspace(1e-6, 0.3, 24)), end])
    problem = problem_from(rate, weights=np.full(rate.size, typical), objective=objective)
    return rate, np.asarray(problem.plan(multiplier), dtype=np.float64)


def _rates(policy: Policy, rows: npt.NDArray[np.intp], interval_s: float) -> Floats:
    """Rates to plan with: with little evidence the mean is ruled by what an item might be at worst."""
    if not rows.size:
        return np.empty(0)
    mean = policy.ranking.rates()[rows]
    _, low, _ = policy.ranking.rate_range(rows, _LEVEL)
    return planning_rate(mean, low, interval_s, _LEVEL)


def _frequencies(interval_s: Floats) -> Floats:
    polled = np.isfinite(interval_s) & (interval_s > 0)
    return np.where(polled, 1.0 / np.where(polled, interval_s, 1.0), 0.0)


def _named(engine: Engine, items: PlanItems, rows: npt.NDArray[np.intp]) -> list[str]:
    """A few by name, the weightiest first."""
    first = rows[np.argsort(-items.weight[rows], kind="stable")][:NAMED]
    return [item.key for item in engine.store.items.by_id(items.ids[first].tolist())]
