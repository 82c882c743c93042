"""Best intervals by search: for Weibull and Lomax decay the root of H, for any other decay its income.

With H of ``afresh.money.excess_income``, E rises while H < 0. How often H changes its sign follows from

    H'(u) = −u·(G·z' + U·z'') = u·z·(G·η − U·(η² − η')),    η = −z'/z the hazard.

- U = 0: H' ≥ 0 for every z that never rises, so that there is one optimum at most, whatever the decay.
- Lomax, η = a/(b+t): H' has the sign of G − U(a+1)/(b+u), which rises with u. H falls at first, if at
  all, and then rises: from −K it crosses 0 once at most, upwards.
- Weibull with k ≤ 1: H' has the sign of G − U(η + (1−k)/u), which rises with u: the same.
- Weibull with k > 1 and U > 0: that sign now falls with u. H rises to a peak and then falls, so the
  optimum is its crossing before the peak; behind a second crossing E climbs back to that of never
  refreshing, which wins if E at the first is below 0.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from afresh.model.decay import Decay, Lomax, Weibull
from afresh.model.roots import HUGE, find_crossing, find_maximum
from afresh.money.excess_income import (
    change_probability,
    cost_to_gain,
    excess_income,
    ratio_of,
    time_range,
    turning_term,
    weibull_power,
)
from afresh.money.terms import IncomeTerms, IntervalOptimum, make_optimum
from afresh.values.arrays import Bools, Float64s

_AT_ONCE = 1e-30  # shorter than this share of its time scale, an interval is 0
_ALL_CHANGED = 745.0  # e^{−745} is the last above 0


def weibull_optimum(decay: Weibull, terms: IncomeTerms) -> IntervalOptimum:
    """The best interval under z = e^{−(λt)^k}.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> weibull_optimum(Weibull(0.457, 1.0), IncomeTerms(one, none, one, none)).interval.round(2)
    array([3.38])
    """
    rate, shape = (np.broadcast_to(np.asarray(x), terms.gain.shape) for x in (decay.rate, decay.shape))
    scale = 1 / np.where(rate > 0, rate, 1.0)
    low, high = _AT_ONCE * scale, np.minimum(_ALL_CHANGED ** (1 / shape) * scale, HUGE)
    falls_due = (shape > 1) & (terms.update > 0)
    peak = high
    if falls_due.any():
        k = np.where(falls_due, shape, 2.0)

        def rises(u: Float64s) -> Float64s:
            """(G·u + U·(k−1))/(U·k·v^k), v = λu: above 1 while H' > 0."""
            power = np.minimum(u / scale, _ALL_CHANGED) ** k
            return ratio_of(terms.gain * u + terms.update * (k - 1), terms.update * k * power)

        peak = find_crossing(rises, low, high)
    found = _crossing(decay, terms, low, np.where(falls_due, peak, high), rate > 0)
    return make_optimum(
        *found, _weibull_threshold(decay, terms, low, high, falls_due), np.where(rate > 0, 0.0, 1.0)
    )


def lomax_optimum(decay: Lomax, terms: IncomeTerms) -> IntervalOptimum:
    """The best interval under z = (1+t/b)^{−a}; for a ≤ 1 every gain above 0 pays at some interval.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> lomax_optimum(Lomax(2.0, 10.0), IncomeTerms(one, none, one, none)).interval.round(2)
    array([4.62])
    """
    given = np.broadcast_to(np.asarray(decay.scale), terms.gain.shape)
    changing = np.isfinite(given)
    scale = np.where(changing, given, 1.0)
    found = _crossing(decay, terms, _AT_ONCE * scale, np.full_like(scale, HUGE), changing)
    return make_optimum(*found, _late_threshold(decay, terms, changing), np.where(changing, 0.0, 1.0))


def any_optimum(decay: Decay, terms: IncomeTerms) -> IntervalOptimum:
    """The best interval under any z, from its survival and integral alone: the highest E.

    The income is exact to the last digits, the interval to about eight where E is not too flat to tell.
    A scan of the whole axis, 32 points per decade, finds the highest maximum if E has several.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> any_optimum(Lomax(2.0, 10.0), IncomeTerms(one, none, one, none)).interval.round(2)
    array([4.62])
    """
    shape = terms.gain.shape
    first, high = time_range(decay, terms.gain.size)
    # a refresh must earn its cost, G·Z(u) > K, and Z(u) ≤ u
    least = np.divide(terms.check, terms.gain, out=np.zeros_like(first), where=terms.gain > 0)
    low = np.clip(least, first, high)
    changing = np.broadcast_to(decay.plateau() < 1, shape)
    worth = changing & (terms.gain > 0)
    interval = find_maximum(lambda u: excess_income(decay, terms, u), low, high, per_decade=32)
    at_once = (terms.check == 0) & (excess_income(decay, terms, low) >= excess_income(decay, terms, interval))
    interval = np.where(at_once, 0.0, interval)
    value = np.where(worth, excess_income(decay, terms, np.where(at_once, low, interval)), 0.0)
    freshness = decay.integral(low + interval) / (low + interval)

    def earned_per_cost(u: Float64s) -> Float64s:
        paid = terms.check + terms.update * change_probability(decay, u)
        earned = decay.integral(u) - u * decay.plateau()
        return np.divide(earned, paid, out=np.full_like(paid, np.inf), where=paid > 0)

    dearest = earned_per_cost(find_maximum(earned_per_cost, first, high, per_decade=32))
    threshold = np.divide(1.0, dearest, out=np.full_like(dearest, np.inf), where=dearest > 0)
    threshold = np.minimum(threshold, _late_threshold(decay, terms, decay.plateau() == 0))
    return make_optimum(interval, value, freshness, np.where(changing, threshold, np.inf), decay.plateau())


def _crossing(
    decay: Weibull | Lomax, terms: IncomeTerms, low: Float64s, high: Float64s, changing: Bools
) -> tuple[Float64s, Float64s, Float64s]:
    """(u*, E(u*), F(u*)) where H crosses 0 upwards between ``low`` and ``high``; E is 0 where it does not.

    At the crossing E = G·z − U·(−z'), which keeps its digits where E = (G·Z − K − …)/u loses them.
    """
    worth = (terms.gain > 0) & changing
    # a refresh must earn its cost, G·Z(u) > K, and Z(u) ≤ u
    least = np.divide(terms.check, terms.gain, out=np.zeros_like(low), where=worth)
    low = np.minimum(np.maximum(low, least), high)
    root = find_crossing(partial(cost_to_gain, decay, terms), low, high)
    falling = (change_probability(decay, root) - turning_term(decay, root)) / root
    value = terms.gain * decay.survival(root) - terms.update * falling
    crosses = worth & (cost_to_gain(decay, terms, high) < 1)
    interval = np.where((terms.check == 0) & (root <= low), 0.0, root)
    return interval, np.where(crosses, value, 0.0), decay.integral(root) / root


def _late_threshold(decay: Decay, terms: IncomeTerms, changing: Bools) -> Float64s:
    """(K+U)/∫z: the gain at which refreshing starts to pay if it does so at long intervals first (z∞ = 0)."""
    total = np.where(changing, decay.total(), 1.0)
    return np.where(changing, (terms.check + terms.update) / total, np.inf)


def _weibull_threshold(
    decay: Weibull, terms: IncomeTerms, low: Float64s, high: Float64s, falls_due: Bools
) -> Float64s:
    """The least of (K+U(1−z))/Z over u. Its slope has the sign of U(ηZ+z−1) − K, whose own slope is U·η'·Z.

    So for k ≤ 1 it falls for ever and the limit is the least; for k > 1 it has one minimum.
    """
    late = _late_threshold(decay, terms, np.asarray(decay.rate) > 0)
    if not falls_due.any():
        return late
    u = find_crossing(partial(_cheaper_later, decay, terms), low, high)
    inner = (terms.check + terms.update * change_probability(decay, u)) / decay.integral(u)
    return np.where(falls_due & (late < np.inf), np.minimum(inner, late), late)


def _cheaper_later(decay: Weibull, terms: IncomeTerms, u: Float64s) -> Float64s:
    """(K+U(1−z))/(U·η·Z): above 1 where (K+U(1−z))/Z falls with u."""
    hazard = np.asarray(decay.shape) * weibull_power(decay, u) / u
    paid = terms.check + terms.update * change_probability(decay, u)
    return ratio_of(paid, terms.update * hazard * decay.integral(u))
