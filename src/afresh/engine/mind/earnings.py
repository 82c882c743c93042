"""Money in the loop: what a right copy is worth and what a poll costs, and the budget that follows.

A source with a ``benefit`` (money per time of a right copy) or ``stale_cost`` (of a wrong one) earns. Its
items are ranked by money at stake over money for a poll, w·(B+O)·[∫z − τz(τ)]/c, and one is polled when this
reaches 1: then the next unit of money earns itself, and net income is the highest (Razniewski 2016, §5; the
plan of ``allocate`` whose multiplier is 1). Nothing need be chosen beforehand: polls are made as long as they
pay, and what never pays, w·(B+O) ≤ c·λ, is futile and left alone. Limits of the budget stay: the best come
first.

``chosen`` says what that comes to by what is believed now: requests and money per time, income, futile items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from afresh.allocation.watched import allocate_watched
from afresh.engine.mind.memory import Memory
from afresh.engine.mind.row_policy import RowPolicy
from afresh.engine.mind.sight import Sight
from afresh.engine.mind.uses import Uses
from afresh.engine.settings.tables import BudgetTable, Settings
from afresh.money.chosen_budget import Prices, ResourceUse, choose_budget
from afresh.values.arrays import Bools, Float64s, Ints

LOOKED_AT = 5_000  # items that settle what is chosen
_SAME = 0.02  # what moved by less is not ranked anew
_FAR = 0.1  # a budget that moved by less is not ranked anew
_LEAST = 1e-12
_ANY_LEVEL = 0.5
_MOST_OFTEN = 0.298  # max of (1 − e^{−x} − x·e^{−x})/x
_NEARLY = 0.99  # of a limit: it binds
_SPARED = 0.01  # of the polls that could pay, the ranking reckons with this at least


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the engine chose to spend per second, and what it expects to earn; counts of items.

    ``price`` is what one more unit of money would earn beyond itself: above 0 where ``[budget] money`` binds.
    """

    requests_per_s: float
    money_per_s: float
    income_per_s: float
    futile: int
    dropped: int
    price: float


@dataclass(frozen=True, slots=True)
class Terms:
    """Columns over all rows: benefit and stale cost per second and unit of weight, and what a poll takes."""

    benefit: Float64s
    stale_cost: Float64s
    requests: Float64s
    bytes: Float64s
    seconds: Float64s

    def money(self, budget: BudgetTable) -> Float64s:
        """What a poll of each row costs in money."""
        return np.asarray(
            self.requests * budget.price_per_request
            + self.bytes * budget.price_per_gb / 1e9
            + self.seconds * budget.price_per_second
        )

    def paid_off_s(self, budget: BudgetTable) -> Float64s:
        """For how long a poll of each row keeps others from starting: the longest of its debts counts.

        Without a limit of seconds a refresh still takes its own time.
        """
        longest = np.maximum(1.0 / budget.requests, self.seconds / (budget.seconds or 1.0))
        if budget.bytes is not None:
            longest = np.maximum(longest, self.bytes / budget.bytes)
        if budget.money is not None:
            longest = np.maximum(longest, self.money(budget) / budget.money)
        return np.asarray(longest)


def earns(settings: Settings) -> bool:
    """Whether any source says what its copies are worth."""
    return any(table.benefit > 0 or table.stale_cost > 0 for table in settings.sources)


def terms_of(
    memory: Memory, sight: Sight | None, settings: Settings, names: Mapping[int, str], uses: Uses
) -> Terms:
    """What is at stake at each row and what its polls take, as measured."""
    codes, which = np.unique(memory.source, return_inverse=True)
    columns = np.zeros((max(codes.size, 1), 5))
    for at, code in enumerate(codes.tolist()):
        name = names.get(code, "")
        table = settings.source(name)
        worth = (table.benefit, table.stale_cost) if table is not None else (0.0, 0.0)
        columns[at] = *worth, *uses.mean(name)
    benefit, stale_cost, requests, received, seconds = columns[which].T.copy()
    if sight is not None:
        told = np.isfinite(sight.cost_s)
        seconds[sight.rows[told]] = sight.cost_s[told]
    return Terms(benefit, stale_cost, requests, received, seconds)


def appraise(policy: RowPolicy, settings: Settings, names: Mapping[int, str], uses: Uses) -> None:
    """Let the policy rank by what its rows are worth and cost as of now; nothing to do where nobody says."""
    money = earns(settings)
    if not money and policy.sight is None and not policy.appraised:
        return
    memory, budget = policy.memory, settings.budget
    terms = terms_of(memory, policy.sight, settings, names, uses)
    stake, outlay = np.ones(memory.size), np.ones(memory.size)
    paid_off_s = terms.paid_off_s(budget)
    if money:
        # In units of a mean poll, so that the budget of the ranking stays one of polls.
        unit = _unit(terms, budget)
        stake = (terms.benefit + terms.stale_cost) / unit
        outlay = np.maximum(terms.money(budget), _LEAST) / unit
    elif policy.sight is not None:
        outlay[policy.sight.rows] = np.maximum(paid_off_s[policy.sight.rows] * budget.requests, 1.0)
    if policy.sight is not None:
        policy.paid_off_s = paid_off_s[policy.sight.rows]
    policy.floor, policy.appraised = float(money), money or policy.sight is not None
    _put(policy, stake, outlay)


def rebudget(policy: RowPolicy, settings: Settings, names: Mapping[int, str], uses: Uses) -> Chosen | None:
    """Choose the budget anew, and let the ranking follow; None where no source earns."""
    found = chosen(policy, settings, names, uses)
    if found is not None and policy.memory.size:
        terms = terms_of(policy.memory, policy.sight, settings, names, uses)
        most = useful_polls_per_s(policy.memory, terms, settings.budget)
        polls_per_s = found.money_per_s / _unit(terms, settings.budget)
        polls_per_s = min(max(polls_per_s, _SPARED * most), settings.budget.requests)
        if abs(polls_per_s - policy.ranking.budget_per_s) > _FAR * policy.ranking.budget_per_s:
            policy.ranking.set_budget(polls_per_s)
    if found is not None:
        policy.limited = _binds(found, settings.budget)
    return found


def _binds(found: Chosen, budget: BudgetTable) -> bool:
    """Whether a limit of the budget leaves out polls that would pay; of bytes and seconds it may."""
    money = np.inf if budget.money is None else budget.money
    at_limit = found.requests_per_s >= _NEARLY * budget.requests or found.money_per_s >= _NEARLY * money
    return at_limit or budget.bytes is not None or budget.seconds is not None


def useful_polls_per_s(memory: Memory, terms: Terms, budget: BudgetTable) -> float:
    """The most polls that could pay, whatever the rates: the scale on which rates are looked for at first.

    The best frequency at rate λ is β·g(x)/x with β = w(B+O)/c and g(x) = 1 − e^{−x} − x·e^{−x} = λ/β, which
    is at most 0.298·β (at x = 1.79). What changes faster than β never pays.
    """
    at_stake = float(np.sum(memory.weight * (terms.benefit + terms.stale_cost)))
    if not at_stake > 0:
        return budget.requests
    return min(max(_MOST_OFTEN * at_stake / _unit(terms, budget), _LEAST), budget.requests)


def _unit(terms: Terms, budget: BudgetTable) -> float:
    """The money of a mean poll."""
    cost = np.maximum(terms.money(budget), _LEAST)
    return float(cost.mean()) if cost.size else 1.0


def _put(policy: RowPolicy, stake: Float64s, outlay: Float64s) -> None:
    memory = policy.memory
    moved = _differ(stake, memory.stake) | _differ(outlay, memory.outlay)
    if moved.any():
        rows = np.flatnonzero(moved)
        memory.stake[rows], memory.outlay[rows] = stake[rows], outlay[rows]
        policy.ranking.grow()
        policy.ranking.reweighed(rows)


def _differ(new: Float64s, old: Float64s) -> Bools:
    return np.asarray(np.abs(new - old) > _SAME * old)


def chosen(
    policy: RowPolicy, settings: Settings, names: Mapping[int, str], uses: Uses, scale: float = 1.0
) -> Chosen | None:
    """What is spent and earned by what is believed now; None where no source earns.

    Each item of the policy stands for ``scale`` items.
    """
    if not earns(settings):
        return None
    memory, budget = policy.memory, settings.budget
    rows = np.flatnonzero(memory.active)
    if rows.size == 0:
        return Chosen(0.0, 0.0, 0.0, 0, 0, 0.0)
    step = -(-rows.size // LOOKED_AT)
    scale *= rows.size / rows[::step].size
    rows = rows[::step]
    terms = terms_of(memory, policy.sight, settings, names, uses)
    limit = None if budget.money is None else budget.money / scale
    seen = _seen(policy, memory)
    watched = _watched(policy, terms, budget, rows[seen[rows]], limit)
    left = None if limit is None else max(limit - watched.money_per_s, _LEAST)
    most = max(budget.requests / scale - watched.requests_per_s, _LEAST)
    looked = _looked_for(policy, terms, budget, rows[~seen[rows]], left, most)
    both = (watched, looked)
    return Chosen(
        scale * sum(one.requests_per_s for one in both),
        scale * sum(one.money_per_s for one in both),
        scale * sum(one.income_per_s for one in both),
        round(scale * sum(one.futile for one in both)),
        round(scale * sum(one.dropped for one in both)),
        max(one.price for one in both),
    )


def _seen(policy: RowPolicy, memory: Memory) -> Bools:
    """Rows whose staleness is seen, at a rate that is known."""
    found = np.zeros(memory.size, dtype=bool)
    if policy.sight is not None:
        found[policy.sight.rows] = policy.sight.known & (policy.sight.rates() > 0)
    return found


def _watched(policy: RowPolicy, terms: Terms, budget: BudgetTable, rows: Ints, limit: float | None) -> Chosen:
    """Items refreshed once for each change: worth it where w·(B+O) > c·λ."""
    if rows.size == 0 or policy.sight is None:
        return Chosen(0.0, 0.0, 0.0, 0, 0, 0.0)
    weight, cost = policy.memory.weight[rows], np.maximum(terms.money(budget)[rows], _LEAST)
    rate = policy.sight.rates()[np.searchsorted(policy.sight.rows, rows)]
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
    return Chosen(requests, plan.spend, float(income.sum()), int(np.sum(~pays)), dropped, price)


def _looked_for(
    policy: RowPolicy,
    terms: Terms,
    budget: BudgetTable,
    rows: Ints,
    limit: float | None,
    most_requests: float,
) -> Chosen:
    """Items whose changes are found by polls alone."""
    weight = policy.memory.weight[rows]
    if rows.size == 0:
        return Chosen(0.0, 0.0, 0.0, 0, 0, 0.0)
    # The median: the mean of what is believed of an item that nobody knows is far above.
    rate = policy.ranking.rate_range(rows, _ANY_LEVEL)[0]
    plan = choose_budget(
        np.maximum(rate, _LEAST),
        weight * terms.benefit[rows],
        Prices(second=1.0),
        use=ResourceUse(requests=terms.requests[rows], seconds=np.maximum(terms.money(budget)[rows], _LEAST)),
        stale_cost=weight * terms.stale_cost[rows],
        limit=limit,
        most_requests=most_requests,
    )
    futile = policy.never_pays(rows)
    return Chosen(
        plan.requests,
        plan.money,
        float(plan.net_income.sum()),
        int(futile.sum()),
        int(np.count_nonzero(plan.dropped & ~futile)),
        plan.price,
    )
