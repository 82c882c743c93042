"""Estimates rates from counts: of changes found by regular polls of one item, or of changed items in cohorts.

If X of n regular polls found a change, the log family estimates r̂ = −ln((n−X+a)/(n+a)) changes per polling
interval, because a poll finds a change with probability 1−e^{−r}. The constant a keeps r̂ finite if every poll
finds a change, and removes most of the bias (Cho & Garcia-Molina use a = 0.5, Zhang a = 0.4).

A cohort is a set of items of one group that are all polled after the same time t. If k of its n items had
changed, then λ̂ = −ln(1−k/n)/t (Razniewski 2016, Example 1 and §8.2). From several cohorts j of a group, with
different times, λ̂ is the rate at which the expected number of changed items equals the observed number:

    Σ_j n_j·(1−e^{−λt_j}) = p·N,   p = K/N,  N = Σ n_j,  K = Σ k_j.

If all items changed (K = N), that rate is infinite; if none did, it is 0. Neither can be used in a plan, so p
is computed as if half an item more had been observed with the opposite result: N/(N+½) or ½/(N+½). For one
cohort the first gives ln(2n+1)/t, the log family with a = 0.5; the second gives about 1/(2nt). The confidence
bounds are Clopper–Pearson bounds on p, put into the same equation. They are exact if all times t_j are equal.
Otherwise they are too wide rather than too narrow, because a sum of events of unequal probabilities has a
smaller variance than the binomial (Hoeffding 1956).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from afresh.model.roots import find_crossing
from afresh.values.arrays import ArrayLike, Bools, Float64s, Floats, Ints, as_floats, like_inputs
from afresh.values.errors import InputError


def log_ratio(changes: Float64s | Ints, polls: Float64s | Ints, a: float | Float64s) -> Float64s:
    """Return r̂ = −ln((n−X+a)/(n+a)), the changes per polling interval, if X of n polls found a change.

    >>> log_ratio(np.array([0.0, 7.0]), np.array([7.0, 7.0]), 0.4).round(4).tolist()
    [0.0, 2.9178]
    """
    return np.asarray(-np.log1p(-changes / (polls + a)))


def ratio_estimate(polls: ArrayLike, changes: ArrayLike, a: float = 0.5) -> Any:
    """Return r̂ = −ln((n−X+a)/(n+a)), the changes per polling interval, after checking the arguments.
    X (``changes``) of n (``polls``) found a change. At f polls per unit of time the rate is λ̂ = r̂·f. If every
    poll found a change, r̂ is finite, except with a = 0, the maximum-likelihood estimate.

    >>> round(ratio_estimate(7, 7, a=0.4), 2), ratio_estimate(7, 7, a=0)
    (2.92, inf)
    """
    n, x = _counts(polls, changes)
    if not 0 <= a < math.inf:
        raise InputError(f"a is {a}: must be 0 or more, and finite")
    with np.errstate(divide="ignore"):
        return like_inputs(log_ratio(x.astype(np.float64), n.astype(np.float64), a), n, x)


ADAPTED = ((0.5, 0.7), (0.9, 0.4), (2.0, 0.3), (2.7, 0.25), (3.0, 0.2), (3.3, 0.15))
"""Zhang et al. 2007, Table 2: the a of the log family (second) from this r̂ (first) on, for seven polls."""


def adapted_a(changes: Float64s, polls: Float64s) -> Float64s:
    """Return the a that suits each item best: that of Table 2 for its r̂ with a = 0.4. Below r̂ = 0.5 it is
    1/(e^{1/n}−1) − (n−1), for which r̂ has no bias at small r (§2.2). It needs one poll at least.

    >>> adapted_a(np.array([1.0, 4.0, 5.0, 7.0]), np.full(4, 7.0)).round(3).tolist()
    [0.512, 0.7, 0.4, 0.25]
    """
    ratio = log_ratio(changes, polls, 0.4)
    least, n = np.searchsorted([low for low, _ in ADAPTED], ratio, side="right"), polls
    few = 1 / np.expm1(1 / np.minimum(n, 1e5)) - (np.minimum(n, 1e5) - 1)
    return np.where(least == 0, few, np.array([0.0, *(a for _, a in ADAPTED)])[least])


def ratio_interval(polls: ArrayLike, changes: ArrayLike, level: float = 0.9) -> tuple[Any, Any]:
    """Return a tuple (low, high) of Clopper–Pearson bounds on r, the changes per polling interval.
    They contain the true r = −ln(1−p) with probability ≥ ``level``, where p is the probability that a poll
    finds a change. ``low`` is 0 if no poll found a change, ``high`` is infinite if every poll did.

    >>> low, high = ratio_interval(7, 7)
    >>> round(low, 3), high
    (1.055, inf)
    """
    from scipy.special import betaincinv

    n, x = _counts(polls, changes)
    tail = (1 - check_level(level)) / 2
    n64, x64 = np.broadcast_arrays(n.astype(np.float64), x.astype(np.float64))
    low, p = change_probability_interval(x64, n64, level)
    # r is computed from q = 1−p where p is close to 1 and from p where p is close to 0, for accuracy.
    q = betaincinv(np.maximum(n64 - x64, 1), x64 + 1, tail)
    high = np.where(q < 0.5, -np.log(q), -np.log1p(-np.minimum(p, 0.5)))
    return like_inputs(-np.log1p(-low), n, x), like_inputs(np.where(x64 == n64, np.inf, high), n, x)


def _counts(polls: ArrayLike, changes: ArrayLike) -> tuple[Floats, Floats]:
    n, x = as_floats("polls", polls), as_floats("changes", changes)
    if not (np.all(n >= 1) and np.all((x >= 0) & (x <= n)) and np.all(np.isfinite(n))):
        raise InputError("changes must lie between 0 and the number of polls, and polls be 1 or more")
    return n, x


def change_probability_interval(
    changes: Float64s, polls: Float64s, level: float
) -> tuple[Float64s, Float64s]:
    """Return the Clopper–Pearson confidence interval of the probability that a poll finds a change.
    It is a tuple (low, high) of arrays. ``level`` is the probability that it contains the true value.

    >>> low, high = change_probability_interval(np.array([0.0]), np.array([3.0]), 0.9)
    >>> low.tolist(), bool(np.isclose(high[0], 1 - 0.05 ** (1 / 3)))
    ([0.0], True)
    """
    from scipy.special import betaincinv

    tail = (1.0 - check_level(level)) / 2.0
    low = np.where(changes > 0, betaincinv(np.maximum(changes, 0.5), polls - changes + 1.0, tail), 0.0)
    missed = np.maximum(polls - changes, 0.5)
    high = np.where(changes < polls, betaincinv(changes + 1.0, missed, 1.0 - tail), 1.0)
    return low, high


def check_level(level: float) -> float:
    """Return ``level``; raise ``InputError`` unless it is a probability strictly between 0 and 1.

    >>> check_level(0.9)
    0.9
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}: must be above 0 and below 1, such as 0.9")
    return level


@dataclass(frozen=True, slots=True)
class CohortRates:
    """The estimated rate of every group with its confidence bounds, in the order of the groups' first rows.
    ``n`` and ``changed`` are the items of each group and how many of them had changed. ``one_sided`` marks
    groups in which all items or none changed; half an item is added to estimate these."""

    groups: tuple[Hashable, ...]
    rate: Float64s
    low: Float64s
    high: Float64s
    n: Ints
    changed: Ints
    one_sided: Bools

    @property
    def half_life(self) -> Float64s:
        """The time after which half of a group's items have changed, ln 2/rate; infinite for a rate of 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(2) / self.rate)


def cohort_rates(
    group: Sequence[Any], elapsed: ArrayLike, n: ArrayLike, changed: ArrayLike, level: float = 0.9
) -> CohortRates:
    """Estimate the rates of groups from cohorts: ``changed`` of ``n`` items had changed after ``elapsed``.
    All arguments have one entry per cohort; ``group`` is the group that the cohort belongs to. The
    caller has checked that times are above 0, ``n`` is 1 or more, and ``changed`` is from 0 to ``n``.

    Razniewski 2016, Table 3: of 10 students, 8 academic researchers, 13 industrial researchers and
    19 professors, 10, 5, 3 and 2 respectively had moved five years later.

    >>> who = ["student", "academic", "industry", "professor"]
    >>> found = cohort_rates(who, [5] * 4, [10, 8, 13, 19], [10, 5, 3, 2])
    >>> found.rate.round(3).tolist(), found.high.round(2).tolist()
    ([0.609, 0.196, 0.052, 0.022], [inf, 0.44, 0.14, 0.07])
    """
    number: dict[Hashable, int] = {}
    which = np.asarray([number.setdefault(name, len(number)) for name in group], np.int64)
    order = np.argsort(which, kind="stable")
    first = np.searchsorted(which[order], np.arange(len(number)))
    span, size, gone = (np.asarray(column, dtype=np.float64)[order] for column in (elapsed, n, changed))
    total, seen = (np.add.reduceat(column, first) if column.size else column for column in (size, gone))
    one_sided = (seen == 0) | (seen == total)
    share = np.where(seen == 0, 0.5, seen) / np.where(one_sided, total + 0.5, total)
    ratios, weight = (-np.log1p(-share), *ratio_interval(total, seen, level)), size / total[which[order]]
    rate, low, high = (_solve_rates(ratio, span, weight, first) for ratio in ratios)
    counts = total.astype(np.int64), seen.astype(np.int64)
    return CohortRates(tuple(number), rate, low, high, *counts, one_sided)


def _solve_rates(r: Float64s, span: Float64s, share: Float64s, first: npt.NDArray[np.intp]) -> Float64s:
    """Return the rate λ of each group that solves Σ share_j·e^{−λt_j} = e^{−r} over its cohorts j.
    ``share`` is the cohort's share of the group's items, ``span`` its time t_j. The cohorts of a group start
    at ``first``. The root is between r/t_max and r/t_min. r = 0 and r = ∞ are returned unchanged."""
    if r.size == 0:
        return r
    solvable = (r > 0) & np.isfinite(r)
    inside, counts = np.where(solvable, r, 1.0), np.diff(first, append=span.size)

    def mean_chance(rate: Float64s) -> Float64s:
        return -np.add.reduceat(share * np.expm1(-np.repeat(rate, counts) * span), first)

    found = find_crossing(
        lambda rate: np.asarray(-np.expm1(-inside) / mean_chance(rate)),
        inside / np.maximum.reduceat(span, first),
        inside / np.minimum.reduceat(span, first),
    )
    return np.where(solvable, found, r)
