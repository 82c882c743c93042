"""Computes the data of the Plan page: the optimal frequency over the change rate, and plans at other budgets.

Planning for a million items would be too slow for a slider, so a sample of at most 2000 active items stands
for all. The sample gets its share of the budget. So its freshness and age are those of all items, up to a
sampling error of about 1/√n for n items in the sample. Numbers of items are scaled up. If copies earn money,
items are weighted by the money at stake, and a poll is not made if one more unit of money spent on it earns
less than one unit (Razniewski 2016, §5).

Plans describe the long run. The page also shows the present state, as the status reports it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from afresh.allocation.problem import build_problem
from afresh.engine.engine import Engine
from afresh.engine.reporting.plan_sample import PlanSample, take_plan_sample
from afresh.engine.reporting.status import Status
from afresh.engine.settings.tables import BudgetTable
from afresh.policy.rate_populations import RatePopulations
from afresh.values.arrays import Float64s, Ints
from afresh.values.outcome import Spent
from afresh.web.reports.budget_frontier import BudgetFrontier
from afresh.web.schemas import BudgetPointOut, OtherBudgetOut, PlanNowOut, PlanOut

SAMPLE_ITEMS, CHART_ITEMS, NAMED_ITEMS = 2000, 1500, 8
CURVE_POINTS, BUDGET_POINTS = 160, 41
# The frequencies of uniform polling that are compared, as multiples of the median rate of change.
_SLOWEST, _FASTEST, _UNIFORM_POINTS = 1e-5, 1e5, 120
_SPAN = 64.0  # The budgets shown reach from a 64th of today's to 64 times today's.
_DAY_S = 86400.0
_BREAK_EVEN_PRICE = 1.0  # earnings per money spent, below which a poll loses money


@dataclass(frozen=True, slots=True)
class PlanModel:
    """A sample of items, and plans for it at any budget. ``rate`` is the median of the belief about each
    item's rate, in changes per second. ``populations`` are random draws of the distribution of true rates,
    from which the confidence interval of a planned freshness follows."""

    sample: PlanSample
    rate: Float64s
    populations: RatePopulations
    _frontiers: dict[str, BudgetFrontier] = field(default_factory=dict)
    _uniform: list[tuple[Float64s, Float64s]] = field(default_factory=list)

    def plan_at(self, objective: str, requests: float) -> tuple[Float64s, float]:
        if not self.rate.size:
            return np.empty(0), 0.0
        if objective not in self._frontiers:
            pays = self.sample.stakes is not None and objective == "freshness"
            least_price = _BREAK_EVEN_PRICE if pays else 0.0
            self._frontiers[objective] = BudgetFrontier(self.sample, objective, least_price)
        return self._frontiers[objective].plan_at(requests / self.sample.scale)

    def uniform_needs(self, frequency: Float64s, freshness: float) -> float:
        """Return how many times the requests of the plan ``frequency`` uniform polling needs in order to be
        as fresh, by the rates estimated now; NaN if nothing is polled or no frequency suffices."""
        cost = self.sample.cost
        spent = float(cost @ frequency) / float(cost.sum())
        if not self._uniform:
            at = np.geomspace(_SLOWEST, _FASTEST, _UNIFORM_POINTS) * max(float(np.median(self.rate)), 1e-12)
            even = [self.sample.posteriors.mean_freshness(np.full(cost.size, each)) for each in at]
            curve = np.array([float(self.sample.weight_share @ each) for each in even])
            inside = (curve > 0) & (curve < 1)
            self._uniform.append((at[inside], curve[inside]))
        at, curve = self._uniform[0]
        if not spent > 0 or not curve.size or not curve[0] < freshness < curve[-1]:
            return math.nan
        # Over the logarithm of the frequency, the logarithm of the odds of freshness is almost a line.
        odds, wanted = np.log(curve / (1.0 - curve)), math.log(freshness / (1.0 - freshness))
        return float(np.exp(np.interp(wanted, odds, np.log(at)))) / spent

    def freshness_interval(self, objective: str, requests: float, frequency: Float64s) -> tuple[float, float]:
        """Return the tuple (low, high) of the 90 % confidence interval of a plan's freshness. ``requests`` is
        the budget per second, ``frequency`` the plan. The upper end includes the freshness that the plan will
        gain when further polls have made the rates known."""
        posteriors, share = self.sample.posteriors, self.sample.weight_share
        value = float(share @ posteriors.mean_freshness(frequency))
        low, high = self.populations.interval(posteriors.freshness_by_rate(frequency), share)
        known = self.sample.freshness_with_known_rates(objective, requests / self.sample.scale)
        return min(low, value), min(max(high, value) + max(known - value, 0.0), 1.0)


def build_plan_model(engine: Engine, now_s: float, seed: int = 0) -> PlanModel:
    rng = np.random.default_rng(seed)
    sample = take_plan_sample(engine.store, engine.settings, now_s, SAMPLE_ITEMS, rng)
    populations = RatePopulations.draw(sample.posteriors.likelihoods(), rng)
    return PlanModel(sample, sample.posteriors.medians(), populations)


def report_plan(
    engine: Engine, model: PlanModel, objective: str, status: Status, budget: BudgetTable
) -> PlanOut:
    sample, spent = model.sample, status.spent_last_hour
    size = model.rate.size
    ratio = sample.value_per_cost if size else np.ones(1)
    typical = float(np.median(ratio))
    shown = np.unique(np.linspace(0, size - 1, min(CHART_ITEMS, size)).astype(np.intp))
    today = budget_point(model, objective, budget.requests, budget, spent)
    budgets = budget.requests * np.geomspace(1 / _SPAN, _SPAN, BUDGET_POINTS)
    curve_rate, curve_frequency = optimal_curve(model.rate, objective, today.marginal, typical)
    keys = {item.id: item.key for item in engine.store.items.by_id(sample.ids[shown].tolist())}
    return PlanOut(
        objective=objective,
        items=sample.active,
        sample=size,
        now=report_present(status),
        today=today,
        absorbed_per_s=status.absorbed_per_s,
        budgets=[budget_point(model, objective, each, budget, spent) for each in budgets.tolist() if size],
        curve_rate=curve_rate.tolist(),
        curve_frequency=curve_frequency.tolist(),
        dot_rate=model.rate[shown].tolist(),
        dot_frequency=_frequencies(sample.interval_s[shown]).tolist(),
        dot_weight=ratio[shown].tolist(),
        dot_key=[keys.get(int(item_id), "") for item_id in sample.ids[shown]],
        typical=typical,
        equal_weights=bool(np.ptp(ratio) < 1e-9 * typical),
        priced=price_per_request(budget, spent) > 0,
        earns=sample.stakes is not None,
        most_money_per_day=None if budget.money is None else _DAY_S * budget.money,
    )


def report_present(status: Status) -> PlanNowOut:
    return PlanNowOut(
        freshness=status.freshness.value,
        age_s=status.age_s,
        dropped=status.dropped,
        uniform_needs=status.uniform_needs.value,
    )


def budget_point(
    model: PlanModel, objective: str, requests: float, settings: BudgetTable, spent: Spent
) -> BudgetPointOut:
    """Return the freshness, age, dropped items and money in the long run, at a budget of ``requests`` per
    second. ``settings`` has the prices, ``spent`` is the cost of the last hour's requests."""
    sample, money_per_s, income = model.sample, requests * price_per_request(settings, spent), None
    freshness = low = high = 1.0  # if there are no items, no copy is stale
    age_s, price, dropped, needs = 0.0, 0.0, 0, math.nan
    if model.rate.size:
        frequency, price = model.plan_at(objective, requests)
        fresh = sample.posteriors.mean_freshness(frequency)
        freshness = float(sample.weight_share @ fresh)
        low, high = model.freshness_interval(objective, requests, frequency)
        age_s = sample.mean_age_s(frequency)
        dropped = round(sample.scale * np.count_nonzero(frequency <= 0))
        if objective == "freshness":
            needs = model.uniform_needs(frequency, freshness)
        if sample.stakes is not None:
            money_per_s = sample.scale * sample.stakes.cost_per_s(frequency)
            income = _DAY_S * sample.scale * sample.stakes.income_per_s(fresh, frequency)
    return BudgetPointOut(
        requests_per_s=requests,
        freshness=freshness,
        freshness_low=low,
        freshness_high=high,
        age_s=age_s,
        marginal=price,
        dropped=dropped,
        uniform_needs=needs,
        money_per_day=_DAY_S * money_per_s,
        income_per_day=income,
    )


def compare_budgets(
    engine: Engine, model: PlanModel, objective: str, requests: float, spent: Spent, budget: BudgetTable
) -> OtherBudgetOut:
    """Compare the plan at ``requests`` per second with the plan at today's ``budget``, item by item."""
    then, today = (
        budget_point(model, objective, each, budget, spent) for each in (requests, budget.requests)
    )
    before, after = (model.plan_at(objective, each)[0] > 0 for each in (budget.requests, requests))
    back, gone = np.flatnonzero(~before & after), np.flatnonzero(before & ~after)
    return OtherBudgetOut(
        then=then,
        today=today,
        back=round(back.size * model.sample.scale),
        gone=round(gone.size * model.sample.scale),
        back_named=_heaviest_keys(engine, model.sample, back),
        gone_named=_heaviest_keys(engine, model.sample, gone),
    )


def optimal_curve(
    rates: Float64s, objective: str, price: float | None, typical: float
) -> tuple[Float64s, Float64s]:
    """Return the points of a curve as a tuple (change rates, optimal frequency at each rate), per second.
    The curve is for an item whose weight divided by its cost is ``typical``, at the shadow price ``price``.
    It is the curve of Cho & Garcia-Molina 2000, Fig. 9, solved as a plan with one item for each rate."""
    if not rates.size or price is None or price <= 0:
        return np.empty(0), np.empty(0)
    end = typical / price if objective == "freshness" else float(rates.max())
    low, high = min(float(rates.min()), end / 100), max(float(rates.max()), 1.3 * end)
    rate = np.geomspace(max(low, high * 1e-7), high, CURVE_POINTS)
    if objective == "freshness":  # The curve falls steeply to 0 at ``end``, which needs denser points.
        rate = np.sort(np.r_[rate, end * (1 - np.geomspace(1e-6, 0.3, 24)), end])
    problem = build_problem(rate, weights=np.full(rate.size, typical), objective=objective)
    return rate, np.asarray(problem.plan(price), dtype=np.float64)


def price_per_request(settings: BudgetTable, spent: Spent) -> float:
    """Return the money that one request costs: the prices in ``settings`` for the request itself, and for the
    mean bytes and seconds of a request in the last hour (``spent``)."""
    carried = spent.bytes * settings.price_per_gb / 1e9 + spent.seconds * settings.price_per_second
    return settings.price_per_request + carried / max(spent.requests, 1)


def _frequencies(interval_s: Float64s) -> Float64s:
    polled = np.isfinite(interval_s) & (interval_s > 0)
    return np.where(polled, 1.0 / np.where(polled, interval_s, 1.0), 0.0)


def _heaviest_keys(engine: Engine, sample: PlanSample, rows: Ints) -> list[str]:
    first = rows[np.argsort(-sample.weight[rows], kind="stable")][:NAMED_ITEMS]
    return [item.key for item in engine.store.items.by_id(sample.ids[first].tolist())]
