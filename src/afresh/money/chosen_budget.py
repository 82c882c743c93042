"""The budget that earns the most, when requests, bytes and seconds have prices (Razniewski 2016, §5 and §8).

One poll of an item costs c = p_r·requests + p_b·bytes + p_s·seconds, and c_U more where it finds a change,
for the bytes and seconds that are only then spent. With the benefit B per time of a right copy and
the cost O per time of a wrong one each item has its own best interval, and together these are the budget:
nothing is left to choose. The last unit of money then earns just itself (the plan of ``allocate`` with
weights B+O, whose multiplier is 1). Within a limit below that it earns more, and ``price`` says how much. A
limit of requests acts as a price ν above their own, the one at which just so many are made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from afresh.model.curves import freshness_curve
from afresh.model.decays.parameters import multiply_by_rate
from afresh.model.roots import solve_decreasing
from afresh.money.best_interval import Incomes, solve_items
from afresh.money.excess_income import frequency_of, income_at, spend_at
from afresh.money.limited import with_money
from afresh.money.priced_items import IncomeOptions, build_items
from afresh.money.terms import RefreshVerdict, describe_verdict
from afresh.values.arrays import ArrayLike, Bools, Float64s, nonnegative
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What one poll of an item takes, and what it takes in addition where it finds a change."""

    requests: ArrayLike = 1.0
    bytes: ArrayLike = 0.0
    seconds: ArrayLike = 0.0
    update_bytes: ArrayLike = 0.0
    update_seconds: ArrayLike = 0.0


@dataclass(frozen=True, slots=True)
class Prices:
    """Money per request, byte and second; one for all items, or one for each (its source's)."""

    request: ArrayLike = 0.0
    byte: ArrayLike = 0.0
    second: ArrayLike = 0.0

    def of(self, use: ResourceUse) -> tuple[Float64s, Float64s]:
        """The cost of a poll, and the additional cost of a change that it finds.

        >>> Prices(request=0.5, byte=0.01).of(ResourceUse(bytes=[0, 100], update_bytes=200))
        (array([0.5, 1.5]), array([2., 2.]))
        """
        named = {f"price per {field.name}": getattr(self, field.name) for field in fields(self)}
        named |= {field.name: getattr(use, field.name) for field in fields(use)}
        columns = [np.asarray(nonnegative(name, given), dtype=np.float64) for name, given in named.items()]
        try:
            request, byte, second, requests, size, time, more, longer = np.broadcast_arrays(*columns)
        except ValueError:
            said = ", ".join(f"{name} {a.size}" for name, a in zip(named, columns, strict=True) if a.ndim)
            raise InputError(f"lengths differ: {said}") from None
        return request * requests + byte * size + second * time, byte * more + second * longer


@dataclass(frozen=True, slots=True)
class ChosenBudget:
    """The plan of the highest net income, and what it takes per time.

    ``futile`` items are worth no refresh at any budget, ``dropped`` ones none within the limit. ``price``
    is the net income that one more unit of money would earn, ``request_price`` one more request per time, 0
    where the limit does not bind. ``best`` is the plan without a limit, with the verdict on each item.
    """

    interval: Float64s
    frequency: Float64s
    net_income: Float64s
    futile: Bools
    dropped: Bools
    money: float
    requests: float
    bytes: float
    seconds: float
    price: float
    request_price: float
    best: Incomes

    def reason(self, item: int) -> str:
        """Why an item is refreshed or left alone, in words."""
        if self.dropped[item]:
            return "pays, but others pay more and the limit leaves nothing for it"
        verdict = RefreshVerdict(int(self.best.verdict.ravel()[item]))
        break_even = float(self.best.break_even.ravel()[item])
        return describe_verdict(verdict, break_even, np.inf)


def choose_budget(
    rate: ArrayLike,
    benefit: ArrayLike,
    prices: Prices,
    *,
    use: ResourceUse | None = None,
    stale_cost: ArrayLike = 0.0,
    limit: float | None = None,
    most_requests: float = np.inf,
) -> ChosenBudget:
    """The budget that maximises net income, ``limit`` money and ``most_requests`` per time at most.

    Example 4 of the paper: addresses that change at these rates, a benefit of 1 and a request of 1. The
    fourth changes too fast to be worth it.

    >>> chosen = choose_budget([0.457, 0.163, 0.098, 2.0], 1.0, Prices(request=1.0))
    >>> chosen.interval.round(2), round(chosen.requests, 3), chosen.futile.tolist()
    (array([3.38, 4.42, 5.36,  inf]), 0.709, [False, False, False, True])
    >>> chosen.reason(3)
    'changes too fast for its cost: no interval earns what its refreshes cost; pays above a benefit of 2'
    """
    taken = use or ResourceUse()
    check, update = prices.of(taken)
    items = build_items(rate, benefit, check, update_cost=update, stale_cost=stale_cost)
    free = (items.terms.check == 0) & (items.terms.gain > 0) & (items.rate > 0)
    if free.any():
        raise InputError(
            "a poll of some items costs nothing, so that no budget is best: give a price per request"
        )
    best = solve_items(items.with_terms(items.terms))
    requests = np.broadcast_to(np.asarray(taken.requests, dtype=np.float64).ravel(), items.rate.shape)
    options: IncomeOptions = {"update_cost": update, "stale_cost": stale_cost}

    def within(extra: float) -> tuple[Float64s, float]:
        seeming = extra * most_requests if extra else 0.0
        return _within(rate, benefit, check + extra * requests, limit, seeming, options)

    request_price = _least_price(lambda more: _total(requests, frequency_of(within(more)[0])), most_requests)
    interval, price = within(request_price)
    frequency = frequency_of(interval)
    # λ times the freshness is how often a poll finds a change
    found = items.rate * freshness_curve(multiply_by_rate(interval, items.rate))
    futile = best.futile.ravel()
    return ChosenBudget(
        interval=interval,
        frequency=frequency,
        net_income=income_at(items, interval),
        futile=futile,
        dropped=np.isinf(interval) & ~futile,
        money=float(spend_at(items, interval).sum()),
        requests=_total(taken.requests, frequency),
        bytes=_total(taken.bytes, frequency) + _total(taken.update_bytes, found),
        seconds=_total(taken.seconds, frequency) + _total(taken.update_seconds, found),
        price=price,
        request_price=request_price * (1.0 + price),
        best=best,
    )


def _within(
    rate: ArrayLike,
    benefit: ArrayLike,
    check: Float64s,
    limit: float | None,
    seeming: float,
    options: IncomeOptions,
) -> tuple[Float64s, float]:
    """Best intervals where looks cost so much, of which ``seeming`` is no money that anybody spends; and what
    a unit of money would earn beyond itself."""
    if limit is None:
        items = build_items(rate, benefit, check, **options)
        found, price = solve_items(items.with_terms(items.terms)).interval, 0.0
    else:
        limited = with_money(rate, benefit, check, limit + seeming, **options)
        found, price = limited.interval, limited.price
    return np.asarray(found, dtype=np.float64).ravel(), price


def _least_price(requests: Callable[[float], float], most: float) -> float:
    """The least price, added to that of a request, at which no more than ``most`` requests are made."""
    if requests(0.0) <= most:
        return 0.0
    if not most > 0:
        raise InputError(f"most_requests is {most}: must be above 0")
    found = solve_decreasing(lambda price: np.array([requests(float(price[0]))]), most, 1.0, rtol=1e-10)
    return float(found.high[0])


def _total(each: ArrayLike, frequency: Float64s) -> float:
    return float(np.sum(np.asarray(each, dtype=np.float64).ravel() * frequency))
