"""Best intervals in closed form: exponential, linear and geometric decay (Razniewski 2016, §5 and §7).

With the terms G, K, U of ``afresh.money.terms``, the excess of net income over never refreshing is

    E(u) = (G·Z(u) − K − U·(1−z(u))) / u,    Z(u) = ∫₀ᵘ z.

Exponential. U(1−z)/u = λU·F, so an update cost only lowers the gain to G−λU, and E'(u) = 0 is
g(λu) = λK/(G−λU), g(r) = 1−(1+r)e^{−r}. Hence u* = Φ(y)/λ, y = λK/(G−λU), which is the branch −1
of Lambert's W in the paper's Eq. 11; branch 0 is u = 0. At the optimum E = (G−λU)·e^{−λu*}.

Linear. u* = √(2K/(λG)), E = G(1−λu*) − λU; the update cost changes the income, not the interval.

Geometric, z = q^⌊t/s⌋, q = 1−p. Between two steps E is monotone in u, so the supremum lies just
before a step u = js: E = (a − b·q^j)/(js) with a = Gs/p−K−U, b = Gs/p−U/q. As a function of a real j
that is the exponential case, j = Φ((b−a)/b)/(−ln q); E rises before it and falls after it, so that
the best whole number j is one of its two neighbours, or 1.
"""

from __future__ import annotations

import numpy as np

from afresh.model.curves import freshness_curve, phi
from afresh.money.terms import IncomeTerms, IntervalOptimum, just_before, make_optimum
from afresh.values.arrays import Float64s


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
