"""What the engine believes of some items: rate with its interval, frequency, freshness and worth now."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from afresh.engine.reporting.item_snapshot import ItemSnapshot
from afresh.engine.reporting.watched_items import WatchedItem
from afresh.engine.reporting.why import is_chosen_by_source, last_polls, mean_interval_s
from afresh.values.items import Item


@dataclass(frozen=True, slots=True)
class Belief:
    """Of one item; rates per second. ``plan``: kept, dropped, futile, new, or the status if not active.

    Dropped: others are worth more at this budget. Futile: where copies earn, no poll of it ever pays.

    Of an item that is seen without polls it is what is seen: fresh, stale, left alone or unknown.
    """

    rate_per_s: float
    low_per_s: float
    high_per_s: float
    interval_s: float
    fresh: float
    worth: float
    plan: str


def believed(snapshot: ItemSnapshot) -> list[Belief]:
    """What is believed of each item of a snapshot, in their order."""
    policy, now_s = snapshot.scheduler.policy, snapshot.time_s
    fresh, worth = snapshot.scheduler.forecast.fresh(now_s), policy.poll_values(now_s)
    every = np.arange(policy.item_rows.size)
    intervals_s, futile = policy.intervals_s(every), policy.is_futile(every)
    nothing = Belief(*(math.nan,) * 6, plan="removed")
    found = []
    for item in snapshot.items:
        row = policy.item_rows.row(item.id)
        if row is None:  # removed since the page was read
            found.append(nothing)
            continue
        interval_s = float(intervals_s[row])
        numbers = (*snapshot.rates[item.id], interval_s, float(fresh[row]), float(worth[row]))
        plan = "futile" if futile[row] and item.polled_s is not None else plan_word(item, interval_s)
        belief = _as_seen(Belief(*numbers, plan=plan), snapshot.seen.get(item.key))
        found.append(
            _as_chosen(snapshot, item, belief) if is_chosen_by_source(snapshot.settings, item) else belief
        )
    return found


def _as_seen(belief: Belief, seen: WatchedItem | None) -> Belief:
    """The same with what is seen in place of what was guessed from polls."""
    if seen is None:
        return belief
    if seen.rate_per_s >= 0:
        belief = replace(
            belief, rate_per_s=seen.rate_per_s, low_per_s=seen.low_per_s, high_per_s=seen.high_per_s
        )
    left = seen.state == "left alone"
    return replace(belief, plan=seen.state, interval_s=math.inf if left else belief.interval_s)


def _as_chosen(snapshot: ItemSnapshot, item: Item, belief: Belief) -> Belief:
    """The same where the source asks for many at once: how often its polls came so far is all there is."""
    interval_s = mean_interval_s(last_polls(snapshot.polls_of(item)))
    plan = "kept" if belief.plan == "dropped" else belief.plan
    return replace(belief, plan=plan, interval_s=interval_s if math.isfinite(interval_s) else math.nan)


def plan_word(item: Item, interval_s: float) -> str:
    """What becomes of an item at this budget, in a word; what would never be polled again is dropped."""
    if item.status != "active":
        return item.status
    if item.polled_s is None:
        return "new"
    if item.weight == 0:
        return "unweighted"
    return "kept" if math.isfinite(interval_s) else "dropped"
