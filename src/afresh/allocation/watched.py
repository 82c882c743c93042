"""Plans for items whose changes are observed at once, without polls: which items to refresh after a change.

Because no poll is needed to see a change, a refresh always replaces a stale copy and gains 1/λ of fresh time
on average (λ is the rate of changes). An item refreshed f ≤ λ times per time is fresh for the share f/λ of
the time. So the plan is a knapsack problem: maximise Σ w·f/λ with Σ c·f = B, for weights w, costs c and the
budget B. Its solution is a price μ: items with w/(cλ) > μ are refreshed after every change, items with
w/(cλ) = μ after some changes, and all others never. No plan that has to poll first can be better. A plan with
change notices comes close to it if the notices are complete and correct.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s, nonnegative
from afresh.values.errors import InputError

_SLOWEST = 1e-12
_HALVINGS = 100
_FEW = 1e-2  # below so many changes expected between two readings, the series is more precise


@dataclass(frozen=True, slots=True)
class WatchedPlan:
    """A plan for items whose changes are observed without polls: how often to refresh each item.

    ``freshness`` is the share of time in which each item is fresh. ``worth`` is weight/(cost·rate), what a
    refresh of a stale copy gains per unit of cost. An item is refreshed after every change if its ``worth``
    is above ``price``, which is 0 if the budget suffices for all. ``spend`` is the cost of the plan per time.
    """

    frequency: Float64s
    freshness: Float64s
    worth: Float64s
    price: float
    spend: float


def allocate_watched(
    rates: ArrayLike, budget: float, *, weights: ArrayLike = 1.0, costs: ArrayLike = 1.0
) -> WatchedPlan:
    """Return the best plan for items whose changes are observed without polls; see this module's docstring.

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
    needed = cost * rate  # what refreshes after every change would cost, per time
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
    """Return what a refresh of each stale item gains now, if no other refresh can start until it is paid off.

    Budget is not saved up: a refresh of cost c blocks the budget B (cost units per time) for the time s =
    c/B. An item of weight w and rate λ gains w/λ of fresh time. In the time s that follows, each item j with
    a higher w/(cλ) loses w_j·(s − (1−e^{−λ_j·s})/λ_j), the expected time in which it is stale. The item with
    the highest gain per cost should be refreshed next, if its gain is above 0; so an expensive item that
    changes fast may never be. Fresh items gain −∞. All pairs of items are compared, which is too slow for
    millions.

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


@dataclass(frozen=True, slots=True)
class WatchedAgePlan:
    """A plan with the least mean age for items whose changes are observed without polls: ``frequency`` of
    refreshes, ``freshness`` and ``age`` of each item, and the ``spend`` per time."""

    frequency: Float64s
    freshness: Float64s
    age: Float64s
    spend: float


def allocate_watched_age(
    rates: ArrayLike, budget: float, *, costs: ArrayLike, delays: ArrayLike = 0.0
) -> WatchedAgePlan:
    """Return the plan with the least mean age for items whose changes are observed without polls.

    An item of rate λ that is refreshed when it has been stale for T is refreshed f = 1/(1/λ + T) times per
    time; it is fresh for the share f/λ of the time, and its mean age is f·T²/2. The least sum of ages with
    Σ c·f = B has a price μ with T/λ + T²/2 = μ·c for every item, that is f = 1/√(1/λ² + 2μc). A refresh of
    cost c keeps the budget busy for p = c/B. So a stale item also waits W = Σ f·p²/2 for the refresh that is
    under way, on average, and then for its own: freshness and age are those of T + W + c. A change is seen
    only after the delay d, so that T is never less than d.

    >>> plan = allocate_watched_age([0.1, 0.1], 0.05, costs=[0.2, 0.8])
    >>> plan.frequency.round(3).tolist(), round(plan.spend, 3)
    ([0.071, 0.045], 0.05)
    >>> plan.freshness.round(2).tolist(), plan.age.round(1).tolist()
    ([0.48, 0.34], [2.7, 6.4])
    """
    rate = np.maximum(np.asarray(nonnegative("rates", rates), dtype=np.float64).ravel(), _SLOWEST)
    cost = np.broadcast_to(np.asarray(nonnegative("costs", costs), dtype=np.float64), rate.shape)
    if not budget > 0:
        raise InputError("budget is 0: nothing can be refreshed")

    delay = np.broadcast_to(np.asarray(nonnegative("delays", delays), dtype=np.float64), rate.shape)

    def frequency(price: float) -> Float64s:
        return np.asarray(1.0 / np.maximum(np.sqrt(1.0 / rate**2 + 2.0 * price * cost), 1.0 / rate + delay))

    low, high = 0.0, 0.0
    if float(cost @ frequency(0.0)) > budget:
        high = 1.0
        while float(cost @ frequency(high)) > budget:
            high *= 4.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if float(cost @ frequency(middle)) > budget else (low, middle)
    often = frequency(high)
    busy = float(np.sum(often * (cost / budget) ** 2 / 2))
    stale = np.maximum(1.0 / often - 1.0 / rate, 0.0) + busy + cost
    share = 1.0 / (1.0 / rate + stale)
    return WatchedAgePlan(often, share / rate, share * stale**2 / 2, float(cost @ often))


def first_change(rates: ArrayLike, windows: ArrayLike) -> Float64s:
    """Return when the first change came, on average, of items that had at least one change in a window.

    Two readings show that an item of rate λ changed in the h seconds between them. The first of its changes
    came h·(1/x − 1/(eˣ − 1)) after the first reading, where x = λh: in the middle of the window if changes
    are rare, and 1/λ after its beginning if they are frequent.

    >>> first_change([0.0, 0.001, 1.0, 50.0], 5.0).round(3).tolist()
    [2.5, 2.498, 0.966, 0.02]
    """
    rate, window = np.broadcast_arrays(
        np.asarray(nonnegative("rates", rates), dtype=np.float64),
        np.asarray(nonnegative("windows", windows), dtype=np.float64),
    )
    changes = rate * window
    many = np.maximum(changes, _FEW)
    with np.errstate(over="ignore"):
        part = np.where(changes < _FEW, 0.5 - changes / 12.0, 1.0 / many - 1.0 / np.expm1(many))
    return np.asarray(window * part)
