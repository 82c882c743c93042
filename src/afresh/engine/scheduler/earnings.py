"""Money: what a right copy is worth and what a poll costs, and the budget that follows from both.

A source with a ``benefit`` (money per time of a right copy) or a ``stale_cost`` (of a wrong one) has income.
Its items are ranked by money at stake over money for a poll, w·(B+O)·[∫z − τz(τ)]/c, and one is polled when
this reaches 1: then the next unit of money earns itself, and net income is the highest (Razniewski 2016, §5;
the plan of ``allocate`` whose multiplier is 1). Polls are made as long as they pay, and an item that never
pays, w·(B+O) ≤ c·λ, is futile and is not polled. The limits of the budget stay: the best polls come first.

``plan_spending`` computes what follows from today's beliefs: requests, money, income, and futile items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from afresh.allocation.watched import allocate_watched
from afresh.engine.scheduler.forecast import Forecast
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.observed_staleness import ObservedStaleness
from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.settings.tables import BudgetTable, Settings
from afresh.money.chosen_budget import Prices, ResourceUse, choose_budget
from afresh.values.arrays import Bools, Float64s, Ints

PLANNED_ITEMS = 5_000  # items that a plan is computed from
_SAME = 0.02  # a factor that moved by less is not ranked again
_FAR = 0.1  # a budget that moved by less is not ranked again
_LEAST = 1e-12
_ANY_LEVEL = 0.5
_MOST_OFTEN = 0.298  # max of (1 − e^{−x} − x·e^{−x})/x
_NEARLY = 0.99  # a limit that is used to this share binds
_LEAST_USEFUL = 0.01  # the ranking plans for this share of the useful polls at least


@dataclass(frozen=True, slots=True)
class MoneyInput:
    """What money is computed from: settings, names of sources by code, measured costs of polls."""

    settings: Settings
    names: Mapping[int, str]
    poll_costs: PollCosts


@dataclass(frozen=True, slots=True)
class SpendingPlan:
    """What the engine chose to spend per second, and what it expects to earn; counts of items. ``price`` is
    what one more unit of money would earn beyond itself: above 0 where ``[budget] money`` binds."""

    requests_per_s: float
    money_per_s: float
    income_per_s: float
    futile: int
    dropped: int
    price: float


_NOTHING = SpendingPlan(0.0, 0.0, 0.0, 0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class MoneyTerms:
    """Columns over all rows: benefit and stale cost per second and unit of weight, and what a poll takes."""

    benefit: Float64s
    stale_cost: Float64s
    requests: Float64s
    bytes: Float64s
    seconds: Float64s

    def money(self, budget: BudgetTable) -> Float64s:
        return np.asarray(
            self.requests * budget.price_per_request
            + self.bytes * budget.price_per_gb / 1e9
            + self.seconds * budget.price_per_second
        )

    def mean_poll(self, budget: BudgetTable) -> float:
        cost = np.maximum(self.money(budget), _LEAST)
        return float(cost.mean()) if cost.size else 1.0

    def paid_off_s(self, budget: BudgetTable) -> Float64s:
        """Return for how long a poll of each row keeps others from starting: the longest of its debts counts.
        Without a limit of seconds a refresh still takes its own time."""
        longest = np.maximum(1.0 / budget.requests, self.seconds / (budget.seconds or 1.0))
        if budget.bytes is not None:
            longest = np.maximum(longest, self.bytes / budget.bytes)
        if budget.money is not None:
            longest = np.maximum(longest, self.money(budget) / budget.money)
        return np.asarray(longest)


def has_income(settings: Settings) -> bool:
    """Return whether any source says what its copies are worth."""
    return any(table.benefit > 0 or table.stale_cost > 0 for table in settings.sources)


def money_terms(item_rows: ItemRows, staleness: ObservedStaleness | None, given: MoneyInput) -> MoneyTerms:
    """Return what is at stake at each row and what its polls take, as measured."""
    codes, which = np.unique(item_rows.source, return_inverse=True)
    columns = np.zeros((max(codes.size, 1), 5))
    for at, code in enumerate(codes.tolist()):
        name = given.names.get(code, "")
        table = given.settings.source(name)
        stakes = (table.benefit, table.stale_cost) if table is not None else (0.0, 0.0)
        columns[at] = *stakes, *given.poll_costs.mean(name)
    benefit, stale_cost, requests, received, seconds = columns[which].T.copy()
    if staleness is not None:
        known = np.isfinite(staleness.cost_s)
        seconds[staleness.rows[known]] = staleness.cost_s[known]
    return MoneyTerms(benefit, stale_cost, requests, received, seconds)


def apply_money_terms(policy: RowPolicy, given: MoneyInput) -> None:
    """Let the policy rank by what its rows are worth and cost now; nothing to do where nothing says so."""
    earns, staleness, money = has_income(given.settings), policy.staleness, policy.money
    if not earns and staleness is None and not money.is_applied:
        return
    item_rows, budget = policy.item_rows, given.settings.budget
    terms = money_terms(item_rows, staleness, given)
    value, cost = np.ones(item_rows.size), np.ones(item_rows.size)
    paid_off_s = terms.paid_off_s(budget)
    if earns:
        # In units of a mean poll, so that the budget of the ranking stays one of polls.
        unit = terms.mean_poll(budget)
        value = (terms.benefit + terms.stale_cost) / unit
        cost = np.maximum(terms.money(budget), _LEAST) / unit
    elif staleness is not None:
        cost[staleness.rows] = np.maximum(paid_off_s[staleness.rows] * budget.requests, 1.0)
    if staleness is not None:
        money.paid_off_s = paid_off_s[staleness.rows]
    money.break_even_value, money.is_applied = float(earns), earns or staleness is not None
    moved = _differ(value, item_rows.value_factor) | _differ(cost, item_rows.cost_factor)
    if moved.any():
        rows = np.flatnonzero(moved)
        item_rows.value_factor[rows], item_rows.cost_factor[rows] = value[rows], cost[rows]
        policy.ranking.grow()
        policy.ranking.update_weights(rows)


def _differ(new: Float64s, old: Float64s) -> Bools:
    return np.asarray(np.abs(new - old) > _SAME * old)


def plan_budget(policy: RowPolicy, given: MoneyInput) -> float:
    """Return the polls per second to rank by when the ranking is built again."""
    if not has_income(given.settings):
        return given.settings.budget.requests
    apply_money_terms(policy, given)
    terms = money_terms(policy.item_rows, policy.staleness, given)
    return most_useful_polls_per_s(policy.item_rows, terms, given.settings.budget)


def update_budget(policy: RowPolicy, given: MoneyInput) -> SpendingPlan | None:
    """Choose the budget again, and let the ranking follow; None where no source has income."""
    found, budget = plan_spending(policy, given), given.settings.budget
    if found is None:
        return None
    if policy.item_rows.size:
        terms = money_terms(policy.item_rows, policy.staleness, given)
        most = most_useful_polls_per_s(policy.item_rows, terms, budget)
        polls_per_s = found.money_per_s / terms.mean_poll(budget)
        polls_per_s = min(max(polls_per_s, _LEAST_USEFUL * most), budget.requests)
        if abs(polls_per_s - policy.ranking.budget_per_s) > _FAR * policy.ranking.budget_per_s:
            policy.ranking.set_budget(polls_per_s)
    money = np.inf if budget.money is None else budget.money
    at_limit = found.requests_per_s >= _NEARLY * budget.requests or found.money_per_s >= _NEARLY * money
    # Limits of bytes and seconds may bind, too: how near they are is not known here.
    policy.money.is_limited = at_limit or budget.bytes is not None or budget.seconds is not None
    return found


def most_useful_polls_per_s(item_rows: ItemRows, terms: MoneyTerms, budget: BudgetTable) -> float:
    """Return the most polls that could pay, whatever the rates: the scale on which rates are sought at first.
    The best frequency at rate λ is β·g(x)/x with β = w(B+O)/c and g(x) = 1 − e^{−x} − x·e^{−x} = λ/β, which
    is at most 0.298·β (at x = 1.79). What changes faster than β never pays."""
    at_stake = float(np.sum(item_rows.weight * (terms.benefit + terms.stale_cost)))
    if not at_stake > 0:
        return budget.requests
    return min(max(_MOST_OFTEN * at_stake / terms.mean_poll(budget), _LEAST), budget.requests)


def plan_spending(policy: RowPolicy, given: MoneyInput, scale: float = 1.0) -> SpendingPlan | None:
    """Return what is spent and earned by what is believed now; None where no source has income. Each item of
    the policy stands for ``scale`` items."""
    if not has_income(given.settings):
        return None
    item_rows, budget = policy.item_rows, given.settings.budget
    rows = np.flatnonzero(item_rows.is_active)
    if rows.size == 0:
        return _NOTHING
    step = -(-rows.size // PLANNED_ITEMS)
    scale *= rows.size / rows[::step].size
    rows = rows[::step]
    terms = money_terms(item_rows, policy.staleness, given)
    limit = None if budget.money is None else budget.money / scale
    seen = policy.is_observed()
    if policy.staleness is not None:
        seen[policy.staleness.rows] &= policy.staleness.rates() > 0
    observed = _plan_observed(policy, terms, budget, rows[seen[rows]], limit)
    left = None if limit is None else max(limit - observed.money_per_s, _LEAST)
    most = max(budget.requests / scale - observed.requests_per_s, _LEAST)
    both = (observed, _plan_polled(policy, terms, budget, rows[~seen[rows]], left, most))
    return SpendingPlan(
        scale * sum(one.requests_per_s for one in both),
        scale * sum(one.money_per_s for one in both),
        scale * sum(one.income_per_s for one in both),
        round(scale * sum(one.futile for one in both)),
        round(scale * sum(one.dropped for one in both)),
        max(one.price for one in both),
    )


def _plan_observed(
    policy: RowPolicy, terms: MoneyTerms, budget: BudgetTable, rows: Ints, limit: float | None
) -> SpendingPlan:
    """Plan for items that are refreshed once for each change: worth it where w·(B+O) > c·λ."""
    if rows.size == 0 or policy.staleness is None:
        return _NOTHING
    weight, cost = policy.item_rows.weight[rows], np.maximum(terms.money(budget)[rows], _LEAST)
    rate = policy.staleness.rates()[np.searchsorted(policy.staleness.rows, rows)]
    benefit, stale = weight * terms.benefit[rows], weight * terms.stale_cost[rows]
    pays = benefit + stale > cost * rate
    needed = float(np.sum((cost * rate)[pays]))
    plan = allocate_watched(
        rate,
        needed if limit is None else min(limit, needed),
        weights=np.where(pays, benefit + stale, 0.0),
        costs=cost,
    )
    fresh = np.where(pays, plan.freshness, 0.0)
    income = fresh * benefit - (1.0 - fresh) * stale - plan.frequency * cost
    requests = float(np.sum(plan.frequency * terms.requests[rows]))
    dropped = int(np.count_nonzero(pays & (plan.frequency <= 0)))
    price = max(plan.price - 1.0, 0.0) if limit is not None and needed > limit else 0.0
    return SpendingPlan(requests, plan.spend, float(income.sum()), int(np.sum(~pays)), dropped, price)


def _plan_polled(
    policy: RowPolicy,
    terms: MoneyTerms,
    budget: BudgetTable,
    rows: Ints,
    limit: float | None,
    most_requests: float,
) -> SpendingPlan:
    if rows.size == 0:
        return _NOTHING
    weight = policy.item_rows.weight[rows]
    # The median: the mean of what is believed of an item that nobody knows is far above it.
    rate = Forecast(policy).rate_range(rows, _ANY_LEVEL)[0]
    plan = choose_budget(
        np.maximum(rate, _LEAST),
        weight * terms.benefit[rows],
        Prices(second=1.0),
        use=ResourceUse(requests=terms.requests[rows], seconds=np.maximum(terms.money(budget)[rows], _LEAST)),
        stale_cost=weight * terms.stale_cost[rows],
        limit=limit,
        most_requests=most_requests,
    )
    futile = policy.is_futile(rows)
    dropped = int(np.count_nonzero(plan.dropped & ~futile))
    income = float(plan.net_income.sum())
    return SpendingPlan(plan.requests, plan.money, income, int(futile.sum()), dropped, plan.price)
