"""Restores a scheduler from the store, for an engine that starts and for commands that only read."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, takewhile
from typing import Any

import numpy as np

from afresh.engine.scheduler.earnings import (
    MoneyInput,
    apply_money_terms,
    has_income,
    money_terms,
    most_useful_polls_per_s,
    update_budget,
)
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.observed_staleness import (
    ObservedStaleness,
    observed_staleness,
    read_staleness_reports,
)
from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.ranking import Ranking, RankingStart
from afresh.engine.scheduler.row_policy import CURSOR, RowPolicy
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.scheduler.view_weights import read_link_gains, read_view_weights
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import (
    FIRST_RUN,
    LEARNED,
    LISTED_AT,
    PICKED_VALUES,
    POLL_COSTS,
    SETTLED_SOURCES,
    SHADOW_PRICE,
)
from afresh.policy.adaptive.saved_state import VERSION, Arrays
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.items import Item, ItemQuery
from afresh.values.stored import PolicyColumns
from afresh.values.zstd_frames import FrameCompressor, decompress_frame, zstd

SAMPLE, BLOCKS = 100_000, 50
MOST_NAMES = 50_000
"""Up to this number of items, families are found by the names of the items."""

PLANNED = 5_000  # items from which the shadow price is planned
_PAGE, _TOGETHER = 1000, 16
_HOUR_S, _WEEK_S = 3600.0, 7 * 86400.0
_LEAST_PACE = 1e-6
_COMPRESSION, _MOST_LEARNED_BYTES = 3, 1 << 30


def load_items(columns: Iterable[PolicyColumns], view_weights: Mapping[int, float] | None = None) -> ItemRows:
    """Return the items as rows. They are loaded in steps, because all at once would need twice the memory.
    ``view_weights`` is what item views add to the weights, by item id."""
    item_rows, batches = ItemRows(view_weights), iter(columns)
    while some := list(islice(batches, _TOGETHER)):
        item_rows.load(some)
    return item_rows


def restore_scheduler(
    store: Store, settings: Settings, columns: Iterable[PolicyColumns], now_s: float
) -> Scheduler:
    """Return a scheduler of the items in ``columns``, with their stored beliefs and the shadow price."""
    item_rows = load_items(columns, read_view_weights(store, settings.views))
    item_rows.set_link_gains(read_link_gains(store))
    items = sum(count.items for count in store.items.counts())
    given = MoneyInput(settings, store.plan.names(), read_poll_costs(store))
    ranking = _restore_ranking(store, item_rows, given, items, now_s)
    policy = RowPolicy(ranking, settings.plan.policy)
    policy.follow_sources(given.names, settings)
    policy.staleness = restore_staleness(store, settings, item_rows)
    _restore_sampling(store, policy, given)
    apply_money_terms(policy, given)
    if ranking.is_complete:
        update_budget(policy, given)
    kept = store.state.get(SHADOW_PRICE)
    if kept is not None and float(kept) > 0:
        policy.restore_price(float(kept), np.frombuffer(store.state.get(PICKED_VALUES) or b"").tolist())
    elif ranking.is_complete:
        policy.record_pick(plan_shadow_price(policy, settings.budget.requests))
    return Scheduler(policy, given.names)


def start_scheduler(
    store: Store, settings: Settings, columns: Iterable[PolicyColumns], clock: Clock
) -> Scheduler:
    """Return the scheduler for an engine that starts; a grid of rates that does not fit is built again."""
    restored = restore_scheduler(store, settings, columns, clock.now_s())
    ranking = restored.policy.ranking
    if ranking.is_complete and ranking.needs_new_grid():
        ranking.rebuild(ranking.budget_per_s, None)
    return Scheduler(restored.policy, restored.names, clock.elapsed_s)


def _restore_ranking(
    store: Store, item_rows: ItemRows, given: MoneyInput, items: int, now_s: float
) -> Ranking:
    stored = sum(found.known.size for _, found in item_rows.pending_beliefs if found.families.shape[1])
    needs_names = 0 < items <= MOST_NAMES and item_rows.size >= items and stored != item_rows.size
    start = RankingStart(
        _ranking_budget(store, item_rows, given, items, now_s),
        given.settings.plan.objective,
        now_s,
        names=read_names(store) if needs_names else None,
        shared=unpack_learned(store.state.get(LEARNED)),
        total_items=items,
    )
    return Ranking(item_rows, start)


def pack_learned(shared: Arrays) -> bytes:
    """Return what was learned of all items together as bytes to be stored.

    >>> unpack_learned(pack_learned({"version": np.array(VERSION)}))
    {'version': array(1)}
    """
    file = io.BytesIO()
    save: Any = np.savez  # its option ``allow_pickle`` is an array in NumPy 2.0, and its type hides that
    save(file, **shared)
    return FrameCompressor(_COMPRESSION).compress(file.getvalue())


def unpack_learned(packed: bytes | None) -> Arrays | None:
    """Return what ``pack_learned`` packed; None if it is missing, damaged or of another version."""
    if not packed:
        return None
    try:
        plain = decompress_frame(packed, _MOST_LEARNED_BYTES)
        with np.load(io.BytesIO(plain), allow_pickle=False) as saved:
            # NumPy 2.0 wrote the option ``allow_pickle`` of earlier versions of this file as an array.
            shared = {name: saved[name] for name in saved.files if name != "allow_pickle"}
    except (zstd.ZstdError, zipfile.BadZipFile, ValueError, OSError):
        return None
    return shared if int(shared.get("version", np.array(0))) == VERSION else None


def pack_price(policy: RowPolicy) -> dict[str, bytes | None]:
    """Return the shadow price and the recent picks as state to be stored, for ``restore_scheduler``."""
    picked = np.array(policy.picked_values, dtype=np.float64).tobytes()
    return {SHADOW_PRICE: repr(policy.shadow_price).encode(), PICKED_VALUES: picked}


def read_poll_costs(store: Store) -> PollCosts:
    return PollCosts.unpack(store.state.get(POLL_COSTS))


def settled_sources(
    store: Store, names: Mapping[int, str], listed_since_s: float = -math.inf
) -> frozenset[int]:
    """Return the numbers of the sources whose cursor proved right, as the last run saved them. Sources whose
    next listing was due before ``listed_since_s`` are left out: nobody reads their cursors any more."""
    settled = set(json.loads(store.state.get(SETTLED_SOURCES) or b"[]"))
    return frozenset(
        code
        for code, name in names.items()
        if name in settled and _next_listing_s(store, name) >= listed_since_s
    )


def _next_listing_s(store: Store, source: str) -> float:
    return float((store.state.get(LISTED_AT + source) or b"-inf").decode().partition(" ")[0])


def follow_cursors(store: Store, scheduler: Scheduler, now_s: float) -> None:
    """Let the rows of a restored scheduler wait for their cursors, as a run does, which finds out itself if
    their cursors proved right. Apply the open notices of cursors that moved."""
    scheduler.policy.settled_sources = settled_sources(store, scheduler.names)
    if scheduler.policy.settled_sources:
        moved = [notice.item_id for notice in store.notices.open(0) if notice.origin == CURSOR]
        scheduler.notice(moved, now_s, CURSOR)


def restore_staleness(store: Store, settings: Settings, item_rows: ItemRows) -> ObservedStaleness | None:
    """Return the staleness that sources last reported of these rows; None if no source reported any."""
    kept = read_staleness_reports(store, [table.settings.name for table in settings.sources])
    ids = {source: store.items.ids(list(reports), source) for source, reports in kept.items()}
    return observed_staleness(kept, ids, item_rows, settings)


def _restore_sampling(store: Store, policy: RowPolicy, given: MoneyInput) -> None:
    """Let SAA continue with the items of its sources, from their stored observations."""
    policy.sampling.follow_settings(given.settings, given.names)
    item_rows, guesses = policy.item_rows, policy.sampling.guesses
    codes = [code for code, name in given.names.items() if name in guesses]
    rows = np.flatnonzero(np.isin(item_rows.source, codes) & ~np.isnan(item_rows.polled_s))
    if rows.size:
        for seen in store.observations.read(item_rows.ids[rows].tolist()):
            policy.sampling.restore(rows, seen)


def _ranking_budget(store: Store, item_rows: ItemRows, given: MoneyInput, items: int, now_s: float) -> float:
    """Return the polls per second for which the ranking is built: as many as were measured or, if copies have
    income, the most that could pay."""
    budget = given.settings.budget
    if not has_income(given.settings):
        return measured_requests_per_s(store, budget.requests, now_s)
    terms = money_terms(item_rows, None, given)
    return most_useful_polls_per_s(item_rows, terms, budget) * max(items, 1) / max(item_rows.size, 1)


def measured_requests_per_s(store: Store, requests_per_s: float, now_s: float) -> float:
    """Return the mean requests per second of the last week. It is lower than the budget ``requests_per_s``
    after back-offs and stops, and if sources may be polled only at some hours. Return the budget if the mean
    is higher, or if the first run began less than an hour ago."""
    kept = store.state.get(FIRST_RUN)
    span_s = min(now_s - float(kept), _WEEK_S) if kept else 0.0
    if span_s < _HOUR_S:
        return requests_per_s
    spent = store.ledger.total(now_s - span_s, math.inf).requests
    return min(max(spent / span_s, requests_per_s * _LEAST_PACE), requests_per_s)


def read_names(store: Store, last_id: float = math.inf) -> list[str]:
    """Return the keys of all items by ascending id, without URL schemes, as names to find families by; only
    those of the items up to the id ``last_id``."""
    items = takewhile(lambda item: item.id <= last_id, read_items(store, ItemQuery()))
    return [item.key.partition("://")[2] or item.key for item in items]


def read_items(store: Store, query: ItemQuery) -> Iterator[Item]:
    """Yield the items that match ``query``, read page by page."""
    cursor: str | None = None
    while True:
        page = store.items.page(query, _PAGE, cursor)
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def read_sample(store: Store, items: int) -> list[PolicyColumns]:
    """Return the columns of all items or, if there are more than ``SAMPLE``, of ``BLOCKS`` blocks of items at
    even distances in the order of ids. ``items`` is the number of items in the store."""
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
    """Return the shadow price at which the polls of all items cost the budget; 0 if there is nothing to poll.
    It is the price μ with Σ c/τ(μ) = budget, where c is the cost of a poll of an item and τ(μ) the time after
    which its poll value reaches μ. If copies earn money it is the break-even value, and with the policy
    ``uniform`` the polling interval in seconds (see ``RowPolicy.shadow_price``)."""
    item_rows, adaptive = policy.item_rows, policy.ranking.adaptive
    rows = np.flatnonzero(item_rows.is_active & (item_rows.weight > 0) & ~policy.is_observed())
    if rows.size == 0 or policy.money.break_even_value > 0:
        return policy.money.break_even_value
    total = float(item_rows.ranked_cost(rows).sum())
    if policy.name == "uniform":
        return total / budget_per_s
    rows = rows[:: -(-rows.size // PLANNED)]
    cost = item_rows.ranked_cost(rows)
    share = budget_per_s * float(cost.sum()) / total
    shortest_s, longest_s = item_rows.min_interval_s[rows], item_rows.max_interval_s[rows]
    low, high = (adaptive.review_value * factor for factor in (1e-9, 1e9))
    while high / low > 1.0 + 1e-6:
        middle = math.sqrt(low * high)
        interval_s = np.clip(adaptive.time_to_reach(rows, middle), shortest_s, longest_s)
        spent = float(np.sum(cost / np.maximum(interval_s, 1e-9)))
        low, high = (middle, high) if spent > share else (low, middle)
    return math.sqrt(low * high)
