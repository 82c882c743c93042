"""A snapshot of some items, from which all parts of one answer about them are computed.

While an answer is computed, an engine in another process may continue to poll. If two parts of a page read
the store at different times, they could show different plans for the same item. Therefore the time, the
settings, the policy and the polls are read once, into an ``ItemSnapshot``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from afresh.engine.reporting.own_rates import (
    NO_POLLS,
    OwnRate,
    learn_together,
    own_rates,
    read_polls,
    read_sampled_polls,
)
from afresh.engine.reporting.watched_items import WatchedItem, items_compared_with, watched_items
from afresh.engine.scheduler.restore import follow_cursors, restore_scheduler
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.items import Item
from afresh.values.stored import ObservationColumns, PolicyColumns

_LOADED_WHOLE = 5000  # 5,000 items are restored in less than 0.1 s
_POLLS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class PastPoll:
    """One past poll: whether it found a change in the ``elapsed_s`` seconds since the previous poll."""

    time_s: float
    elapsed_s: float
    changed: bool
    audit: bool


@dataclass(frozen=True, slots=True)
class ItemSnapshot:
    """What was known of ``items`` at ``time_s``, with the ``settings`` of the running engine. ``scheduler``
    contains these items and the items that they are compared with. ``rates`` and ``polls`` are by item id;
    ``seen`` is by source and key, for the items whose staleness is observed without polls."""

    time_s: float
    settings: Settings
    items: tuple[Item, ...]
    scheduler: Scheduler
    rates: Mapping[int, OwnRate]
    polls: Mapping[int, ObservationColumns]
    seen: Mapping[tuple[str, str], WatchedItem]

    def polls_of(self, item: Item) -> ObservationColumns:
        return self.polls.get(item.id, NO_POLLS)


@dataclass(frozen=True, slots=True)
class ItemEstimate:
    """The estimates for one item. Rates are per second, with their 90 % confidence interval; ``interval_s``
    is the polling interval. ``fresh`` is the probability that the copy is still correct. ``plan`` is one
    word: ``kept`` (polled at this budget), ``dropped`` (other items gain more at this budget), ``futile`` (no
    poll of the item ever pays for itself), ``new`` (not polled yet), ``unweighted``, or the item's status if
    it is not active. For an item whose staleness is observed without polls it is the observed state:
    ``fresh``, ``stale``, ``left alone`` or ``unknown``."""

    rate_per_s: float
    low_per_s: float
    high_per_s: float
    interval_s: float
    fresh: float
    poll_value: float
    plan: str


def take_snapshot(store: Store, settings: Settings, items: Sequence[Item], now_s: float) -> ItemSnapshot:
    """Read everything that answers about ``items`` need, once, and return it as a snapshot."""
    scheduler = restore_scheduler(store, settings, _columns_for(store, settings, items), now_s)
    follow_cursors(store, scheduler, now_s)
    wanted = [item.id for item in items]
    polls = read_polls(store, wanted)
    together = learn_together(read_sampled_polls(store))
    rates = own_rates(polls, scheduler, wanted, together)
    seen = {(one.source, one.item): one for one in watched_items(store, settings, scheduler, now_s)}
    for item in items:
        observed = seen.get((item.source, item.key))
        if observed is not None and observed.rate_per_s >= 0:
            rates[item.id] = OwnRate(observed.rate_per_s, observed.low_per_s, observed.high_per_s)
    return ItemSnapshot(now_s, settings, tuple(items), scheduler, rates, polls, seen)


def _columns_for(store: Store, settings: Settings, items: Sequence[Item]) -> Iterable[PolicyColumns]:
    """Return the columns of ``items`` and of the items that influence their poll values. A poll value depends
    a little on all items, for example on the mean polling interval. If there are few items, all are loaded,
    so that an item has the same values on every page."""
    if sum(count.items for count in store.items.counts()) <= _LOADED_WHOLE:
        return store.plan.columns()
    return [store.plan.columns_of(items_compared_with(store, settings, items))]


def estimate_items(snapshot: ItemSnapshot) -> list[ItemEstimate]:
    policy, now_s = snapshot.scheduler.policy, snapshot.time_s
    fresh, poll_value = snapshot.scheduler.forecast.fresh(now_s), policy.poll_values(now_s)
    every = np.arange(policy.item_rows.size)
    intervals_s, futile = policy.intervals_s(every), policy.is_futile(every)
    estimates = []
    for item in snapshot.items:
        row = policy.item_rows.row(item.id)
        if row is None:  # The item was removed after the page of items was read.
            estimates.append(ItemEstimate(*(math.nan,) * 6, plan="removed"))
            continue
        interval_s, seen = float(intervals_s[row]), snapshot.seen.get((item.source, item.key))
        plan = _plan_word(item, float(policy.item_rows.weight[row]), interval_s)
        plan = "futile" if futile[row] and item.polled_s is not None else plan
        if seen is not None:  # observed staleness replaces estimates from polls
            plan, interval_s = seen.state, math.inf if seen.state == "left alone" else interval_s
        if is_chosen_by_source(snapshot.settings, item):
            plan = "kept" if plan == "dropped" else plan
            mean_s = mean_interval_s(last_polls(snapshot.polls_of(item)))
            interval_s = mean_s if math.isfinite(mean_s) else math.nan
        rates = snapshot.rates[item.id].ends
        numbers = (*rates, interval_s, float(fresh[row]), float(poll_value[row]))
        estimates.append(ItemEstimate(*numbers, plan=plan))
    return estimates


def _plan_word(item: Item, weight: float, interval_s: float) -> str:
    """Return the plan of an item at this budget as one word; an item without a next poll is dropped.
    ``weight`` contains what item views add."""
    if item.status != "active":
        return item.status
    if item.polled_s is None:
        return "new"
    if weight == 0:
        return "unweighted"
    return "kept" if math.isfinite(interval_s) else "dropped"


def is_chosen_by_source(settings: Settings, item: Item) -> bool:
    """Return whether the item's source itself chooses which records one request refreshes."""
    table = settings.source(item.source)
    return table is not None and table.settings.kind == "search"


def last_polls(polls: ObservationColumns, count: int = _POLLS_SHOWN) -> tuple[PastPoll, ...]:
    columns = (polls.time_s, polls.elapsed_s, polls.changed, polls.audit)
    return tuple(PastPoll(*row) for row in zip(*(each[-count:].tolist() for each in columns), strict=True))


def mean_interval_s(polls: tuple[PastPoll, ...]) -> float:
    gaps_s = [poll.elapsed_s for poll in polls if poll.elapsed_s > 0]
    return sum(gaps_s) / len(gaps_s) if gaps_s else math.inf
