"""The engine's mind as the store remembers it, for whoever asks from outside while another process runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

import numpy as np

from afresh.engine.mind.earnings import appraise, earns, rebudget, terms_of, useful_polls_per_s
from afresh.engine.mind.learned_state import recalled_shared
from afresh.engine.mind.memory import Memory
from afresh.engine.mind.ranking import Ranking
from afresh.engine.mind.row_policy import RowPolicy
from afresh.engine.mind.sight import Sight, kept_evidence
from afresh.engine.mind.uses import Uses
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import BEGAN, THRESHOLD, USES
from afresh.stores.store import Store
from afresh.values.items import ItemQuery
from afresh.values.stored import PolicyColumns

SAMPLE, BLOCKS = 100_000, 50
NAMES_LOOKED_AT = 50_000
PLANNED = 5_000  # items that settle a price
_PAGE = 1000
_HOUR_S, _WEEK_S = 3600.0, 7 * 86400.0
_LEAST_PACE = 1e-6


def loaded(columns: Iterable[PolicyColumns]) -> Memory:
    """These items as a memory."""
    memory = Memory()
    memory.load(columns)
    return memory


def recalled(store: Store, settings: Settings, memory: Memory, now_s: float) -> RowPolicy:
    """The policy over these items, with what was last kept of them, of all together, and of the price."""
    items = sum(count.items for count in store.items.counts())
    whole = memory.size >= items
    names = (
        names_of(store) if whole and 0 < items <= NAMES_LOOKED_AT and not _knows_families(memory) else None
    )
    ranking = Ranking(
        memory,
        ranking_budget(store, settings, memory, now_s),
        settings.plan.objective,
        now_s,
        names=names,
        shared=recalled_shared(store),
        of_items=max(items, 1),
    )
    policy = RowPolicy(memory, ranking, settings.plan.policy)
    uses = uses_of(store)
    policy.sight = recalled_sight(store, settings, memory)
    if policy.sight is not None or earns(settings):
        sources = store.plan.names()
        appraise(policy, settings, sources, uses)
        if whole:
            rebudget(policy, settings, sources, uses)
    kept = store.state.get(THRESHOLD)
    if kept is not None and float(kept) > 0:
        policy.picked(float(kept))
    elif whole:
        policy.picked(planned_threshold(policy, settings.budget.requests))
    return policy


def begun(store: Store, settings: Settings, memory: Memory, now_s: float) -> RowPolicy:
    """The same for an engine that starts: on a ladder of rates that fits its items and its budget."""
    policy = recalled(store, settings, memory, now_s)
    if policy.ranking.whole and policy.ranking.is_far():
        policy.ranking.remade(policy.ranking.budget_per_s, None)
    return policy


def uses_of(store: Store) -> Uses:
    """What polls of each source were measured to take."""
    return Uses.unpack(store.state.get(USES))


def recalled_sight(store: Store, settings: Settings, memory: Memory) -> Sight | None:
    """What was last seen of these items without polls; None where nothing was."""
    kept = kept_evidence(store, [table.settings.name for table in settings.sources])
    if not kept:
        return None
    ids = store.items.ids(list(kept))
    rows = {key: row for key in kept if key in ids and (row := memory.row(ids[key])) is not None}
    return Sight.of({row: kept[key] for key, row in rows.items()}, rows) if rows else None


def ranking_budget(store: Store, settings: Settings, memory: Memory, now_s: float) -> float:
    """The polls per second to rank by: what is made in fact or, where copies earn, what could pay at most.

    It is that of all items, of which ``memory`` may hold some.
    """
    if not earns(settings):
        return paced(store, settings.budget.requests, now_s)
    terms = terms_of(memory, None, settings, store.plan.names(), uses_of(store))
    items = sum(count.items for count in store.items.counts())
    return useful_polls_per_s(memory, terms, settings.budget) * max(items, 1) / max(memory.size, 1)


def paced(store: Store, requests_per_s: float, now_s: float) -> float:
    """The requests per second that are made in fact: hosts rest, engines run now and then, windows close.

    It is what the last week shows, once it shows an hour at least; never more than the budget.
    """
    kept = store.state.get(BEGAN)
    span_s = min(now_s - float(kept), _WEEK_S) if kept else 0.0
    if span_s < _HOUR_S:
        return requests_per_s
    spent = store.ledger.total(now_s - span_s, math.inf).requests
    return min(max(spent / span_s, requests_per_s * _LEAST_PACE), requests_per_s)


def _knows_families(memory: Memory) -> bool:
    """Whether the store said which items belong together, of all of them."""
    known = sum(found.known.size for _, found in memory.kept if found.families.shape[1])
    return known == memory.size


def names_of(store: Store) -> list[str]:
    """The keys of all items in order of id, without their scheme: their paths tell who belongs together."""
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = store.items.page(ItemQuery(), _PAGE, cursor)
        names += [item.key.partition("://")[2] or item.key for item in page.items]
        cursor = page.cursor
        if cursor is None:
            return names


def sampled(store: Store, items: int) -> list[PolicyColumns]:
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


def planned_threshold(policy: RowPolicy, budget_per_s: float) -> float:
    """The worth at which items are polled when the budget is spent; 0 where nothing is worth a poll.

    It is the level μ with Σ c/τ(μ) = budget, τ the time in which an item's own worth reaches it.
    """
    memory = policy.memory
    rows = np.flatnonzero(memory.active & (memory.weight > 0) & ~policy.watched())
    if rows.size == 0 or policy.floor > 0:
        return policy.floor
    total = float(memory.ranked_cost(rows).sum())
    if policy.name == "uniform":
        return total / budget_per_s
    rows = rows[:: -(-rows.size // PLANNED)]
    cost = memory.ranked_cost(rows)
    share = budget_per_s * float(cost.sum()) / total
    low, high = (policy.ranking.policy.review_value * factor for factor in (1e-9, 1e9))
    while high / low > 1.0 + 1e-6:
        middle = math.sqrt(low * high)
        after_s = np.clip(
            policy.ranking.due_after_s(rows, middle), memory.min_interval_s[rows], memory.max_interval_s[rows]
        )
        spent = float(np.sum(cost / np.maximum(after_s, 1e-9)))
        low, high = (middle, high) if spent > share else (low, middle)
    return math.sqrt(low * high)


def replan(store: Store, settings: Settings, now_s: float) -> None:
    """Keep the planned threshold: where no engine runs, none finds it by polling."""
    policy = recalled(store, settings, loaded(store.plan.columns()), now_s)
    threshold = planned_threshold(policy, settings.budget.requests)
    store.state.set({THRESHOLD: repr(threshold).encode()})
