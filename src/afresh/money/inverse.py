"""Compute one of benefit, interval, rate and cost from the other three (Razniewski 2016, §9).

``best_interval`` computes the interval u. The others follow from H(u) = G·gain(u) − K − U·turning(u) = 0
(``afresh.money.excess_income``), which is linear in the gain G and in the cost K of a refresh:

    exponential   G = λK/g(λu) + λU    K = (G−λU)·g(λu)/λ
    linear        G = 2K/(λu²)         K = G·λu²/2           λ = 2K/(G·u²)

For exponential decay the rate λ solves (G/r − U/u)·g(r) = K/u with r = λu. The left side rises to one peak
and then falls, so that there are two rates or none. At the slow rate there is little change between two
refreshes; at the fast rate refreshing hardly pays.

Some intervals are not the best for any benefit: with linear decay, all from 1/λ on. With a decay that has
steps, many benefits have the same best interval. Then the smallest of these benefits, or the largest of the
costs, is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from afresh.model.decay import Decay, Exponential, GammaDecay, Lomax, Weibull, decay_from
from afresh.model.roots import find_crossing, narrow_maximum, solve_decreasing
from afresh.money.best_interval import find_optimum
from afresh.money.excess_income import SMOOTH_DECAYS, by_group, cost_to_gain, excess_income, turning_term
from afresh.money.priced_items import IncomeOptions, PricedItems, build_items, check_positive, size_factor
from afresh.money.terms import IncomeTerms
from afresh.values.arrays import ArrayLike, Bools, Float64s
from afresh.values.errors import InfeasibleError, UsageError

_RATES = 4001  # 24 decades, 1.4 % apart
_VISIBLE = 1e-12  # an excess income below this share of the gain counts as none


def implied_benefit(
    interval: ArrayLike, rate: ArrayLike, cost: ArrayLike, **options: Unpack[IncomeOptions]
) -> Any:
    """Return the benefit per record and time for which ``interval`` is best; NaN in arrays if there is none.
    It is negative if the stale cost alone would make the interval shorter. Razniewski 2016, §9: if 75 crawls
    a day are best for a page that changes once a day, a correct copy earns the cost of 11 350 crawls a day.

    >>> round(implied_benefit(1 / 75, 1.0, 1.0))
    11350
    """
    times = check_positive("interval", interval)
    items = build_items(rate, 0.0, check_positive("cost", cost), **options, along=("interval", times))
    u = np.broadcast_to(times, items.shape).astype(np.float64).ravel()
    gain = by_group(items, u, _smallest_gain)
    return _answer(items, (gain - items.terms.stale) / items.size, "benefit")


def implied_cost(
    interval: ArrayLike, rate: ArrayLike, benefit: ArrayLike, **options: Unpack[IncomeOptions]
) -> Any:
    """Return the cost of one refresh for which ``interval`` is best; NaN in arrays if there is none.

    >>> round(implied_cost(1 / 75, 1.0, 11350.2), 4)
    1.0
    """
    times = check_positive("interval", interval)
    items = build_items(rate, benefit, 0.0, **options, along=("interval", times))
    u = np.broadcast_to(times, items.shape).astype(np.float64).ravel()
    check = by_group(items, u, _largest_check)
    factor = size_factor(items.size, options.get("cost_of_size", "constant"))
    return _answer(items, check / factor, "cost")


def implied_rates(
    interval: float, benefit: float, cost: float, **options: Unpack[IncomeOptions]
) -> tuple[float, ...]:
    """Return all rates, slowest first, for which ``interval`` is the best time between refreshes.
    There are two, one or none. Rates at which refreshing earns less than 1e−12 of the gain are left out.

    >>> [round(rate, 4) for rate in implied_rates(3.38, 1.0, 1.0)]
    [0.4569, 0.614]
    >>> implied_rates(3.0, 1.0, 1.0)
    ()
    """
    decay = options.pop("decay", "exponential")
    if not isinstance(decay, str):
        raise UsageError("a decay object has its rate already: give the name of a decay")
    u = float(check_positive("interval", interval))
    items = build_items(0.0, benefit, check_positive("cost", cost), **options)
    if not isinstance(decay_from(decay, np.ones(1)), SMOOTH_DECAYS):
        raise UsageError(f"{decay} decay has steps, and many rates share one interval: no single one follows")

    def terms(number: int) -> IncomeTerms:
        return items.terms.take(np.zeros(number, dtype=np.intp))

    def ratio_at(rate: Float64s) -> Float64s:
        return cost_to_gain(decay_from(decay, rate), terms(rate.size), np.full(rate.size, u))

    rates = np.geomspace(1e-12, 1e12, _RATES) / u
    # Two roots between the same two grid points would be missed, so the peak is added to the grid.
    top = min(max(int(ratio_at(rates).argmin()), 1), _RATES - 2)
    peak = narrow_maximum(lambda rate: -ratio_at(rate), rates[top - 1 : top], rates[top + 1 : top + 2])
    rates = np.sort(np.append(rates, peak))
    sign = np.sign(1 - ratio_at(rates))
    cells = np.flatnonzero(sign[:-1] * sign[1:] < 0)

    def falling_ratio(rate: Float64s) -> Float64s:
        with np.errstate(divide="ignore"):
            return np.asarray(ratio_at(rate) ** sign[cells + 1])

    found = find_crossing(falling_ratio, rates[cells], rates[cells + 1])
    some = terms(found.size)
    best = find_optimum(decay_from(decay, found), some)
    good = (np.abs(best.interval - u) <= 1e-3 * u) & (best.excess > _VISIBLE * some.gain)
    return tuple(float(rate) for rate in found[good])


def _smallest_gain(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
    """Return the smallest gain (``IncomeTerms.gain``) for which u is the best interval; NaN if none."""
    if isinstance(decay, SMOOTH_DECAYS):
        marginal = decay.gain(u)
        needed = terms.check + terms.update * turning_term(decay, u)
        gain = np.divide(needed, marginal, out=np.full_like(u, np.nan), where=marginal > 0)
        good = _is_best(decay, IncomeTerms(gain, terms.stale, terms.check, terms.update), u)
        return np.where(good, gain, np.nan)

    def interval_at(gain: Float64s) -> Float64s:
        return find_optimum(decay, IncomeTerms(gain, terms.stale, terms.check, terms.update)).interval

    # A larger gain never makes the interval longer: the income contains gain·F(u), and F falls as u grows.
    low, high = terms.check / u * 1e-100, terms.check / u * 1e100
    _, gain = _boundary(lambda x: interval_at(x) <= u * (1 + 1e-9), low, high)
    return np.where(np.abs(interval_at(gain) - u) <= 1e-6 * u, gain, np.nan)


def _largest_check(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
    """Return the largest cost of a refresh for which u is the best interval; NaN if there is none."""
    if isinstance(decay, SMOOTH_DECAYS):
        check = terms.gain * decay.gain(u) - terms.update * turning_term(decay, u)
        good = _is_best(decay, IncomeTerms(terms.gain, terms.stale, check, terms.update), u)
        return np.where(good & (check > 0), check, np.nan)

    def interval_at(check: Float64s) -> Float64s:
        return find_optimum(decay, IncomeTerms(terms.gain, terms.stale, check, terms.update)).interval

    # A larger cost never makes the interval shorter.
    start = np.where(terms.gain > 0, terms.gain, 1.0) * u
    check, _ = _boundary(lambda x: interval_at(x) > u * (1 + 1e-9), start * 1e-100, start * 1e100)
    return np.where(np.abs(interval_at(check) - u) <= 1e-6 * u, check, np.nan)


def _is_best(decay: Decay, terms: IncomeTerms, u: Float64s) -> Bools:
    """Return whether u, a root of H, is the best interval and not a minimum or an interval that loses money.
    If the hazard of the decay never rises, H has one root, which is the best interval (``interval_optima``).
    Otherwise the best interval is the root at which refreshing earns something."""
    if isinstance(decay, Exponential | Lomax):
        return np.asarray(terms.gain > 0)
    earns = excess_income(decay, terms, u) > 1e-14 * terms.gain
    if isinstance(decay, Weibull | GammaDecay):
        return np.asarray(earns | (np.asarray(decay.shape) <= 1))
    return np.asarray(earns)


def _boundary(holds: Callable[[Float64s], Bools], low: Float64s, high: Float64s) -> tuple[Float64s, Float64s]:
    """Return two adjacent doubles in [low, high]: ``holds`` is false for the first, true for the second."""
    middle, one = np.sqrt(low) * np.sqrt(high), np.ones_like(low)
    found = solve_decreasing(lambda x: np.where(holds(x), 0.5, 2.0), one, middle, low=low, high=high)
    return found.low, found.high


def _answer(items: PricedItems, values: Float64s, name: str) -> Any:
    """Return the values in the shape of the input; for one number raise ``InfeasibleError`` if it is NaN."""
    if items.shape:
        return items.in_input_shape(values)
    if np.isnan(values[0]):
        raise InfeasibleError(f"no {name} makes this interval the best: another interval always earns more")
    return float(values[0])
