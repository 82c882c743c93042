"""The Plan page: Cho's curve with one's own items on it, and what another budget would give.

A plan for a million items is not made at every touch of a slider. A sample of the active items, of at most
two thousand, stands for all: budgets are scaled by the share of the items that it holds, so shares
and ages are those of the whole up to the sample's own error, about 1/√n, and numbers of items are scaled up.
Where copies earn money, items count by what is at stake, and no budget is spent beyond what pays.

Plans are of the long run, by the engine's own beliefs and rule (``frontier``); how things are now, which is
what the status says, stands beside them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from afresh.allocation.problem import build_problem
from afresh.engine.engine import Engine
from afresh.engine.mind.earnings import earns
from afresh.engine.mind.snapshot import loaded, recalled, sampled
from afresh.engine.settings.tables import BudgetTable
from afresh.engine.show.status import Status
from afresh.policy.rate_populations import RatePopulations
from afresh.values.arrays import Float64s, Ints
from afresh.values.outcome import Spent
from afresh.web.frontier import Believed, Frontier
from afresh.web.plan_money import PAYS, Stakes, price_per_request, stakes_of

SAMPLE, DOTS, NAMED = 2000, 1500, 8
CURVE_POINTS, BUDGET_POINTS = 160, 41
_SPAN = 64.0


@dataclass(frozen=True, slots=True)
class PlanItems:
    """The items planned for: ``scale`` real ones stand behind each.

    ``rate`` is the median of what is believed, per second; ``weight`` is as set, ``ratio`` as ranked.
    """

    ids: Ints
    believed: Believed
    doubt: RatePopulations
    rate: Float64s
    weight: Float64s
    ratio: Float64s
    interval_s: Float64s
    active: int
    scale: float
    stakes: Stakes | None = None
    _frontiers: dict[str, Frontier] = field(default_factory=dict)

    def planned(self, objective: str, requests: float) -> tuple[Float64s, float]:
        """How often to poll each at a budget, and at which level of worth; no more than pays is spent."""
        if objective not in self._frontiers:
            floor = PAYS if self.stakes is not None and objective == "freshness" else 0.0
            self._frontiers[objective] = Frontier(self.believed, objective, floor)
        return self._frontiers[objective].at(requests / self.scale)


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """What one budget gives: weighted freshness and age, items dropped, what it costs and earns a day.

    ``freshness`` with its 90 % interval (``doubt``). ``income_per_day`` is net of the cost; None where no
    source says what a copy earns.
    """

    requests_per_s: float
    freshness: float
    freshness_low: float
    freshness_high: float
    age_s: float
    marginal: float
    dropped: int
    money_per_day: float
    income_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class Now:
    """How things are, as the status says."""

    freshness: float
    age_s: float
    dropped: int


@dataclass(frozen=True, slots=True)
class PlanView:
    """Everything the page draws. The curve is for ``weight/cost`` = ``typical``; frequencies per second.

    ``now`` is how things are, ``today`` what today's budget gives in the long run; ``absorbed_per_s`` what
    the hosts can take.
    """

    objective: str
    items: int
    sample: int
    now: Now
    today: BudgetPoint
    absorbed_per_s: float
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
    today: BudgetPoint
    back: int
    gone: int
    back_named: list[str]
    gone_named: list[str]


def plan_items(engine: Engine, now_s: float, seed: int = 0) -> PlanItems:
    """The active items with a weight, or a sample of them drawn evenly."""
    store = engine.store
    total = sum(count.items for count in store.items.counts())
    memory = loaded(sampled(store, total))
    # What is believed does not depend on the budget that was asked for since.
    settings = replace(engine.settings, budget=engine.settings.budget.of_items(total))
    policy = recalled(store, settings, memory, now_s)
    rows = np.flatnonzero(memory.ranked_weight(slice(None)) > 0)
    active = round(rows.size * total / max(memory.size, 1))
    rng = np.random.default_rng(seed)
    if rows.size > SAMPLE:
        rows = np.sort(rng.choice(rows, SAMPLE, replace=False))
    known = Believed.of(policy, rows)
    return PlanItems(
        ids=memory.ids[rows],
        believed=known,
        doubt=RatePopulations.draw(known.evidence(), rng),
        rate=known.median(),
        weight=memory.weight[rows],
        ratio=known.worth_of_one,
        interval_s=policy.due_times(rows, now_s) - now_s,
        active=active,
        scale=active / max(rows.size, 1),
        stakes=stakes_of(store, settings, policy, rows) if earns(settings) else None,
    )


def plan_view(
    engine: Engine, items: PlanItems, objective: str, status: Status, budget: BudgetTable
) -> PlanView:
    """The page's data for one objective; ``budget`` is today's."""
    spent = status.spent_last_hour
    ratio = items.ratio if items.rate.size else np.ones(1)
    typical = float(np.median(ratio))
    dots = np.unique(np.linspace(0, items.rate.size - 1, min(DOTS, items.rate.size)).astype(np.intp))
    today = budget_point(items, objective, budget.requests, budget, spent)
    rate, frequency = chos_curve(items, objective, today.marginal, typical)
    known = {item.id: item.key for item in engine.store.items.by_id(items.ids[dots].tolist())}
    return PlanView(
        objective=objective,
        items=items.active,
        sample=int(items.rate.size),
        now=Now(status.freshness.value, status.age_s, status.dropped),
        today=today,
        absorbed_per_s=status.absorbed_per_s,
        budgets=budgets(items, objective, budget, spent),
        curve_rate=rate.tolist(),
        curve_frequency=frequency.tolist(),
        dot_rate=items.rate[dots].tolist(),
        dot_frequency=_frequencies(items.interval_s[dots]).tolist(),
        dot_weight=ratio[dots].tolist(),
        dot_key=[known.get(int(item_id), "") for item_id in items.ids[dots]],
        typical=typical,
        equal_weights=bool(np.ptp(ratio) < 1e-9 * typical),
        priced=price_per_request(budget, spent) > 0,
        earns=items.stakes is not None,
        most_money_per_day=None if budget.money is None else 86400.0 * budget.money,
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
        return BudgetPoint(requests, 1.0, 1.0, 1.0, 0.0, 0.0, 0, 86400.0 * money)
    frequency, level = items.planned(objective, requests)
    fresh, income = items.believed.fresh(frequency), None
    if items.stakes is not None:
        money = items.scale * items.stakes.cost_per_s(frequency)
        income = 86400.0 * items.scale * items.stakes.income_per_s(fresh, frequency)
    share = items.weight / items.weight.sum()
    return BudgetPoint(
        requests,
        float(share @ fresh),
        *_between(items, objective, requests, frequency, share),
        float(share @ items.believed.ages(frequency)),
        level,
        round(items.scale * np.count_nonzero(frequency <= 0)),
        86400.0 * money,
        income,
    )


def _between(
    items: PlanItems, objective: str, requests: float, frequency: Float64s, share: Float64s
) -> tuple[float, float]:
    """The freshness between which a plan will come to lie: at the upper end, rates are known by then."""
    known = items.believed
    value = float(share @ known.fresh(frequency))
    low, high = items.doubt.interval(known.fresh_at(frequency), share)
    learned = known.fresh_once_known(objective, requests / items.scale, share) - value
    return min(low, value), min(max(high, value) + max(learned, 0.0), 1.0)


def other_budget(
    engine: Engine, items: PlanItems, objective: str, requests: float, spent: Spent, budget: BudgetTable
) -> OtherBudget:
    """The plans of today's budget and of another, compared item by item."""
    then, today = (
        budget_point(items, objective, each, budget, spent) for each in (requests, budget.requests)
    )
    if not items.rate.size:
        return OtherBudget(then, today, 0, 0, [], [])
    before, after = (items.planned(objective, each)[0] > 0 for each in (budget.requests, requests))
    back, gone = np.flatnonzero(~before & after), np.flatnonzero(before & ~after)
    return OtherBudget(
        then,
        today,
        back=round(back.size * items.scale),
        gone=round(gone.size * items.scale),
        back_named=_named(engine, items, back),
        gone_named=_named(engine, items, gone),
    )


def chos_curve(
    items: PlanItems, objective: str, multiplier: float, typical: float
) -> tuple[Float64s, Float64s]:
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
    problem = build_problem(rate, weights=np.full(rate.size, typical), objective=objective)
    return rate, np.asarray(problem.plan(multiplier), dtype=np.float64)


def _frequencies(interval_s: Float64s) -> Float64s:
    polled = np.isfinite(interval_s) & (interval_s > 0)
    return np.where(polled, 1.0 / np.where(polled, interval_s, 1.0), 0.0)


def _named(engine: Engine, items: PlanItems, rows: npt.NDArray[np.intp]) -> list[str]:
    """A few by name, the weightiest first."""
    first = rows[np.argsort(-items.weight[rows], kind="stable")][:NAMED]
    return [item.key for item in engine.store.items.by_id(items.ids[first].tolist())]
