"""The changes per poll interval by the log family, r̂ = −ln((n−X+a)/(n+a)), and exact bounds on them.

1−e^{−r} is the chance that a regular poll finds a change; a keeps the answer finite when all of them do and
takes out most of the bias (Cho & Garcia-Molina a = 0.5, Zhang a = 0.4).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s, Floats, Ints, as_floats, like_inputs
from afresh.values.errors import InputError


def log_ratio(changes: Float64s | Ints, polls: Float64s | Ints, a: float) -> Float64s:
    """r̂ = −ln((n−X+a)/(n+a)), the changes per poll interval.

    >>> log_ratio(np.array([0.0, 7.0]), np.array([7.0, 7.0]), 0.4).round(4).tolist()
    [0.0, 2.9178]
    """
    return np.asarray(-np.log1p(-changes / (polls + a)))


def ratio_estimate(polls: ArrayLike, changes: ArrayLike, a: float = 0.5) -> Any:
    """r̂ = −ln((n−X+a)/(n+a)), changes per poll interval; λ̂ = r̂·f. Finite even if every poll found a change.

    a = 0 is the maximum-likelihood estimate, infinite there.

    >>> round(ratio_estimate(7, 7, a=0.4), 2), ratio_estimate(7, 7, a=0)
    (2.92, inf)
    """
    n, x = _counts(polls, changes)
    if not 0 <= a < math.inf:
        raise InputError(f"a is {a}: must be more than 0, and finite")
    with np.errstate(divide="ignore"):
        return like_inputs(log_ratio(x.astype(np.float64), n.astype(np.float64), a), n, x)


def ratio_interval(polls: ArrayLike, changes: ArrayLike, level: float = 0.9) -> tuple[Any, Any]:
    """Clopper–Pearson bounds on r = −ln(1−p): they cover the true r at least ``level`` of the time.

    Low is 0 if no poll found a change, high is infinite if every one did.

    >>> low, high = ratio_interval(7, 7)
    >>> round(low, 3), high
    (1.055, inf)
    """
    from scipy.special import betaincinv

    n, x = _counts(polls, changes)
    tail = (1 - check_level(level)) / 2
    n64, x64 = np.broadcast_arrays(n.astype(np.float64), x.astype(np.float64))
    some, rest = np.maximum(x64, 1), np.maximum(n64 - x64, 1)
    low = -np.log1p(-betaincinv(some, n64 - some + 1, tail))
    # The bound on q = 1−p keeps r accurate where p is close to 1, the one on p where it is close to 0.
    q, p = betaincinv(rest, n64 - rest + 1, tail), betaincinv(n64 - rest + 1, rest, 1 - tail)
    high = np.where(q < 0.5, -np.log(q), -np.log1p(-np.minimum(p, 0.5)))
    low, high = np.where(x64 == 0, 0.0, low), np.where(x64 == n64, np.inf, high)
    return like_inputs(low, n, x), like_inputs(high, n, x)


def _counts(polls: ArrayLike, changes: ArrayLike) -> tuple[Floats, Floats]:
    n, x = as_floats("polls", polls), as_floats("changes", changes)
    if not (np.all(n >= 1) and np.all((x >= 0) & (x <= n)) and np.all(np.isfinite(n))):
        raise InputError("changes must lie between 0 and the number of polls, and polls be 1 or more")
    return n, x


def change_probability_interval(
    changes: Float64s, polls: Float64s, level: float
) -> tuple[Float64s, Float64s]:
    """Clopper–Pearson interval of the probability that a poll finds a change: covers at least ``level``.

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
    """``level`` if it is a probability strictly between 0 and 1.

    >>> check_level(0.9)
    0.9
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}: must be above 0 and below 1, such as 0.9")
    return level
