"""Items whose staleness is observed without polls: state, rate, cost and next refresh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from afresh.engine.scheduler.observed_staleness import read_staleness_reports
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.items import Item
from afresh.values.units import format_duration

WatchedState: TypeAlias = Literal["fresh", "stale", "left alone", "unknown"]


@dataclass(frozen=True, slots=True)
class WatchedItem:
    """One item whose staleness is observed. Rates are per second with their 90 % confidence interval, times
    in seconds. The state ``left alone`` means that the item is stale, but its refresh would delay others by
    more than it gains, or would not pay. ``unknown`` means that something it is made from cannot be observed.
    ``stale_for_s`` is 0 for a fresh item, ``cost_s`` the mean duration of a refresh, ``next_s`` the next
    refresh: now for a stale item, at the expected change for a fresh one. ``dispersion`` is the variance
    divided by the mean of the database rows written between two reports; far above 1, writes are no Poisson
    process. ``target_lag_s`` is its target lag with those of the items made from it, ``missing_s`` what the
    budget lacks for that target, in seconds of refreshing per hour (0 if it fits, infinite if no budget
    suffices). ``weight_needed`` is the weight with which a refresh of an item that is left alone would gain.
    ``delay_s`` is the longest time until a change is seen; the item is refreshed at least every
    ``max_interval_s``. ``ahead`` is the number of observed items that are refreshed before it. Unknown
    numbers are NaN."""

    item: str
    source: str
    state: WatchedState
    stale_for_s: float
    rate_per_s: float
    low_per_s: float
    high_per_s: float
    cost_s: float
    refreshed_s: float
    next_s: float
    problem: str
    dispersion: float = math.nan
    objective: str = "freshness"
    target_lag_s: float = math.nan
    missing_s: float = 0.0
    weight_needed: float = math.nan
    delay_s: float = 0.0
    max_interval_s: float = math.inf
    ahead: int = 0


def items_compared_with(store: Store, settings: Settings, items: Sequence[Item]) -> list[int]:
    """Return the ids of ``items`` and, if one of them is observed, of all observed items."""
    ids = {item.id for item in items}
    kept = read_staleness_reports(store, [table.settings.name for table in settings.sources])
    if any(item.key in kept.get(item.source, {}) for item in items):
        for source, reports in kept.items():
            ids.update(store.items.ids(list(reports), source).values())
    return sorted(ids)


def watched_items(
    store: Store, settings: Settings, scheduler: Scheduler, now_s: float
) -> tuple[WatchedItem, ...]:
    policy, item_rows = scheduler.policy, scheduler.item_rows
    staleness = policy.staleness
    if staleness is None:
        return ()
    items = {item.id: item for item in store.items.by_id(item_rows.ids[staleness.rows].tolist())}
    poll_value = policy.poll_values(now_s)
    shortage = staleness.gain_shortage(policy.refresh_terms(staleness))
    found = []
    for at, row in enumerate(staleness.rows.tolist()):
        item = items.get(int(item_rows.ids[row]))
        if item is None or item.status in ("gone", "paused"):
            continue
        held_s = float(item_rows.not_before_s[row])
        # A refresh that waits for the target lag of another item is not worthless.
        worthless = bool(poll_value[row] == -np.inf) and held_s <= now_s and policy.name != "uniform"
        worthless &= not staleness.by_age[at]
        state = _state(
            bool(staleness.known[at]), bool(staleness.stale[at]), worthless and item.polled_s is not None
        )
        rate = float(staleness.rate_per_s[at])
        found.append(
            WatchedItem(
                item=item.key,
                source=item.source,
                state=state,
                stale_for_s=max(now_s - float(staleness.stale_since_s[at]), 0.0),
                rate_per_s=float(staleness.rate_per_s[at]),
                low_per_s=float(staleness.low_per_s[at]),
                high_per_s=float(staleness.high_per_s[at]),
                cost_s=float(staleness.cost_s[at]),
                refreshed_s=math.nan if item.polled_s is None else item.polled_s,
                next_s=min(max(_next_s(state, rate, item.due_s, now_s), held_s), _overdue_s(item)),
                ahead=int(np.count_nonzero(poll_value[staleness.rows] > poll_value[row])),
                problem=item.problem if item.failures or item.status != "active" else "",
                dispersion=float(staleness.dispersion[at]),
                objective=settings.objective_of(item.source),
                **_lag_fields(policy, at),
                delay_s=float(staleness.delay_s[at]),
                max_interval_s=item.max_interval_s,
                weight_needed=item.weight * float(shortage[at]) if shortage[at] > 1 else math.nan,
            )
        )
    return tuple(sorted(found, key=lambda one: (one.item, one.source)))


def describe_given_up(view: WatchedItem) -> str:
    """Describe that a stale item is not refreshed, and what would bring it back."""
    words = "given up: refreshing it costs more than it gains"
    weight = "" if math.isnan(view.weight_needed) else f"a weight above {view.weight_needed:.3g}, "
    back = f'{weight}a larger budget, a target_lag or objective = "age" brings it back'
    if math.isinf(view.max_interval_s):
        return f"{words}; {back}"
    return f"{words}, but at least every {format_duration(view.max_interval_s)} (max_interval); {back}"


def _lag_fields(policy: RowPolicy, at: int) -> dict[str, float]:
    """Return the target lag of the observed item at position ``at``, and what the budget lacks for it."""
    lags = policy.money.lags
    if lags is None or math.isinf(lags.feasibility.target_s[at]):
        return {}
    found = lags.feasibility
    return {"target_lag_s": float(found.target_s[at]), "missing_s": lags.missing_s_per_hour(at)}


def _overdue_s(item: Item) -> float:
    """Return when an item is refreshed because of its ``max_interval_s``, even if it is fresh."""
    return math.inf if item.polled_s is None else item.polled_s + item.max_interval_s


def _state(known: bool, stale: bool, worthless: bool) -> WatchedState:
    if not known:
        return "unknown"
    if not stale:
        return "fresh"
    return "left alone" if worthless else "stale"


def _next_s(state: WatchedState, rate: float, due_s: float, now_s: float) -> float:
    if state == "stale":
        return now_s
    if state == "fresh":
        return now_s + 1.0 / rate if rate > 0 else math.inf
    return due_s if state == "unknown" else math.inf
