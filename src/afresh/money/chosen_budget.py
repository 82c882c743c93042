"""Choose the budget that earns the most if requests, bytes and seconds have prices (Razniewski 2016, §5, §8).

One poll of an item costs c = p_r·requests + p_b·bytes + p_s·seconds, with the prices p_r, p_b and p_s. If the
poll finds a change, it costs more, for the additional bytes and seconds. With the benefit B per time of a
correct copy and the cost O per time of a wrong one, each item has its own best polling interval, and the best
budget is what the polls at these intervals cost. The last unit of money then earns exactly one unit (it is
the plan of ``allocate`` with weights B+O whose multiplier is 1). If the money is limited to less, its last
unit earns more, and ``price`` says how much more. A limit of requests acts like an additional price per
request.
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
    """The resources that one poll of an item uses, and those that it uses in addition after a change."""

    requests: ArrayLike = 1.0
    bytes: ArrayLike = 0.0
    seconds: ArrayLike = 0.0
    update_bytes: ArrayLike = 0.0
    update_seconds: ArrayLike = 0.0


@dataclass(frozen=True, slots=True)
class Prices:
    """The money per request, byte and second: one price for all items, or one price for each item."""

    request: ArrayLike = 0.0
    byte: ArrayLike = 0.0
    second: ArrayLike = 0.0

    def of(self, use: ResourceUse) -> tuple[Float64s, Float64s]:
        """Return a tuple (cost of a poll, its additional cost if it finds a change).

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
    """The plan with the highest net income, and the resources that it uses per time.

    ``futile`` items are not polled at any budget, ``dropped`` items are not polled because of the limit.
    ``price`` is the net income that one more unit of money would earn, ``request_price`` that of one more
    request per time; both are 0 if the plan stays below the limit. ``best`` is the plan without a limit."""

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
        """Return a text that says why the item at this position is polled or not."""
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
    """Return the plan with the highest net income that keeps ``limit`` money and ``most_requests`` per time.

    ``benefit`` is earned per time while a copy is correct, ``stale_cost`` lost per time while it is wrong.
    Razniewski 2016, Example 4: addresses with a benefit of 1 and a cost of 1 per request. The fourth address
    is added here; it changes too fast for refreshes to pay.

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
    # Polls find a change λ·freshness times per time (λ is the rate).
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
    """Return a tuple (best intervals, price) at the cost ``check`` per poll; see ``ChosenBudget.price``.
    ``seeming`` is the part of the cost per time that stands for the limit of requests and is not paid."""
    if limit is None:
        items = build_items(rate, benefit, check, **options)
        found, price = solve_items(items.with_terms(items.terms)).interval, 0.0
    else:
        limited = with_money(rate, benefit, check, limit + seeming, **options)
        found, price = limited.interval, limited.price
    return np.asarray(found, dtype=np.float64).ravel(), price


def _least_price(requests: Callable[[float], float], most: float) -> float:
    """Return the least additional price per request at which no more than ``most`` requests are made."""
    if requests(0.0) <= most:
        return 0.0
    if not most > 0:
        raise InputError(f"most_requests is {most}: must be above 0")
    found = solve_decreasing(lambda price: np.array([requests(float(price[0]))]), most, 1.0, rtol=1e-10)
    return float(found.high[0])


def _total(each: ArrayLike, frequency: Float64s) -> float:
    return float(np.sum(np.asarray(each, dtype=np.float64).ravel() * frequency))
