"""Money: what fresh copies earn, what polls cost, and the budget that follows from both.

A source has income if its settings state a ``benefit`` B (what a fresh copy earns per second) or a
``stale_cost`` O (what a stale copy loses per second), both for weight 1. The poll value of its items is then
w·(B+O)·[∫z − τ·z(τ)]/c. Here w is the weight, c the money that a poll costs, τ the time since the last poll,
z(t) the probability that the copy is still fresh after a time t, and ∫z its integral from 0 to τ. An item is
polled when this value reaches 1: then one more unit of money earns one unit, and the net income is highest
(Razniewski 2016, section 5; this is the plan of ``allocate`` whose multiplier is 1). If w·(B+O) ≤ c·λ, where
λ is the rate of the item, no poll pays: it is futile and is not polled. The limits of the budget still apply;
within them the polls of highest value are made first. If the source has an ``update_cost`` C_U, each change
that is found costs C_U as well, and B+O becomes B+O−λ·C_U/w (``policy.adaptive.update_cost``). If it states a
``decay``, z is that one (``policy.adaptive.decayed_value``), and not e^{−λt}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from afresh.allocation.watched import allocate_watched
from afresh.engine.scheduler.forecast import Forecast
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.lag_tiers import LagTargets
from afresh.engine.scheduler.observed_staleness import ObservedStaleness
from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.settings.tables import BudgetTable, Settings
from afresh.money.chosen_budget import choose_budget
from afresh.values.arrays import Bools, Float64s, Ints

PLANNED_ITEMS = 5_000  # a plan is computed from at most this many items
_SAME = 0.02  # rows are ranked again only if a factor changed by more than this share
_FAR = 0.1  # the budget of the ranking is set again only if it changed by more than this share
_LEAST = 1e-12
_MOST_OFTEN = 0.298  # max of (1 − e^{−x} − x·e^{−x})/x
_NEARLY = 0.99  # a limit counts as reached if this share of it is used
_LEAST_USEFUL = 0.01  # the ranking plans for at least this share of the polls that could pay


@dataclass(frozen=True, slots=True)
class MoneyInput:
    """The input of all computations of money: settings, names of sources by number, measured poll costs."""

    settings: Settings
    names: Mapping[int, str]
    poll_costs: PollCosts


@dataclass(frozen=True, slots=True)
class SpendingPlan:
    """What the engine plans to spend per second, the net income per second that it expects, and the numbers
    of futile and dropped items. ``price`` is the net income of one more unit of money per second; it is above
    0 if ``[budget] money`` prevents polls that would pay."""

    requests_per_s: float
    money_per_s: float
    income_per_s: float
    futile: int
    dropped: int
    price: float


_NOTHING = SpendingPlan(0.0, 0.0, 0.0, 0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class MoneyTerms:
    """Benefit and stale cost of each row, in money per second and unit of weight, and the requests, bytes and
    seconds that a poll of the row needs; ``update_cost`` is the money that a change costs that a poll finds.
    Every column has all rows."""

    benefit: Float64s
    stale_cost: Float64s
    requests: Float64s
    bytes: Float64s
    seconds: Float64s
    update_cost: Float64s

    def money(self, budget: BudgetTable) -> Float64s:
        """Return the money that a poll of each row costs."""
        return np.asarray(
            self.requests * budget.price_per_request
            + self.bytes * budget.price_per_gb / 1e9
            + self.seconds * budget.price_per_second
        )

    def mean_poll(self, budget: BudgetTable) -> float:
        """Return the money that a poll costs on average over all rows."""
        cost = np.maximum(self.money(budget), _LEAST)
        return float(cost.mean()) if cost.size else 1.0

    def paid_off_s(self, budget: BudgetTable) -> Float64s:
        """Return for how many seconds a poll of each row delays other polls. The poll uses up each limit of
        the budget for some time, and the longest of these times counts. Without a limit of seconds, the poll
        still delays others for as long as it takes."""
        longest = np.maximum(1.0 / budget.requests, self.seconds / (budget.seconds or 1.0))
        if budget.bytes is not None:
            longest = np.maximum(longest, self.bytes / budget.bytes)
        if budget.money is not None:
            longest = np.maximum(longest, self.money(budget) / budget.money)
        return np.asarray(longest)


def has_income(settings: Settings) -> bool:
    """Return whether the settings of any source state what its copies earn."""
    return any(table.benefit > 0 or table.stale_cost > 0 for table in settings.sources)


def money_terms(item_rows: ItemRows, staleness: ObservedStaleness | None, given: MoneyInput) -> MoneyTerms:
    """Return benefit and stale cost of each row, and the measured requests, bytes and seconds of a poll."""
    codes, which = np.unique(item_rows.source, return_inverse=True)
    columns = np.zeros((max(codes.size, 1), 6))
    for at, code in enumerate(codes.tolist()):
        name = given.names.get(code, "")
        table = given.settings.source(name)
        stakes = (table.benefit, table.stale_cost) if table is not None else (0.0, 0.0)
        update_cost = 0.0 if table is None else table.update_cost
        columns[at] = *stakes, *given.poll_costs.mean(name), update_cost
    benefit, stale_cost, requests, received, seconds, update_cost = columns[which].T.copy()
    if staleness is not None:
        known = np.isfinite(staleness.cost_s)
        seconds[staleness.rows[known]] = staleness.cost_s[known]
    return MoneyTerms(benefit, stale_cost, requests, received, seconds, update_cost)


def apply_money_terms(policy: RowPolicy, given: MoneyInput) -> None:
    """Set the value and cost factors of the rows, and rank again the rows whose factors changed."""
    earns, staleness, money = has_income(given.settings), policy.staleness, policy.money
    if not earns and staleness is None and not money.is_applied:
        return
    item_rows, budget = policy.item_rows, given.settings.budget
    terms = money_terms(item_rows, staleness, given)
    value, cost, update = np.ones(item_rows.size), np.ones(item_rows.size), np.zeros(item_rows.size)
    paid_off_s = terms.paid_off_s(budget)
    if earns:
        # Money is counted in units of the mean cost of a poll, because the ranking's budget is in polls.
        unit = terms.mean_poll(budget)
        value = (terms.benefit + terms.stale_cost) / unit
        cost = np.maximum(terms.money(budget), _LEAST) / unit
        update = terms.update_cost / unit
    elif staleness is not None:
        cost[staleness.rows] = np.maximum(paid_off_s[staleness.rows] * budget.requests, 1.0)
    money.lags = None
    if staleness is not None:
        money.paid_off_s = paid_off_s[staleness.rows]
        weight = item_rows.weight[staleness.rows]
        money.lags = LagTargets(staleness, weight, money.paid_off_s, budget.seconds or 1.0)
    money.break_even_value, money.is_applied = float(earns), earns or staleness is not None
    item_rows.update_cost[:] = update
    moved = _differ(value, item_rows.value_factor) | _differ(cost, item_rows.cost_factor)
    if moved.any():
        rows = np.flatnonzero(moved)
        item_rows.value_factor[rows], item_rows.cost_factor[rows] = value[rows], cost[rows]
        policy.ranking.grow()
        policy.ranking.update_weights(rows)


def _differ(new: Float64s, old: Float64s) -> Bools:
    return np.asarray(np.abs(new - old) > _SAME * old)


def plan_budget(policy: RowPolicy, given: MoneyInput) -> float:
    """Return the budget, in polls per second, that a rebuilt ranking should assume.

    It is the budget of the settings or, if the settings give copies an income, the part of it that earns
    more than it costs.
    """
    if not has_income(given.settings):
        return given.settings.budget.requests
    apply_money_terms(policy, given)
    terms = money_terms(policy.item_rows, policy.staleness, given)
    return most_useful_polls_per_s(policy.item_rows, terms, given.settings.budget)


def update_budget(policy: RowPolicy, given: MoneyInput) -> SpendingPlan | None:
    """Compute the spending plan, set the budget of the ranking by it and return it; None without income."""
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
    # Limits of bytes and seconds may be reached too, but how much of them is used is not known here.
    policy.money.is_limited = at_limit or budget.bytes is not None or budget.seconds is not None
    return found


def most_useful_polls_per_s(item_rows: ItemRows, terms: MoneyTerms, budget: BudgetTable) -> float:
    """Return the highest number of polls per second that could pay, whatever the rates are; the first grid of
    rates is built for it. With β = w(B+O)/c and x changes per poll, the best frequency at rate λ is β·g(x)/x,
    where g(x) = 1 − e^{−x} − x·e^{−x} = λ/β. It is at most 0.298·β (at x = 1.79). If λ > β, no poll pays."""
    at_stake = float(np.sum(item_rows.weight * (terms.benefit + terms.stale_cost)))
    if not at_stake > 0:
        return budget.requests
    return min(max(_MOST_OFTEN * at_stake / terms.mean_poll(budget), _LEAST), budget.requests)


def plan_spending(policy: RowPolicy, given: MoneyInput, scale: float = 1.0) -> SpendingPlan | None:
    """Return the spending plan that follows from the current beliefs; None if no source has income. Each item
    of the policy represents ``scale`` items."""
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
    """Plan for the observed items ``rows``, which are refreshed after each change if w·(B+O) > c·λ, that is,
    if this pays. ``limit`` is the money that may be spent per second."""
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


def _decays(policy: RowPolicy, rows: Ints) -> list[str] | str:
    """Return the decay of each row."""
    stated = policy.ranking.source_decays
    if not stated:
        return "exponential"
    return [stated.get(code, "exponential") for code in policy.item_rows.source[rows].tolist()]


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
    # The median is used because the mean of what is believed of an unknown rate is far above the median.
    rate = Forecast(policy).median_rates(rows)
    plan = choose_budget(
        np.maximum(rate, _LEAST),
        weight * terms.benefit[rows],
        np.maximum(terms.money(budget)[rows], _LEAST),
        requests=terms.requests[rows],
        stale_cost=weight * terms.stale_cost[rows],
        update_cost=terms.update_cost[rows],
        decay=_decays(policy, rows),
        limit=limit,
        most_requests=most_requests,
    )
    futile = policy.is_futile(rows)
    dropped = int(np.count_nonzero(plan.dropped & ~futile))
    income = float(plan.net_income.sum())
    return SpendingPlan(plan.requests, plan.money, income, int(futile.sum()), dropped, plan.price)
