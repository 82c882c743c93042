"""Items whose changes are observed at once, without polls: which of them to refresh whenever they change.

No poll is needed to see a change, so a refresh always meets a stale copy and buys 1/λ of fresh time on
average. An item refreshed f ≤ λ times per time is fresh for f/λ of it, so the plan is a knapsack: maximise Σ
w·f/λ with Σ c·f = B. It is filled in the order of w/(cλ): every change is met by a refresh down to a price μ,
some at it, none below. It is the limit of change notices that are complete and correct, and an upper bound
for any plan that has to poll first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s, nonnegative
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class WatchedPlan:
    """How often to refresh each item, the share of time that it is fresh then, and the price of the budget.

    ``worth`` is w/(cλ), what a refresh of a stale copy buys for each unit of cost; infinite where nothing
    changes. Refresh at once what is worth more than ``price``, which is 0 where the budget suffices for
    every change.
    """

    frequency: Float64s
    freshness: Float64s
    worth: Float64s
    price: float
    spend: float


def allocate_watched(
    rates: ArrayLike, budget: float, *, weights: ArrayLike = 1.0, costs: ArrayLike = 1.0
) -> WatchedPlan:
    """The best frequencies for items whose changes are seen.

    >>> plan = allocate_watched([1.0, 2.0, 8.0], budget=5.0)
    >>> plan.frequency.tolist(), plan.freshness.tolist(), plan.price
    ([1.0, 2.0, 2.0], [1.0, 1.0, 0.25], 0.125)
    """
    if not 0 <= budget < np.inf:
        raise InputError(f"budget is {budget}: must be 0 or more, and finite")
    rate = np.asarray(nonnegative("rates", rates), dtype=np.float64).ravel()
    weight, cost = (
        np.broadcast_to(np.asarray(nonnegative(name, given), dtype=np.float64), rate.shape)
        for name, given in (("weights", weights), ("costs", costs))
    )
    if not np.all(cost > 0):
        raise InputError("a cost is 0: must be above 0")
    changing = rate > 0
    needed = cost * rate  # per time, to meet every change
    with np.errstate(divide="ignore", over="ignore"):
        worth = np.divide(weight, needed, out=np.full_like(rate, np.inf), where=needed > 0)
    order = np.argsort(-worth, kind="stable")
    before = np.cumsum(needed[order]) - needed[order]
    left = np.clip(budget - before, 0.0, needed[order])
    share = np.empty_like(rate)
    share[order] = np.divide(left, needed[order], out=np.ones_like(left), where=needed[order] > 0)
    share[weight == 0] = 0.0
    short = changing & (share < 1) & (weight > 0)
    return WatchedPlan(
        frequency=share * rate,
        freshness=np.where(changing, share, 1.0),
        worth=worth,
        price=float(worth[short].max(initial=0.0)),
        spend=float(np.sum(share * needed)),
    )


def refresh_gains(
    stale: ArrayLike, rates: ArrayLike, budget: float, *, weights: ArrayLike = 1.0, costs: ArrayLike = 1.0
) -> Float64s:
    """What refreshing each stale item now would gain, where a refresh of cost c is paid off for c/B.

    No budget is saved up, so while a dear refresh is paid off the others cannot be refreshed. An item buys
    w/λ of fresh time, and each item j of a higher w/(cλ) loses w_j·(s − (1−e^{−λ_j·s})/λ_j), the time that it
    is stale on average in the s = c/B that follow. Take next the item of the highest gain per cost, if that
    is above 0: a view that is dear and changes fast is then left alone, though there is budget left. −∞ for
    items that are fresh. Every item is compared with every other: for thousands, not millions.

    >>> refresh_gains([True, True, False], [0.01, 0.7, 2.0], 0.05, costs=[0.02, 0.45, 0.01]).round(1)
    array([100. ,  -7.5,  -inf])
    """
    rate = np.asarray(nonnegative("rates", rates), dtype=np.float64).ravel()
    worth = allocate_watched(rate, budget, weights=weights, costs=costs).worth
    if not budget > 0:
        raise InputError("budget is 0: nothing can be refreshed now")
    weight = np.broadcast_to(np.asarray(nonnegative("weights", weights), dtype=np.float64), rate.shape)
    seconds = np.broadcast_to(np.asarray(nonnegative("costs", costs), dtype=np.float64), rate.shape)
    with np.errstate(divide="ignore", over="ignore"):
        paid_off = (seconds / budget)[:, None]
        bought = np.divide(weight, rate, out=np.full_like(rate, np.inf), where=rate > 0)
    r = rate[None, :] * paid_off
    fresh = np.divide(-np.expm1(-r), r, out=np.ones_like(r), where=r > 0)
    lost = np.where(worth[None, :] > worth[:, None], weight[None, :] * paid_off * (1 - fresh), 0.0)
    return np.where(np.asarray(stale, dtype=np.bool_), bought - lost.sum(axis=1), -np.inf)
