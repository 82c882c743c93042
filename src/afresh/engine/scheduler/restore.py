"""The engine's mind as the store remembers it, for whoever asks from outside while another process runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

import numpy as np

from afresh.engine.scheduler.earnings import (
    apply_money_terms,
    has_income,
    money_terms,
    most_useful_polls_per_s,
    update_budget,
)
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.learned_state import read_learned_state
from afresh.engine.scheduler.observed_staleness import ObservedStaleness, read_staleness_reports
from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.ranking import Ranking
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import FIRST_RUN, POLL_COSTS, SHADOW_PRICE
from afresh.stores.store import Store
from afresh.values.items import ItemQuery
from afresh.values.stored import PolicyColumns

SAMPLE, BLOCKS = 100_000, 50
NAMES_LOOKED_AT = 50_000
PLANNED = 5_000  # items that settle a price
_PAGE = 1000
_HOUR_S, _WEEK_S = 3600.0, 7 * 86400.0
_LEAST_PACE = 1e-6


def load_items(columns: Iterable[PolicyColumns]) -> ItemRows:
    """These items as a memory."""
    item_rows = ItemRows()
    item_rows.load(columns)
    return item_rows


def restore_policy(store: Store, settings: Settings, item_rows: ItemRows, now_s: float) -> RowPolicy:
    """The policy over these items, with what was last kept of them, of all together, and of the price."""
    items = sum(count.items for count in store.items.counts())
    whole = item_rows.size >= items
    names = (
        read_names(store)
        if whole and 0 < items <= NAMES_LOOKED_AT and not _knows_families(item_rows)
        else None
    )
    ranking = Ranking(
        item_rows,
        ranking_budget(store, settings, item_rows, now_s),
        settings.plan.objective,
        now_s,
        names=names,
        shared=read_learned_state(store),
        of_items=max(items, 1),
    )
    policy = RowPolicy(item_rows, ranking, settings.plan.policy)
    poll_costs = read_poll_costs(store)
    policy.staleness = restore_staleness(store, settings, item_rows)
    if policy.staleness is not None or has_income(settings):
        sources = store.plan.names()
        apply_money_terms(policy, settings, sources, poll_costs)
        if whole:
            update_budget(policy, settings, sources, poll_costs)
    kept = store.state.get(SHADOW_PRICE)
    if kept is not None and float(kept) > 0:
        policy.record_pick(float(kept))
    elif whole:
        policy.record_pick(plan_shadow_price(policy, settings.budget.requests))
    return policy


def start_policy(store: Store, settings: Settings, item_rows: ItemRows, now_s: float) -> RowPolicy:
    """The same for an engine that starts: on a ladder of rates that fits its items and its budget."""
    policy = restore_policy(store, settings, item_rows, now_s)
    if policy.ranking.is_complete and policy.ranking.needs_new_grid():
        policy.ranking.rebuild(policy.ranking.budget_per_s, None)
    return policy


def read_poll_costs(store: Store) -> PollCosts:
    """What polls of each source were measured to take."""
    return PollCosts.unpack(store.state.get(POLL_COSTS))


def restore_staleness(store: Store, settings: Settings, item_rows: ItemRows) -> ObservedStaleness | None:
    """What was last seen of these items without polls; None where nothing was."""
    kept = read_staleness_reports(store, [table.settings.name for table in settings.sources])
    if not kept:
        return None
    ids = store.items.ids(list(kept))
    rows = {key: row for key in kept if key in ids and (row := item_rows.row(ids[key])) is not None}
    return ObservedStaleness.of({row: kept[key] for key, row in rows.items()}, rows) if rows else None


def ranking_budget(store: Store, settings: Settings, item_rows: ItemRows, now_s: float) -> float:
    """The polls per second to rank by: what is made in fact or, where copies earn, what could pay at most.

    It is that of all items, of which ``item_rows`` may hold some.
    """
    if not has_income(settings):
        return measured_requests_per_s(store, settings.budget.requests, now_s)
    terms = money_terms(item_rows, None, settings, store.plan.names(), read_poll_costs(store))
    items = sum(count.items for count in store.items.counts())
    return most_useful_polls_per_s(item_rows, terms, settings.budget) * max(items, 1) / max(item_rows.size, 1)


def measured_requests_per_s(store: Store, requests_per_s: float, now_s: float) -> float:
    """The requests per second that are made in fact: hosts rest, engines run now and then, windows close.

    It is what the last week shows, once it shows an hour at least; never more than the budget.
    """
    kept = store.state.get(FIRST_RUN)
    span_s = min(now_s - float(kept), _WEEK_S) if kept else 0.0
    if span_s < _HOUR_S:
        return requests_per_s
    spent = store.ledger.total(now_s - span_s, math.inf).requests
    return min(max(spent / span_s, requests_per_s * _LEAST_PACE), requests_per_s)


def _knows_families(item_rows: ItemRows) -> bool:
    """Whether the store said which items belong together, of all of them."""
    known = sum(found.known.size for _, found in item_rows.pending_beliefs if found.families.shape[1])
    return known == item_rows.size


def read_names(store: Store) -> list[str]:
    """The keys of all items in order of id, without their scheme: their paths tell who belongs together."""
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = store.items.page(ItemQuery(), _PAGE, cursor)
        names += [item.key.partition("://")[2] or item.key for item in page.items]
        cursor = page.cursor
        if cursor is None:
            return names


def read_sample(store: Store, items: int) -> list[PolicyColumns]:
    """All items, or of very many some blocks that are spread evenly over the order of their registration."""
    if items <= SAMPLE:
        return list(store.plan.columns())
    newest = store.items.page(ItemQuery(sort="id", descending=True), 1).items
    step = (newest[0].id if newest else 0) / BLOCKS
    found: list[PolicyColumns] = []
    for block in range(BLOCKS):
        after = max(int(block * step), int(found[-1].id[-1]) if found else 0)
        found += islice(store.plan.columns(after_id=after, batch=SAMPLE // BLOCKS), 1)
    return found


def plan_shadow_price(policy: RowPolicy, budget_per_s: float) -> float:
    """The worth at which items are polled when the budget is spent; 0 where nothing is worth a poll.

    It is the level μ with Σ c/τ(μ) = budget, τ the time in which an item's own worth reaches it.
    """
    item_rows = policy.item_rows
    rows = np.flatnonzero(item_rows.is_active & (item_rows.weight > 0) & ~policy.is_observed())
    if rows.size == 0 or policy.break_even_value > 0:
        return policy.break_even_value
    total = float(item_rows.ranked_cost(rows).sum())
    if policy.name == "uniform":
        return total / budget_per_s
    rows = rows[:: -(-rows.size // PLANNED)]
    cost = item_rows.ranked_cost(rows)
    share = budget_per_s * float(cost.sum()) / total
    low, high = (policy.ranking.policy.review_value * factor for factor in (1e-9, 1e9))
    while high / low > 1.0 + 1e-6:
        middle = math.sqrt(low * high)
        after_s = np.clip(
            policy.ranking.time_to_reach(rows, middle),
            item_rows.min_interval_s[rows],
            item_rows.max_interval_s[rows],
        )
        spent = float(np.sum(cost / np.maximum(after_s, 1e-9)))
        low, high = (middle, high) if spent > share else (low, middle)
    return math.sqrt(low * high)


def save_planned_price(store: Store, settings: Settings, now_s: float) -> None:
    """Keep the planned threshold: where no engine runs, none finds it by polling."""
    policy = restore_policy(store, settings, load_items(store.plan.columns()), now_s)
    threshold = plan_shadow_price(policy, settings.budget.requests)
    store.state.set({SHADOW_PRICE: repr(threshold).encode()})
