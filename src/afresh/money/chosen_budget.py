"""Choose the budget that earns the most if polls cost money (Razniewski 2016, §5, §8).

With the benefit B per time of a correct copy and the cost O per time of a wrong one, each item has its own
best polling interval, and the best budget is what the polls at these intervals cost. The last unit of money
then earns exactly one unit (it is the plan of ``allocate`` with weights B+O whose multiplier is 1). If the
money is limited to less, its last unit earns more, and ``price`` says how much more. A limit of requests acts
like an additional price per request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from afresh.model.roots import solve_decreasing
from afresh.money.best_interval import solve_items
from afresh.money.excess_income import frequency_of, income_at, spend_at
from afresh.money.limited import with_money
from afresh.money.priced_items import DecayLike, IncomeOptions, build_items
from afresh.values.arrays import ArrayLike, Bools, Float64s
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class ChosenBudget:
    """The plan with the highest net income, and the money and the requests that it uses per time.

    ``futile`` items are not polled at any budget, ``dropped`` items are not polled because of the limit.
    ``price`` is the net income that one more unit of money would earn; it is 0 below the limit."""

    interval: Float64s
    net_income: Float64s
    futile: Bools
    dropped: Bools
    money: float
    requests: float
    price: float


def choose_budget(
    rate: ArrayLike,
    benefit: ArrayLike,
    cost: ArrayLike,
    *,
    requests: ArrayLike = 1.0,
    stale_cost: ArrayLike = 0.0,
    update_cost: ArrayLike = 0.0,
    decay: DecayLike = "exponential",
    limit: float | None = None,
    most_requests: float = np.inf,
) -> ChosenBudget:
    """Return the plan with the highest net income that keeps ``limit`` money and ``most_requests`` per time.

    ``benefit`` is earned per time while a copy is correct, ``stale_cost`` lost per time while it is wrong.
    A poll costs the money ``cost`` and takes ``requests`` requests; ``update_cost`` is paid for each change
    that it finds. ``decay`` is that of all items, or a sequence with that of each.
    Razniewski 2016, Example 4: addresses with a benefit of 1 and a cost of 1 per poll. The fourth address
    is added here; it changes too fast for refreshes to pay.

    >>> chosen = choose_budget([0.457, 0.163, 0.098, 2.0], 1.0, 1.0)
    >>> chosen.interval.round(2), round(chosen.requests, 3), chosen.futile.tolist()
    (array([3.38, 4.42, 5.36,  inf]), 0.709, [False, False, False, True])
    """
    items = build_items(rate, benefit, cost, stale_cost=stale_cost, update_cost=update_cost, decay=decay)
    items = items.with_terms(items.terms)
    if ((items.terms.check == 0) & (items.terms.gain > 0) & (items.rate > 0)).any():
        raise InputError("a poll of some items costs nothing, so that no budget is best: give it a cost")
    each = np.broadcast_to(np.asarray(requests, dtype=np.float64).ravel(), items.rate.shape)

    def within(extra: float) -> tuple[Float64s, float]:
        """Return a tuple (best intervals, price) if each request seems to cost ``extra`` more."""
        dearer = items.terms.check + extra * each
        if limit is None:
            return _intervals(solve_items(items.with_terms(replace(items.terms, check=dearer))).interval), 0.0
        # What only seems to be paid, for the limit of requests, does not count against the money.
        money = limit + (extra * most_requests if extra else 0.0)
        own: IncomeOptions = {"stale_cost": stale_cost, "update_cost": update_cost, "decay": decay}
        plan = with_money(rate, benefit, dearer, money, **own)
        return _intervals(plan.interval), plan.price

    def count_requests(interval: Float64s) -> float:
        return float(np.sum(each * frequency_of(interval)))

    interval, price = within(_least_price(lambda extra: count_requests(within(extra)[0]), most_requests))
    futile = solve_items(items).futile.ravel()
    return ChosenBudget(
        interval=interval,
        net_income=income_at(items, interval),
        futile=futile,
        dropped=np.isinf(interval) & ~futile,
        money=float(spend_at(items, interval).sum()),
        requests=count_requests(interval),
        price=price,
    )


def _intervals(found: ArrayLike) -> Float64s:
    return np.asarray(found, dtype=np.float64).ravel()


def _least_price(requests: Callable[[float], float], most: float) -> float:
    """Return the least additional price per request at which no more than ``most`` requests are made."""
    if requests(0.0) <= most:
        return 0.0
    if not most > 0:
        raise InputError(f"most_requests is {most}: must be above 0")
    found = solve_decreasing(lambda price: np.array([requests(float(price[0]))]), most, 1.0, rtol=1e-10)
    return float(found.high[0])
