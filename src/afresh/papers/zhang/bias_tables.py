"""Zhang, Tang, Yang & Li 2007: Tables 1 and 2 and the numbers in §2 and §3, computed exactly.

n regular polls at frequency f find X changes of an item with rate λ = r·f, so X is binomial with p =
1−e^{−r}. The log family of estimators of r is r̂ = −ln((n−X+a)/(n+a)) with a parameter a (§2.2 and §3; Cho &
Garcia-Molina 2003 for a = 0.5). Their bias and spread are finite sums over the binomial distribution, so that
no simulation or series expansion is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count

import numpy as np

from afresh.model.roots import find_crossing
from afresh.papers.report import Check, Correction, Section, row_checks
from afresh.rates.log_ratio import ADAPTED, ratio_estimate
from afresh.values.arrays import ArrayLike, Float64s

_POINTS = 401  # of a range of r at which bias and spread are computed
_LARGEST_BIAS, _WIDEST = 0.05, 0.6  # what the paper asks of |bias| and of σ/r
# Zhang 2007, Table 2, for n = 7: the lower and upper end of a range of r, and the a for this range.
RANGES_OF_SEVEN = tuple(
    (low, high, a) for (low, a), high in zip(ADAPTED, (*(low for low, _ in ADAPTED[1:]), 3.7), strict=True)
)


def expectation(r: ArrayLike, polls: int, a: float = 0.5) -> Float64s:
    """Return the expectation of the estimate r̂ = −ln((n−X+a)/(n+a)) from n = ``polls`` polls.
    X of the polls find a change; ``r`` is the true number of changes per polling interval. Zhang 2007, Table
    1, r = 1, n = 3: E[r̂]/r is 0.9515 for a = 0.5 and 1.0212 for a = 0.4.

    >>> float(expectation(1.0, 3, 0.5).round(4)), float(expectation(1.0, 3, 0.4).round(4))
    (0.9515, 1.0212)
    """
    ratio = np.asarray(r, dtype=np.float64)
    chances, values = _distribution(ratio, polls, a)
    return np.where(ratio > 0, chances @ values, 0.0)


def bias(r: ArrayLike, polls: int, a: float = 0.5) -> Float64s:
    """Return the relative bias E[r̂]/r − 1 of the estimate r̂ from n = ``polls`` polls.
    At r = 0 it is the limit n·ln((n+a)/(n−1+a)) − 1 (c₁ in the paper).

    >>> float(bias(2.0, 3, 0.4).round(4))
    -0.1653
    """
    ratio = np.asarray(r, dtype=np.float64)
    chances, values = _distribution(ratio, polls, a)
    at_zero = polls * math.log1p(1 / (polls - 1 + a))
    quotient = np.divide(chances @ values, ratio, out=np.full(ratio.shape, at_zero), where=ratio > 0)
    return np.asarray(quotient - 1)


def spread(r: ArrayLike, polls: int, a: float = 0.5) -> Float64s:
    """Return σ/r, the standard deviation of the estimate r̂ relative to r; it grows like 1/√r towards r = 0.
    The paper writes σ²/r, but its bound of 60 % holds for σ/r.

    >>> float(spread(1.0, 7, 0.4).round(3))
    0.558
    """
    ratio = np.asarray(r, dtype=np.float64)
    chances, values = _distribution(ratio, polls, a)
    mean = chances @ values
    variance = np.sum(chances * (values - mean[..., None]) ** 2, axis=-1)
    quotient = np.divide(np.sqrt(variance), ratio, out=np.full(ratio.shape, np.inf), where=ratio > 0)
    return np.asarray(quotient)


def exact_a(polls: int) -> float:
    """Return the parameter a for which the estimate r̂ has no bias at small r (Zhang 2007, §2.2).
    For n = ``polls`` it is (n−(n−1)e^{1/n})/(e^{1/n}−1) = 1/(e^{1/n}−1) − (n−1), and falls to 1/2 as n grows.
    From n = 8 on the Bernoulli series is used, because the difference of two large numbers loses digits.

    >>> round(exact_a(1), 6), round(exact_a(7), 6), round(exact_a(10**6), 9)
    (0.581977, 0.511901, 0.500000083)
    """
    if polls < 8:
        return 1 / math.expm1(1 / polls) - (polls - 1)
    x = 1 / polls
    return 0.5 + x * (1 / 12 - x**2 * (1 / 720 - x**2 * (1 / 30240 - x**2 * (1 / 1209600 - x**2 / 47900160))))


def polls_needed(low: float, high: float) -> int:
    """Return the least number of polls with which a = 0.4 has a bias below 5 % for every r in [low, high].
    r is the number of changes per polling interval. Zhang 2007, §3 states 3, 7 and 35 polls for r up to 1, 2
    and 4. The exact numbers are 5, 6 and 35: with 3 polls r̂ is 6.4 % too high at r = 0.44.

    >>> polls_needed(0, 1), polls_needed(1, 2), polls_needed(2, 4)
    (5, 6, 35)
    """
    ratios = np.linspace(low, high, _POINTS)
    return next(polls for polls in count(1) if np.max(np.abs(bias(ratios, polls, 0.4))) < _LARGEST_BIAS)


def suitable_a(low: float, high: float) -> tuple[float, float]:
    """Return a tuple (least, largest) of the parameters a in (0, 1] that suit all r in [low, high].

    Suitable means |bias| < 5 % and σ/r < 60 % for n = 7. At every r, the expectation and the spread of r̂
    fall as a grows. So the largest bias, the smallest bias and the spread each reach their limit at one a.
    If no a is suitable, ``least`` exceeds ``largest``. Zhang 2007, Table 2 has 0.7 for r from 0.5 to 0.9:

    >>> low, high = suitable_a(0.5, 0.9)
    >>> round(low, 2), round(high, 2)
    (0.68, 0.71)
    """
    ratios = np.linspace(low, high, _POINTS)
    too_high = _falling_root(lambda a: float(np.max(bias(ratios, 7, a))) - _LARGEST_BIAS)
    too_wide = _falling_root(lambda a: float(np.max(spread(ratios, 7, a))) - _WIDEST)
    return max(too_high, too_wide), _falling_root(lambda a: float(np.min(bias(ratios, 7, a))) + _LARGEST_BIAS)


def _falling_root(function: Callable[[float], float]) -> float:
    """Return the a from 0 to 1 at which a falling function is 0; if there is none, the end nearer to 0."""
    ends = np.array([1e-9]), np.array([1.0])
    found = find_crossing(lambda a: np.array([math.exp(function(float(a[0])))]), *ends)
    return float(found[0])


def _distribution(ratio: Float64s, polls: int, a: float) -> tuple[Float64s, Float64s]:
    """Return a tuple (probabilities of X = 0…n for each r; estimate for each X); X is the last axis."""
    x = np.arange(polls + 1.0)
    # ln C(n, x) by a running sum, which has an error of about n·1e−16 and needs no gamma function.
    log_choose = np.concatenate(([0.0], np.cumsum(np.log((polls - x[1:] + 1) / x[1:]))))
    # At r = 0 the probability of a change is 0, whose logarithm is infinite. A tiny r gives P(X = 0) = 1 too.
    log_p = np.log(-np.expm1(-np.maximum(ratio, 1e-300)))
    chances = np.exp(log_choose + x * log_p[..., None] - (polls - x) * ratio[..., None])
    return chances, -np.log1p(-x / (polls + a))


_RATIOS = (0.1, 0.5, 1.0, 1.5, 1.8, 2.0)
_TABLE_1 = {
    0.5: "1.0115 1.0067 0.9515 0.8625 0.8041 0.7656",
    0.4: "1.0507 1.0631 1.0212 0.9349 0.8750 0.8347",
}


def section_2() -> Section:
    some = ", ".join(f"{exact_a(n):.4f} for n = {n}" for n in (1, 3, 7, 35))
    return Section.of(
        "§2.2: the a for which r̂ has no bias at small r",
        Check("a as n grows without bound", "0.5", exact_a(10**9)),
        note=f"a(n) = (n − (n−1)e^(1/n))/(e^(1/n) − 1): {some}.",
    )


def table_1() -> Section:
    checks = (
        check
        for a, printed in _TABLE_1.items()
        for check in row_checks(
            f"a = {a:g}, r = {{:g}}", _RATIOS, printed, expectation(_RATIOS, 3, a) / _RATIOS
        )
    )
    return Section.of("Table 1: E[r̂]/r for n = 3", *checks)


def polls_for_small_bias() -> Section:
    too_few = Correction("5", f"with 3 polls r̂ is {100 * bias(0.44, 3, 0.4):.1f} % too high at r = 0.44")
    enough = Correction("6", "six polls already keep it below 5 %")
    return Section.of(
        "§3: polls that keep the bias below 5 % with a = 0.4",
        Check("r up to 1", "3", polls_needed(0, 1), "polls", too_few),
        Check("r from 1 to 2", "7", polls_needed(1, 2), "polls", enough),
        Check("r from 2 to 4", "35", polls_needed(2, 4), "polls"),
        Check("r̂ if all of 7 polls find a change", "2.92", ratio_estimate(7, 7, 0.4)),
    )


def table_2() -> Section:
    """Return the checks of the bias and spread of each printed a, at both ends of its range of r."""
    checks = []
    for low, high, a in RANGES_OF_SEVEN:
        for r in (low, high):
            name = f"a = {a:g}, r = {r:g}"
            checks.append(Check(f"{name}: |bias|", "< 5", 100 * abs(float(bias(r, 7, a))), "%"))
            checks.append(Check(f"{name}: σ/r", "< 60", 100 * float(spread(r, 7, a)), "%"))
    found = [(low, high, *suitable_a(low, high)) for low, high, _ in RANGES_OF_SEVEN]
    kept = "; ".join(f"r {low:g}–{high:g}: a {least:.3f}–{most:.3f}" for low, high, least, most in found)
    return Section.of(
        "Table 2: the best a for n = 7",
        *checks,
        note="The paper writes σ²/r for the spread, but its bound of 60 % is for σ/r. Both bounds hold "
        f"in the whole range for {kept}. Every printed a is in its interval.",
    )
