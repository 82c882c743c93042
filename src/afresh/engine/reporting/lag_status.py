"""Whether the target lags of observed items fit the budget, which do not, and what budget would do."""

from __future__ import annotations

import math
from dataclasses import dataclass

from afresh.engine.scheduler.observed_staleness import read_staleness_reports
from afresh.engine.scheduler.restore import restore_scheduler
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class UnfitTarget:
    """A target lag that does not fit. ``missing_s`` are the seconds of refreshing per hour that the budget
    lacks for it, infinite if no budget suffices. It is the larger one of ``demand_missing_s``, which the
    refreshes for all targets together lack, and ``wait_missing_s``, which the longest other refresh lacks to
    be paid off in time. ``least_s`` are the seconds of refreshing it and of seeing a change."""

    item: str
    target_lag_s: float
    missing_s: float
    demand_missing_s: float = 0.0
    wait_missing_s: float = 0.0
    least_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LagStatus:
    """The target lags of all observed items together, in seconds of refreshing per hour: what the budget
    allows, what all targets need on average, and the least budget for all targets that a budget can keep.
    ``unfit`` are the targets that do not fit."""

    targets: int
    allowed_s: float
    demand_s: float
    needed_s: float
    unfit: tuple[UnfitTarget, ...] = ()


def read_lag_status(store: Store, settings: Settings, now_s: float) -> LagStatus | None:
    """Return the status of the target lags by what the store knows of costs and rates; None without any."""
    kept = read_staleness_reports(store, [table.settings.name for table in settings.sources])
    by_source = [store.items.ids(list(reports), source) for source, reports in kept.items()]
    ids = sorted({item_id for found in by_source for item_id in found.values()})
    if not ids:
        return None
    return lag_status(store, restore_scheduler(store, settings, [store.plan.columns_of(ids)], now_s))


def lag_status(store: Store, scheduler: Scheduler) -> LagStatus | None:
    """Return the status of the target lags; None if no item has one."""
    policy: RowPolicy = scheduler.policy
    lags, staleness = policy.money.lags, policy.staleness
    if lags is None or staleness is None or not lags.has_targets:
        return None
    found = lags.feasibility
    ids = scheduler.item_rows.ids[staleness.rows].tolist()
    keys = {item.id: item.key for item in store.items.by_id(ids) if item.status not in ("gone", "paused")}
    wanted = [at for at, item_id in enumerate(ids) if item_id in keys and math.isfinite(found.target_s[at])]
    unfit = [
        UnfitTarget(
            keys[ids[at]],
            float(found.target_s[at]),
            lags.missing_s_per_hour(at),
            *lags.missing_parts_s_per_hour(at),
            float(found.least_s[at]),
        )
        for at in wanted
        if not found.fits[at]
    ]
    return LagStatus(
        len(wanted),
        _HOUR_S * lags.share,
        _HOUR_S * found.demand,
        _HOUR_S * found.needed,
        tuple(sorted(unfit, key=lambda each: each.item)),
    )
