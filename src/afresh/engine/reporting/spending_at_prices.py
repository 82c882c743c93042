"""What a running engine would spend at other shadow prices, by its own beliefs: its spend curve.

An item is polled whenever its poll value reaches the shadow price, within its intervals, and all items of a
host together no faster than the host allows. New items come first at any price, and so do requests that are
no polls; both are the fixed part. The rare reviews of dropped items are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from afresh.allocation.spend_curve import SpendCurve, price_grid
from afresh.engine.scheduler.restore import plan_shadow_price
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.values.arrays import Float64s

SAMPLED = 2048
"""The rows from which a curve is computed, at most: this takes some tens of milliseconds."""

NEW_WITHIN_S = 60.0
"""All new items together are to be polled within so many seconds, if hosts and the budget allow it."""

_LEAST_INTERVAL_S = 1e-3


def spend_curve(
    scheduler: Scheduler,
    host_limits: Mapping[str, float],
    *,
    price: float = 0.0,
    overhead_per_s: float = 0.0,
) -> SpendCurve:
    """Return the spend curve around ``price``, by default around the engine's own shadow price.
    ``host_limits`` has the most requests per second that groups allow, ``overhead_per_s`` the requests that
    are no polls."""
    item_rows, policy = scheduler.item_rows, scheduler.policy
    is_ranked = item_rows.is_active & (item_rows.weight > 0)
    is_new = is_ranked & np.isnan(item_rows.polled_s)
    rows = np.flatnonzero(is_ranked & ~is_new)
    some = rows[:: max(-(-rows.size // SAMPLED), 1)]
    scale = rows.size / max(some.size, 1)
    own = price or policy.shadow_price or plan_shadow_price(policy, policy.ranking.budget_per_s)
    prices = price_grid(own if own > 0 else 1.0)
    groups, members = np.unique(item_rows.group[some], return_inverse=True)
    most = _limits(scheduler, host_limits, groups)
    cost, spend = item_rows.ranked_cost(some), np.zeros(prices.size)
    for place, each in enumerate(prices.tolist()):
        used = np.bincount(members, cost / _intervals_s(scheduler, some, each), groups.size) * scale
        spend[place] = np.minimum(used, most).sum()
    new_groups, new_items = np.unique(item_rows.group[is_new], return_counts=True)
    fixed = float(np.minimum(new_items / NEW_WITHIN_S, _limits(scheduler, host_limits, new_groups)).sum())
    return SpendCurve(prices, spend, _gains(prices, spend), fixed + overhead_per_s)


def _intervals_s(scheduler: Scheduler, rows: npt.NDArray[np.int64], price: float) -> Float64s:
    """Return the polling intervals at ``price``, which with the policy ``uniform`` is the interval."""
    policy, item_rows = scheduler.policy, scheduler.item_rows
    if policy.name == "uniform":
        interval_s = np.full(rows.size, price)
    else:
        interval_s = policy.ranking.adaptive.time_to_reach(rows, price)
    least_s = np.maximum(item_rows.min_interval_s[rows], _LEAST_INTERVAL_S)
    return np.asarray(np.clip(interval_s, least_s, np.maximum(item_rows.max_interval_s[rows], least_s)))


def _limits(
    scheduler: Scheduler, host_limits: Mapping[str, float], groups: npt.NDArray[np.int64]
) -> Float64s:
    """Return the most requests per second that each of these groups allows."""
    names = [scheduler.names.get(group, "") for group in groups.tolist()]
    return np.array([host_limits.get(name, np.inf) for name in names], dtype=np.float64)


def _gains(prices: Float64s, spend: Float64s) -> Float64s:
    """Return what is gained per second at each price, up to a constant: one more unit that is spent at a
    price gains as much as the price, so the gain is ∫ μ·(−dC) from the highest price down.

    >>> _gains(np.array([1.0, 2.0]), np.array([5.0, 3.0]))
    array([3., 0.])
    """
    steps = 0.5 * (prices[1:] + prices[:-1]) * (spend[:-1] - spend[1:])
    return np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])
