"""Find the interval between refreshes at which an item, or each of many, earns the most (Razniewski 2016,
§5–7). Many items are solved at once, each on its own or in bulks that are refreshed together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from afresh.model.decay import (
    Decay,
    Empirical,
    Exponential,
    GammaDecay,
    Geometric,
    Linear,
    Lomax,
    Weibull,
)
from afresh.money import interval_optima as optima
from afresh.money.excess_income import frequency_of, income_at
from afresh.money.priced_items import CostOfSize, DecayLike, IncomeOptions, PricedItems, build_items
from afresh.money.record_bulks import build_bulks, solve_bulks
from afresh.money.terms import IncomeTerms, IntervalOptimum, RefreshVerdict, describe_verdict, verdicts
from afresh.values.arrays import ArrayLike, Bools, Float64s, Floats
from afresh.values.errors import UsageError
from afresh.values.results import Income

Codes: TypeAlias = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Incomes:
    """The best time between refreshes of each item, and what the item earns with it.

    ``interval``    the time between two refreshes; infinite if refreshing is futile.
    ``frequency``   refreshes per time.
    ``freshness``   the share of time in which the copy is correct.
    ``net_income``  money per time, of all records of the item; if futile, the income without refreshes.
    ``break_even``  the benefit per record above which refreshing pays; 0 if the stale cost alone pays for it.
    ``verdict``     a code of ``afresh.money.terms.RefreshVerdict``.

    Items in a bulk have the same interval and verdict. The cost of a bulk's refresh is divided by size, so
    that the incomes of its items add up to its own. Their ``break_even`` is ``benefit`` times one factor."""

    interval: Floats
    frequency: Floats
    freshness: Floats
    net_income: Floats
    break_even: Floats
    futile: Bools
    verdict: Codes


def best_interval(
    rate: float,
    benefit: float,
    cost: float,
    *,
    update_cost: float = 0,
    stale_cost: float = 0,
    decay: DecayLike = "exponential",
    size: float = 1,
    cost_of_size: CostOfSize = "constant",
) -> Income:
    """Return the time between refreshes with the highest net income per time, and what it earns.

    ``benefit`` is earned per time while the copy is correct, ``stale_cost`` lost per time while it is wrong.
    Each refresh costs ``cost``, and ``update_cost`` more if it finds a change. ``size`` records refreshed
    together cost ``cost`` times 1, √size or size (``cost_of_size``: constant, sqrt, linear, or a function).
    ``decay`` is a name (``weibull:0.8``) or a ``Decay`` object, whose own parameters then replace ``rate``.

    If the decay function jumps, as geometric decay does, net income may be highest just before a jump. The
    interval is then the last moment before the jump.

    >>> best = best_interval(0.163, 1.0, 1.0)
    >>> round(best.interval, 2), round(best.net_income, 2), best.futile
    (4.42, 0.49, False)

    Razniewski 2016, Example 5: with linear decay at rate 1, refreshing an address does not pay.

    >>> hopeless = best_interval(1.0, 1.0, 1.0, decay="linear")
    >>> hopeless.futile, hopeless.interval, hopeless.break_even
    (True, inf, 2.0)
    """
    options: IncomeOptions = {"update_cost": update_cost, "stale_cost": stale_cost, "decay": decay}
    options |= {"size": size, "cost_of_size": cost_of_size}
    found = best_intervals(rate, benefit, cost, **options)
    if found.interval.ndim:
        raise UsageError(
            "best_interval takes one item: use afresh.money.best_interval.best_intervals for arrays"
        )
    break_even = float(found.break_even)
    ratio = break_even / float(cost) if cost > 0 else np.inf
    return Income(
        interval=float(found.interval),
        net_income=float(found.net_income),
        futile=bool(found.futile),
        freshness=float(found.freshness),
        break_even=break_even,
        break_even_ratio=ratio,
        reason=describe_verdict(RefreshVerdict(int(found.verdict)), break_even, ratio),
    )


def best_intervals(
    rate: ArrayLike,
    benefit: ArrayLike,
    cost: ArrayLike,
    *,
    bulk: Iterable[Hashable] | None = None,
    **options: Unpack[IncomeOptions],
) -> Incomes:
    """Return the best time between refreshes of each item; items of one ``bulk`` are refreshed together.
    Razniewski 2016, Example 4: addresses of people aged 25, 30, 40 and 50.

    >>> ages = best_intervals([0.457, 0.316, 0.163, 0.098], benefit=1.0, cost=1.0)
    >>> ages.interval.round(2), ages.net_income.round(2)
    (array([3.38, 3.61, 4.42, 5.36]), array([0.21, 0.32, 0.49, 0.59]))
    """
    items = build_items(rate, benefit, cost, **options)
    if bulk is None:
        return solve_items(items)
    return _solve_in_bulks(items, bulk, options)


def solve_items(items: PricedItems) -> Incomes:
    """Return the best time between refreshes of each item, independently of the others."""
    columns = np.empty((5, items.rate.size))  # interval, excess, freshness, threshold, never
    for group in items.groups:
        terms = items.terms.take(group.rows)
        best = find_optimum(group.decay, terms)
        never = terms.gain * group.decay.plateau() - terms.stale
        columns[:, group.rows] = best.interval, best.excess, best.freshness, best.threshold, never
    interval, excess, freshness, threshold, never = columns
    break_even = np.maximum((threshold - items.terms.stale) / items.size, 0.0)
    verdict = verdicts(excess > 0, items.terms.gain, threshold)
    return _incomes(items, interval, freshness, never + excess, break_even, verdict)


def find_optimum(decay: Decay, terms: IncomeTerms) -> IntervalOptimum:
    """Return the best time between refreshes of each item, by the formula of its decay or by a search.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> find_optimum(Exponential(0.098), IncomeTerms(one, none, one, none)).interval.round(2)
    array([5.36])
    """

    def per_item(parameter: npt.ArrayLike) -> Float64s:
        return np.broadcast_to(np.asarray(parameter, dtype=np.float64), terms.gain.shape)

    match decay:
        case Exponential():
            return optima.exponential_optimum(per_item(decay.rate), terms)
        case Linear():
            return optima.linear_optimum(per_item(decay.rate), terms)
        case Geometric():
            return optima.geometric_optimum(per_item(decay.p), per_item(decay.step), terms)
        case Empirical():
            return optima.empirical_optimum(decay, terms)
        case Weibull():
            return optima.weibull_optimum(decay, terms)
        case GammaDecay():
            return optima.gamma_optimum(decay, terms)
        case Lomax():
            return optima.lomax_optimum(decay, terms)
        case _:
            return optima.any_optimum(decay, terms)


def _solve_in_bulks(items: PricedItems, labels: Iterable[Hashable], options: IncomeOptions) -> Incomes:
    bulks = build_bulks(items, labels, options.get("cost_of_size", "constant"))
    best, member = solve_bulks(bulks), bulks.member
    interval = best.interval[member]
    share = items.size / bulks.sums(items.size)[member]
    terms = items.terms
    own = items.with_terms(IncomeTerms(terms.gain, terms.stale, share * bulks.check[member], terms.update))
    plateau, freshness = _freshness(items, interval)
    reachable = best.factor < np.inf
    factor = np.where(reachable, best.factor, 1.0)[member]
    break_even = np.where(reachable[member], items.benefit * factor, np.inf)
    gain = bulks.sums(terms.gain)
    threshold = np.where(bulks.sums(1 - plateau) > 0, gain, np.inf)
    verdict = verdicts(best.excess > 0, gain, threshold)[member]
    return _incomes(items, interval, freshness, income_at(own, interval), break_even, verdict)


def _freshness(items: PricedItems, interval: Float64s) -> tuple[Float64s, Float64s]:
    """Return a tuple (z(∞), freshness) of each item, if it is refreshed every ``interval``."""
    plateau, freshness = np.empty((2, interval.size))
    inside = (interval > 0) & (interval < np.inf)
    time = np.where(inside, interval, 1.0)
    for group in items.groups:
        plateau[group.rows] = group.decay.plateau()
        freshness[group.rows] = group.decay.integral(time[group.rows]) / time[group.rows]
    return plateau, np.where(inside, freshness, np.where(interval > 0, plateau, 1.0))


def _incomes(
    items: PricedItems,
    interval: Float64s,
    freshness: Float64s,
    income: Float64s,
    break_even: Float64s,
    verdict: Codes,
) -> Incomes:
    columns = (interval, frequency_of(interval), freshness, income, break_even)
    shaped: list[Any] = [items.in_input_shape(column) for column in columns]
    shaped += [np.isinf(interval).reshape(items.shape), verdict.reshape(items.shape)]
    return Incomes(*shaped)
