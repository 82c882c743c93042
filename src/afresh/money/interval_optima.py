"""Find the best interval u between refreshes for each decay z(t): by a formula, piece by piece, or by search.

With the terms G (gain), K (cost of a refresh), U (its additional cost if it finds a change) of
``afresh.money.terms``, the excess of net income over never refreshing is

    E(u) = (G·Z(u) − K − U·(1−z(u))) / u,    Z(u) = ∫₀ᵘ z    (Razniewski 2016, §5 and §7).

Exponential decay of rate λ. An update cost only lowers the gain to G−λU. E'(u) = 0 is then g(λu) = λK/(G−λU)
with g(r) = 1−(1+r)e^{−r}. So the best interval is u* = Φ(y)/λ with y = λK/(G−λU) and Φ the inverse of g. This
is branch −1 of Lambert's W in Eq. 11 of Razniewski 2016; branch 0 is u = 0. There E = (G−λU)·e^{−λu*}.

Linear decay. u* = √(2K/(λG)) and E = G(1−λu*) − λU. The update cost changes the income, not the interval.

Geometric decay, z = q^⌊t/s⌋ with q = 1−p and steps of length s. Within a step E is monotone in u, so it is
highest just before the end u = js of a step: E = (a − b·q^j)/(js) with a = Gs/p−K−U and b = Gs/p−U/q. For a
real number j this is the exponential case, with the maximum at j = Φ((b−a)/b)/(−ln q). The best whole number
j is one of its two neighbours, or 1.

Empirical decay. On a piece where z(u) = α − m·u

    E(u) = a/u + G·(α−z∞) − U·m − G·m·u/2,    a = G·ζ − K − U·(1−α),    ζ = Z(u)−α·u+m·u²/2 (constant)

so E is highest at u = √(−2a/(G·m)), limited to the piece. If m = 0, it is highest at the end if a < 0. Where
z jumps down, E is highest just before the jump, because a refresh there finds a change less often and pays
the update cost less often. So the end of a piece is evaluated with z from the left.

Other decays are solved by search: Weibull, gamma and Lomax by the root of H of ``money.excess_income`` (E
rises while H < 0), any other decay by a search for the highest E. How often H changes its sign follows from

    H'(u) = −u·(G·z' + U·z'') = u·z·(G·η − U·(η² − η')),    η = −z'/z, the hazard.

- U = 0: H' ≥ 0 for every z that never rises, so that there is at most one optimum for any decay.
- Lomax, η = a/(b+t): H' has the sign of G − U(a+1)/(b+u), which rises with u. H may fall at first and then
  rises, so starting at −K it crosses 0 at most once, upwards.
- Weibull with shape k ≤ 1: H' has the sign of G − U(η + (1−k)/u), which rises with u. The same follows.
- Weibull with k > 1 and U > 0: that expression now falls with u. H rises to a peak and then falls, so the
  optimum is the root before the peak. After a second root E rises again towards 0, its value for never
  refreshing, which is better if E is below 0 at the first root.
- Gamma with shape k and x = kλu: H' has the sign of G + U·((k−1)/u − kλ). For k ≤ 1 this rises with u, and
  for k > 1 it falls, to 0 at u = U(k−1)/(Ukλ − G) if G < Ukλ. The same follows as for Weibull.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from afresh.model.curves import freshness_curve, phi
from afresh.model.decay import Decay, Empirical, GammaDecay, Lomax, Weibull
from afresh.model.roots import HUGE, find_crossing, find_maximum
from afresh.money import excess_income as income
from afresh.money.terms import IncomeTerms, IntervalOptimum, just_before, make_optimum
from afresh.values.arrays import Bools, Float64s


def exponential_optimum(rate: Float64s, terms: IncomeTerms) -> IntervalOptimum:
    """Return the best interval for z = e^{−λt}: Φ(λK/(G−λU))/λ, with G, K and U of ``IncomeTerms``.
    Razniewski 2016, Example 4, 25-year-olds: every 3.38 years, for a net income of 0.21.

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
    """Return the best interval for z = max(1−λt, 0): √(2K/(λG)), with G and K of ``IncomeTerms``.
    The threshold is the gain G that solves G = √(2λKG) + λU. Razniewski 2016, §2, Dr. Smith's address:

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> best = linear_optimum(np.array([0.1]), IncomeTerms(one, none, one, none))
    >>> best.interval.round(1), (10 * best.excess).round(1), best.threshold
    (array([4.5]), array([5.5]), array([0.2]))
    """
    worth = (rate > 0) & (terms.gain > 0)
    # √a·√b instead of √(ab), because the product of two extreme numbers may underflow.
    scaled = np.divide(2 * terms.check, terms.gain, out=np.zeros_like(rate), where=worth)
    aged = np.sqrt(rate) * np.sqrt(scaled)
    interval = np.divide(aged, rate, out=np.full_like(rate, np.inf), where=worth)
    left = np.subtract(1.0, aged, out=np.zeros_like(rate), where=worth)
    excess = np.where(worth, terms.gain * left - rate * terms.update, 0.0)
    both = terms.check + terms.update + np.sqrt(terms.check) * np.sqrt(terms.check + 2 * terms.update)
    threshold = np.where(rate > 0, rate * both, np.inf)
    return make_optimum(interval, excess, 0.5 + 0.5 * left, threshold, np.where(rate > 0, 0.0, 1.0))


def geometric_optimum(probability: Float64s, step: Float64s, terms: IncomeTerms) -> IntervalOptimum:
    """Return the best interval for z = (1−p)^⌊t/s⌋: whole steps of length s or, with update costs, just less.
    The threshold is the least (K + U(1−q^{j−1}))·p/(s(1−q^j)) over whole numbers j of steps, with q = 1−p and
    K, U of ``IncomeTerms``. It is reached at j = 1 or ∞.

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
    """Return the whole number of steps at or below the best real number of steps, at least 1."""
    # The best real number is Φ((b−a)/b)/(−ln q), with the symbols of the module's docstring.
    certain, never = probability >= 1, probability <= 0
    odds = np.divide(probability, 1 - probability, out=np.zeros_like(probability), where=~certain)
    slope = probability * (terms.check - terms.update * odds)
    base = terms.gain * step - terms.update * odds
    inside = (slope > 0) & (slope < base) & ~certain & ~never
    price = np.divide(slope, base, out=np.zeros_like(base), where=inside)
    real = phi(price) / np.where(never, 1.0, _hazard(probability))
    return np.maximum(np.floor(real), 1.0)


def _excess_after(steps: Float64s, probability: Float64s, step: Float64s, terms: IncomeTerms) -> Float64s:
    """Return the excess income E of refreshes just before the end of ``steps`` steps."""
    lost = -np.expm1(-_hazard(probability) * (steps - 1))
    earned = terms.gain * step * _right_steps(steps, probability)
    return np.asarray((earned - terms.check - terms.update * lost) / (steps * step))


def _right_steps(steps: Float64s, probability: Float64s) -> Float64s:
    """Return the expected number of steps, of the first ``steps``, in which the copy is correct."""
    lost = -np.expm1(-_hazard(probability) * steps)
    return np.divide(lost, probability, out=np.array(steps), where=probability > 0)


def _hazard(probability: Float64s) -> Float64s:
    """Return −ln(1−p) for a probability p, or 800 if p = 1 (e^{−800} is 0 in double precision)."""
    hazard = np.full_like(probability, -800.0)
    return -np.log1p(-probability, out=hazard, where=probability < 1)


_BLOCK = 1 << 20  # items times pieces that are processed at once


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The pieces of an empirical decay: z(u) = level − fall·u from start to end; ``plateau`` is z(∞).
    ``offset`` is ζ of the module's docstring. The last piece, where z is constant for ever, is left out."""

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
    """Return the best interval for a decay that is given by points.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> certain_until_2 = Empirical([2.0], [0.0])
    >>> empirical_optimum(certain_until_2, IncomeTerms(one, none, one, none)).interval
    array([2.])
    """
    pieces = _Pieces.of(decay)
    found = np.zeros((3, terms.gain.size))  # interval, excess, threshold
    if pieces.start.size == 0:  # z is constant, so refreshing gains nothing
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
    """Return a tuple (best interval, its excess income) of each item, the best over all pieces."""
    # Items are rows of the arrays, pieces are columns.
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
    """Return the gain up to which no refresh interval pays: the least cost per use over all intervals u.

    The cost per use is (K+U(1−z(u)))/(Z(u)−u·z∞): K is the cost of a refresh, U that of a change found, z the
    decay, Z its integral and z∞ its limit. The least is at the end of a piece of z or where the slope is 0.
    On a piece the ratio is (p+q·u)/(ζ+b·u−c·u²), whose slope is 0 where q·c·u² + 2·p·c·u + q·ζ − p·b = 0.
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
    # If a refresh costs nothing (K = 0), the least may be at u → 0, where it is U times the hazard.
    at_once = terms.update * (pieces.fall[0] / max(b[0], np.finfo(np.float64).tiny))
    free = (terms.check == 0) & (pieces.level[0] >= 1)
    return np.where(free, np.minimum(least, at_once), least)


_AT_ONCE = 1e-30  # an interval below this share of the decay's time scale counts as 0
_ALL_CHANGED = 745.0  # e^{−745} is the smallest power above 0 in double precision
_GAMMA_CHANGED = 600.0  # Q(k, 600) is below 1e−130 and above 1e−300 for all shapes k that are allowed


def weibull_optimum(decay: Weibull, terms: IncomeTerms) -> IntervalOptimum:
    """Return the best interval for Weibull decay, z = e^{−(λt)^k} with the rate λ and the shape k.

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
            """Return (G·u + U·(k−1))/(U·k·(λu)^k), which is above 1 where H rises."""
            power = np.minimum(u / scale, _ALL_CHANGED) ** k
            return income.ratio_of(terms.gain * u + terms.update * (k - 1), terms.update * k * power)

        peak = find_crossing(rises, low, high)
    found = _crossing(decay, terms, low, np.where(falls_due, peak, high), rate > 0)
    threshold = _rising_hazard_threshold(decay, terms, low, high, falls_due)
    return make_optimum(*found, threshold, np.where(rate > 0, 0.0, 1.0))


def gamma_optimum(decay: GammaDecay, terms: IncomeTerms) -> IntervalOptimum:
    """Return the best interval for gamma decay, z = Q(k, kλt) with the rate λ and the shape k.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> gamma_optimum(GammaDecay(0.457, 1.0), IncomeTerms(one, none, one, none)).interval.round(2)
    array([3.38])
    """
    rate, shape = (np.broadcast_to(np.asarray(x), terms.gain.shape) for x in (decay.rate, decay.shape))
    scale = 1 / np.where(rate > 0, rate * shape, 1.0)
    low, high = _AT_ONCE * scale, np.minimum(_GAMMA_CHANGED * scale, HUGE)
    falls_due = (shape > 1) & (terms.update > 0)
    over = np.where(falls_due, terms.update / scale - terms.gain, 0.0)
    peak = np.divide(terms.update * (shape - 1), over, out=high.copy(), where=over > 0)
    found = _crossing(decay, terms, low, np.clip(peak, low, high), rate > 0)
    threshold = _rising_hazard_threshold(decay, terms, low, high, falls_due)
    return make_optimum(*found, threshold, np.where(rate > 0, 0.0, 1.0))


def lomax_optimum(decay: Lomax, terms: IncomeTerms) -> IntervalOptimum:
    """Return the best interval for Lomax decay, z = (1+t/b)^{−a}; for a ≤ 1 some interval always pays.

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
    """Return the interval with the highest excess income E for any decay, from its survival and integral.
    A scan with 32 points for each factor of 10 finds the highest maximum if E has several. The income is
    accurate to the last digits, the interval to about eight digits unless E is very flat.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> any_optimum(Lomax(2.0, 10.0), IncomeTerms(one, none, one, none)).interval.round(2)
    array([4.62])
    """
    shape = terms.gain.shape
    first, high = income.time_range(decay, terms.gain.size)
    # An interval below K/G cannot pay: a refresh must earn its cost, G·Z(u) > K, and Z(u) ≤ u.
    least = np.divide(terms.check, terms.gain, out=np.zeros_like(first), where=terms.gain > 0)
    low = np.clip(least, first, high)
    changing = np.broadcast_to(decay.plateau() < 1, shape)
    worth = changing & (terms.gain > 0)
    interval = find_maximum(lambda u: income.excess_income(decay, terms, u), low, high, per_decade=32)
    at_once = (terms.check == 0) & (
        income.excess_income(decay, terms, low) >= income.excess_income(decay, terms, interval)
    )
    evaluated = np.where(at_once, low, interval)
    value = np.where(worth, income.excess_income(decay, terms, evaluated), 0.0)
    freshness = decay.integral(evaluated) / evaluated
    interval = np.where(at_once, 0.0, interval)

    def earned_per_cost(u: Float64s) -> Float64s:
        paid = terms.check + terms.update * income.change_probability(decay, u)
        earned = decay.integral(u) - u * decay.plateau()
        return np.divide(earned, paid, out=np.full_like(paid, np.inf), where=paid > 0)

    dearest = earned_per_cost(find_maximum(earned_per_cost, first, high, per_decade=32))
    threshold = np.divide(1.0, dearest, out=np.full_like(dearest, np.inf), where=dearest > 0)
    threshold = np.minimum(threshold, _late_threshold(decay, terms, decay.plateau() == 0))
    return make_optimum(interval, value, freshness, np.where(changing, threshold, np.inf), decay.plateau())


def _crossing(
    decay: Weibull | GammaDecay | Lomax, terms: IncomeTerms, low: Float64s, high: Float64s, changing: Bools
) -> tuple[Float64s, Float64s, Float64s]:
    """Return a tuple (interval, excess income, freshness) at the root of H between ``low`` and ``high``.
    H is explained in ``excess_income``. The excess is 0 if H does not rise through 0. At the root it is
    G·z − U·(−z'), which is accurate where its definition (G·Z − K − …)/u loses digits."""
    worth = (terms.gain > 0) & changing
    # A refresh must earn its cost, G·Z(u) > K, and Z(u) ≤ u.
    least = np.divide(terms.check, terms.gain, out=np.zeros_like(low), where=worth)
    low = np.minimum(np.maximum(low, least), high)
    root = find_crossing(partial(income.cost_to_gain, decay, terms), low, high)
    falling = (income.change_probability(decay, root) - income.turning_term(decay, root)) / root
    value = terms.gain * decay.survival(root) - terms.update * falling
    crosses = worth & (income.cost_to_gain(decay, terms, high) < 1)
    interval = np.where((terms.check == 0) & (root <= low), 0.0, root)
    return interval, np.where(crosses, value, 0.0), decay.integral(root) / root


def _late_threshold(decay: Decay, terms: IncomeTerms, changing: Bools) -> Float64s:
    """Return (K+U)/∫₀^∞ z, the gain from which very long intervals pay, for items with z(∞) = 0."""
    total = np.where(changing, decay.total(), 1.0)
    return np.where(changing, (terms.check + terms.update) / total, np.inf)


def _rising_hazard_threshold(
    decay: Weibull | GammaDecay, terms: IncomeTerms, low: Float64s, high: Float64s, falls_due: Bools
) -> Float64s:
    """Return the gain up to which no interval pays: the least (K+U(1−z(u)))/Z(u) over all u.
    The slope of this ratio has the sign of U(ηZ+z−1) − K, whose own slope is U·η'·Z, with the hazard η. So
    for shapes k ≤ 1 the ratio always falls, and its limit is the least; for k > 1 it has one minimum."""
    late = _late_threshold(decay, terms, np.asarray(decay.rate) > 0)
    if not falls_due.any():
        return late

    def cheaper_later(u: Float64s) -> Float64s:
        """Return (K+U(1−z))/(U·η·Z), which is above 1 where (K+U(1−z))/Z falls as u grows."""
        paid = terms.check + terms.update * income.change_probability(decay, u)
        return income.ratio_of(paid, terms.update * _hazard_at(decay, u) * decay.integral(u))

    u = find_crossing(cheaper_later, low, high)
    inner = (terms.check + terms.update * income.change_probability(decay, u)) / decay.integral(u)
    return np.where(falls_due & (late < np.inf), np.minimum(inner, late), late)


def _hazard_at(decay: Weibull | GammaDecay, u: Float64s) -> Float64s:
    """Return η(u) = −z'(u)/z(u), the rate of changes at the time u of a copy that is still correct."""
    if isinstance(decay, Weibull):
        return np.asarray(np.asarray(decay.shape) * income.weibull_power(decay, u) / u)
    return np.asarray(decay.fall(u) / u / np.maximum(decay.survival(u), 1e-300))
