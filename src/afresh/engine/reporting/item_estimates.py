"""Estimates for the items of a snapshot: change rate, polling interval, freshness and the value of a poll."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.engine.reporting.item_snapshot import ItemSnapshot
from afresh.engine.reporting.why import is_chosen_by_source, last_polls, mean_interval_s
from afresh.values.arrays import Float64s
from afresh.values.items import Item


@dataclass(frozen=True, slots=True)
class ItemEstimate:
    """The estimates for one item. Rates are per second, with their 90 % interval. ``fresh`` is the
    probability that the copy is still right; ``poll_value`` is what a poll gains now. ``plan`` is one word:
    ``kept`` (polled at this budget), ``dropped`` (other items gain more at this budget), ``futile`` (no poll
    of the item ever pays for itself), ``new`` (not polled yet), ``unweighted``, or the item's status if it is
    not active. For an item whose staleness is observed without polls it is the observed state: ``fresh``,
    ``stale``, ``left alone`` or ``unknown``."""

    rate_per_s: float
    low_per_s: float
    high_per_s: float
    interval_s: float
    fresh: float
    poll_value: float
    plan: str


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
        interval_s, seen = float(intervals_s[row]), snapshot.seen.get(item.key)
        plan = "futile" if futile[row] and item.polled_s is not None else _plan_word(item, interval_s)
        if seen is not None:  # what is observed replaces what is estimated from polls
            plan, interval_s = seen.state, math.inf if seen.state == "left alone" else interval_s
        if is_chosen_by_source(snapshot.settings, item):
            plan = "kept" if plan == "dropped" else plan
            mean_s = mean_interval_s(last_polls(snapshot.polls_of(item)))
            interval_s = mean_s if math.isfinite(mean_s) else math.nan
        numbers = (*snapshot.rates[item.id], interval_s, float(fresh[row]), float(poll_value[row]))
        estimates.append(ItemEstimate(*numbers, plan=plan))
    return estimates


def estimate_course(snapshot: ItemSnapshot, item_id: int, elapsed_s: Float64s) -> tuple[Float64s, Float64s]:
    """Return the probability that a copy is right and the value of a poll, by seconds since the last poll."""
    (row,) = snapshot.scheduler.item_rows.rows([item_id]).tolist()
    return snapshot.scheduler.forecast.course(row, elapsed_s)


def _plan_word(item: Item, interval_s: float) -> str:
    """Say in one word what becomes of an item at this budget; an item without a next poll is dropped."""
    if item.status != "active":
        return item.status
    if item.polled_s is None:
        return "new"
    if item.weight == 0:
        return "unweighted"
    return "kept" if math.isfinite(interval_s) else "dropped"
