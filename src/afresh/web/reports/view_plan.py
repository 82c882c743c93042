"""Computes the Plan page of views: what budgets of refreshing seconds would give, by the rates seen now."""

from __future__ import annotations

import math

import numpy as np

from afresh.allocation.lag_targets import LagJobs, check_lags
from afresh.allocation.watched import allocate_watched_age
from afresh.engine.reporting.status import Status
from afresh.engine.reporting.watched_items import WatchedItem
from afresh.values.arrays import Float64s
from afresh.web.schemas import ViewBudgetOut, ViewPlanOut

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_HOUR_S = 3600.0


def plan_views(status: Status) -> ViewPlanOut | None:
    """Return what a quarter of today's budget of seconds up to four times as much would give; None if there
    are no views, if seconds are not limited, or if nothing is known of the views yet."""
    share = status.limits.seconds
    views = [view for view in status.views if view.rate_per_s > 0 and view.cost_s > 0]
    if not views or math.isinf(share):
        return None
    points = [_view_budget(views, min(factor * share, 1.0)) for factor in _FACTORS]
    is_all = len(status.views) >= status.by_status.get("active", 0)
    return ViewPlanOut(
        views=len(status.views),
        planned=len(views),
        is_all=is_all,
        used_s=status.spent_last_hour.seconds,
        today=points[_FACTORS.index(1.0)],
        budgets=points,
    )


def _view_budget(views: list[WatchedItem], share: float) -> ViewBudgetOut:
    rate, cost_s = _column([view.rate_per_s for view in views]), _column([view.cost_s for view in views])
    delay_s = _column([view.delay_s for view in views])
    # A change is seen after half of the longest time on average.
    plan = allocate_watched_age(rate, share, costs=cost_s, delays=delay_s / 2)
    target_s = np.nan_to_num(_column([view.target_lag_s for view in views]), nan=np.inf)
    jobs = LagJobs(target_s, cost_s, rate, delay_s, np.ones(rate.size))
    targets = np.isfinite(target_s)
    kept = check_lags(jobs, share).fits
    return ViewBudgetOut(
        seconds_per_h=_HOUR_S * share,
        spent_s=_HOUR_S * plan.spend,
        freshness=float(plan.freshness.mean()),
        age_s=float(plan.age.mean()),
        targets=int(np.count_nonzero(targets)),
        targets_kept=int(np.count_nonzero(targets & kept)),
    )


def _column(values: list[float]) -> Float64s:
    return np.array(values, dtype=np.float64)
