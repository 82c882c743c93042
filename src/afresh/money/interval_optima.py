"""The best interval under each decay function: in closed form, piece by piece, or by search.

With the terms G, K, U of ``afresh.money.terms``, the excess of net income over never refreshing is

    E(u) = (G·Z(u) − K − U·(1−z(u))) / u,    Z(u) = ∫₀ᵘ z    (Razniewski 2016, §5 and §7).

Exponential. U(1−z)/u = λU·F, so an update cost only lowers the gain to G−λU, and E'(u) = 0 is
g(λu) = λK/(G−λU), g(r) = 1−(1+r)e^{−r}. Hence u* = Φ(y)/λ, y = λK/(G−λU), which is the branch −1
of Lambert's W in the paper's Eq. 11; branch 0 is u = 0. At the optimum E = (G−λU)·e^{−λu*}.

Linear. u* = √(2K/(λG)), E = G(1−λu*) − λU; the update cost changes the income, not the interval.

Geometric, z = q^⌊t/s⌋, q = 1−p. Between two steps E is monotone in u, so the supremum lies just
before a step u = js: E = (a − b·q^j)/(js) with a = Gs/p−K−U, b = Gs/p−U/q. As a function of a real j
that is the exponential case, j = Φ((b−a)/b)/(−ln q); E rises before it and falls after it, so that
the best whole number j is one of its two neighbours, or 1.

Empirical. On a piece where z(u) = α − m·u

    E(u) = a/u + G·(α−z∞) − U·m − G·m·u/2,    a = G·ζ − K − U·(1−α),    ζ = Z(u)−α·u+m·u²/2 (constant)

so its highest point there is √(−2a/(G·m)), cut to the piece; on a step (m = 0) it is the end if a < 0.
At a jump of z the end of the piece before it counts with z from the left: net income has its supremum just
before the jump, since a refresh there rarely finds a change and so rarely pays the update cost.

Others by search: for Weibull and Lomax the root of H of ``afresh.money.excess_income``, E rising while H < 0,
for any other decay its income. How often H changes its sign follows from

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

from dataclasses import dataclass
from functools import partial

import numpy as np

from afresh.model.curves import freshness_curve, phi
from afresh.model.decay import Decay, Empirical, Lomax, Weibull
from afresh.model.roots import HUGE, find_crossing, find_maximum
from afresh.money import excess_income as income
from afresh.money.terms import IncomeTerms, IntervalOptimum, just_before, make_optimum
from afresh.values.arrays import Bools, Float64s


def exponential_optimum(rate: Float64s, terms: IncomeTerms) -> IntervalOptimum:
    """The best interval under z = e^{−λt}: u* = Φ(λK/(G−λU))/λ.

    Example 4 of the paper, 25-year-olds: every 3.38 years for a net income of 0.21.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> best = exponential_optimum(np.array([0.457]), IncomeTerms(one, none, one, none))
    >>> best.interval.round(2), best.excess.round(2), best.threshold
    (array([3.38]), array([0.21]), array([0.457]))
    """
    net_gain = terms.gain - rate * terms.update
    worth, changing = net_gain > 0, rate > 0
    price = np.divide(rate * terms.check, net_gain, out=np.full_like(net_gain, np.inf), where=worth)
    aged = phi(price)
    interval = np.divide(aged, rate, out=np.full_like(aged, np.inf), where=changing)
    excess = np.where(worth & changing, net_gain * np.exp(-aged), 0.0)
    threshold = np.where(changing, rate * (terms.check + terms.update), np.inf)
    return make_optimum(interval, excess, freshness_curve(aged), threshold, np.where(changing, 0.0, 1.0))


def linear_optimum(rate: Float64s, terms: IncomeTerms) -> IntervalOptimum:
    """The best interval under z = max(1−λt, 0): u* = √(2K/(λG)).

    The threshold solves G = √(2λKG) + λU, the point where E(u*) = 0. §2 of the paper, Dr. Smith:

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> best = linear_optimum(np.array([0.1]), IncomeTerms(one, none, one, none))
    >>> best.interval.round(1), (10 * best.excess).round(1), best.threshold
    (array([4.5]), array([5.5]), array([0.2]))
    """
    worth = (rate > 0) & (terms.gain > 0)
    # √a·√b, not √(ab): the product of two extreme numbers may underflow, its root need not
    scaled = np.divide(2 * terms.check, terms.gain, out=np.zeros_like(rate), where=worth)
    aged = np.sqrt(rate) * np.sqrt(scaled)
    interval = np.divide(aged, rate, out=np.full_like(rate, np.inf), where=worth)
    left = np.subtract(1.0, aged, out=np.zeros_like(rate), where=worth)
    excess = np.where(worth, terms.gain * left - rate * terms.update, 0.0)
    both = terms.check + terms.update + np.sqrt(terms.check) * np.sqrt(terms.check + 2 * terms.update)
    threshold = np.where(rate > 0, rate * both, np.inf)
    return make_optimum(interval, excess, 0.5 + 0.5 * left, threshold, np.where(rate > 0, 0.0, 1.0))


def geometric_optimum(probability: Float64s, step: Float64s, terms: IncomeTerms) -> IntervalOptimum:
    """The best interval under z = (1−p)^⌊t/s⌋: a whole number of steps, and just before the last where U > 0.

    The threshold is the least of (K + U(1−q^{j−1}))·p/(s(1−q^j)), which is monotone in q^j: j = 1 or j = ∞.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> best = geometric_optimum(np.array([0.1]), one, IncomeTerms(one, none, one, none))
    >>> best.interval, best.excess.round(4), best.threshold
    (array([5.]), array([0.619]), array([0.1]))
    """
    below = _steps_below(probability, step, terms)
    lower, upper = (_excess_after(steps, probability, step, terms) for steps in (below, below + 1))
    steps = np.where(upper > lower, below + 1, below)
    changing = probability > 0
    excess = np.where(changing, np.maximum(lower, upper), 0.0)
    end = steps * step
    interval = np.where(terms.update > 0, just_before(end), end)
    freshness = _right_steps(steps, probability) / steps
    threshold = np.minimum(terms.check, (terms.check + terms.update) * probability) / step
    threshold = np.where(changing, threshold, np.inf)
    return make_optimum(interval, excess, freshness, threshold, np.where(changing, 0.0, 1.0))


def _steps_below(probability: Float64s, step: Float64s, terms: IncomeTerms) -> Float64s:
    """The whole number of steps at or below the real optimum Φ((b−a)/b)/(−ln q), at least 1."""
    certain, never = probability >= 1, probability <= 0
    odds = np.divide(probability, 1 - probability, out=np.zeros_like(probability), where=~certain)
    slope = probability * (terms.check - terms.update * odds)
    base = terms.gain * step - terms.update * odds
    inside = (slope > 0) & (slope < base) & ~certain & ~never
    price = np.divide(slope, base, out=np.zeros_like(base), where=inside)
    real = phi(price) / np.where(never, 1.0, _hazard(probability))
    return np.maximum(np.floor(real), 1.0)


def _excess_after(steps: Float64s, probability: Float64s, step: Float64s, terms: IncomeTerms) -> Float64s:
    """E just before the end of ``steps`` steps."""
    lost = -np.expm1(-_hazard(probability) * (steps - 1))
    earned = terms.gain * step * _right_steps(steps, probability)
    return np.asarray((earned - terms.check - terms.update * lost) / (steps * step))


def _right_steps(steps: Float64s, probability: Float64s) -> Float64s:
    """(1−q^j)/p: the number of steps, of the first j, that the copy is right."""
    lost = -np.expm1(-_hazard(probability) * steps)
    return np.divide(lost, probability, out=np.array(steps), where=probability > 0)


def _hazard(probability: Float64s) -> Float64s:
    """−ln q, and 800 (e^{−800} is 0) where q = 0."""
    hazard = np.full_like(probability, -800.0)
    return -np.log1p(-probability, out=hazard, where=probability < 1)


_BLOCK = 1 << 20  # items times pieces worked on at once


@dataclass(frozen=True, slots=True)
class _Pieces:
    """z = level − fall·u from start to end, and ζ; the plateau after the last point is left out."""

    start: Float64s
    end: Float64s
    level: Float64s
    fall: Float64s
    offset: Float64s
    plateau: float

    @classmethod
    def of(cls, decay: Empirical) -> _Pieces:
        times, values = (np.asarray(x, dtype=np.float64) for x in (decay.times, decay.values))
        start, end = times[:-1], times[1:]
        fall = -np.diff(values) / np.diff(times) if decay.linear else np.zeros_like(start)
        offset = decay.gain(start) - fall * start * start / 2
        return cls(start, end, values[:-1] + fall * start, fall, offset, float(values[-1]))


def empirical_optimum(decay: Empirical, terms: IncomeTerms) -> IntervalOptimum:
    """The best interval under a curve by points.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> certain_until_2 = Empirical([2.0], [0.0])
    >>> empirical_optimum(certain_until_2, IncomeTerms(one, none, one, none)).interval
    array([2.])
    """
    pieces = _Pieces.of(decay)
    found = np.zeros((3, terms.gain.size))  # interval, excess, threshold
    if pieces.start.size == 0:  # one value for ever: nothing to refresh
        found[2] = np.inf
    else:
        rows = max(1, _BLOCK // pieces.start.size)
        for first in range(0, terms.gain.size, rows):
            some = terms.take(np.arange(first, min(first + rows, terms.gain.size)))
            interval, excess = _best_of_pieces(pieces, some)
            found[:, first : first + rows] = interval, excess, _threshold(pieces, some)
    interval, excess, threshold = found
    freshness = np.divide(decay.integral(interval), interval, out=np.ones_like(interval), where=interval > 0)
    if not decay.linear:
        interval = np.where(terms.update > 0, just_before(interval), interval)
    return make_optimum(interval, excess, freshness, threshold, pieces.plateau)


def _best_of_pieces(pieces: _Pieces, terms: IncomeTerms) -> tuple[Float64s, Float64s]:
    """(u*, E(u*)) over all pieces; items down, pieces across."""
    gain, check, update = (x[:, None] for x in (terms.gain, terms.check, terms.update))
    a = gain * pieces.offset - check - update * (1 - pieces.level)
    bend = gain * pieces.fall
    inner = np.sqrt(np.divide(-2 * a, bend, out=np.full_like(a, np.inf), where=(bend > 0) & (a < 0)))
    u = np.where(a < 0, np.clip(inner, pieces.start, pieces.end), pieces.start)
    per_time = np.divide(a, u, out=np.zeros_like(a), where=u > 0)
    per_time = np.where((u == 0) & (a > 0), -np.inf, per_time)
    value = per_time + gain * (pieces.level - pieces.plateau) - update * pieces.fall - bend * u / 2
    best = np.argmax(value, axis=1)[:, None]
    return np.take_along_axis(u, best, axis=1)[:, 0], np.take_along_axis(value, best, axis=1)[:, 0]


def _threshold(pieces: _Pieces, terms: IncomeTerms) -> Float64s:
    """The least of (K+U(1−z))/(Z−u·z∞): at the end of a piece, or where its slope is 0.

    As (p+q·u)/(ζ+b·u−c·u²) that is at q·c·u² + 2·p·c·u + q·ζ − p·b = 0.
    """
    check, update = terms.check[:, None], terms.update[:, None]
    p, q = check + update * (1 - pieces.level), update * pieces.fall
    b, c = pieces.level - pieces.plateau, pieces.fall / 2
    under = p * p * c * c - q * c * (q * pieces.offset - p * b)
    bends = (q * c > 0) & (under >= 0)
    root = np.divide(
        np.sqrt(np.where(bends, under, 0.0)) - p * c,
        q * c,
        out=np.broadcast_to(pieces.end, p.shape).copy(),
        where=bends,
    )
    least = np.full(check.shape[0], np.inf)
    for u in (np.clip(root, pieces.start, pieces.end), np.broadcast_to(pieces.end, p.shape)):
        earned = pieces.offset + b * u - c * u * u
        ratio = np.divide(p + q * u, earned, out=np.full_like(p, np.inf), where=earned > 0)
        least = np.minimum(least, ratio.min(axis=1))
    # with free checks the shortest interval may be the best start: U times the hazard at 0
    at_once = terms.update * (pieces.fall[0] / max(b[0], np.finfo(np.float64).tiny))
    free = (terms.check == 0) & (pieces.level[0] >= 1)
    return np.where(free, np.minimum(least, at_once), least)


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
            return income.ratio_of(terms.gain * u + terms.update * (k - 1), terms.update * k * power)

        peak = find_crossing(rises, low, high)
    found = _crossing(decay, terms, low, np.where(falls_due, peak, high), rate > 0)
    threshold = _weibull_threshold(decay, terms, low, high, falls_due)
    return make_optimum(*found, threshold, np.where(rate > 0, 0.0, 1.0))


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
    first, high = income.time_range(decay, terms.gain.size)
    # a refresh must earn its cost, G·Z(u) > K, and Z(u) ≤ u
    least = np.divide(terms.check, terms.gain, out=np.zeros_like(first), where=terms.gain > 0)
    low = np.clip(least, first, high)
    changing = np.broadcast_to(decay.plateau() < 1, shape)
    worth = changing & (terms.gain > 0)
    interval = find_maximum(lambda u: income.excess_income(decay, terms, u), low, high, per_decade=32)
    at_once = (terms.check == 0) & (
        income.excess_income(decay, terms, low) >= income.excess_income(decay, terms, interval)
    )
    interval = np.where(at_once, 0.0, interval)
    value = np.where(worth, income.excess_income(decay, terms, np.where(at_once, low, interval)), 0.0)
    freshness = decay.integral(low + interval) / (low + interval)

    def earned_per_cost(u: Float64s) -> Float64s:
        paid = terms.check + terms.update * income.change_probability(decay, u)
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
    root = find_crossing(partial(income.cost_to_gain, decay, terms), low, high)
    falling = (income.change_probability(decay, root) - income.turning_term(decay, root)) / root
    value = terms.gain * decay.survival(root) - terms.update * falling
    crosses = worth & (income.cost_to_gain(decay, terms, high) < 1)
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

    def cheaper_later(u: Float64s) -> Float64s:
        """(K+U(1−z))/(U·η·Z): above 1 where (K+U(1−z))/Z falls with u."""
        hazard = np.asarray(decay.shape) * income.weibull_power(decay, u) / u
        paid = terms.check + terms.update * income.change_probability(decay, u)
        return income.ratio_of(paid, terms.update * hazard * decay.integral(u))

    u = find_crossing(cheaper_later, low, high)
    inner = (terms.check + terms.update * income.change_probability(decay, u)) / decay.integral(u)
    return np.where(falls_due & (late < np.inf), np.minimum(inner, late), late)
