"""Change points: sharp changes in a sequence of estimates of one item's rate, and the periods between them.

There is a sharp change at estimate i if |λ̂_i − λ̂_{i−1}| > k·mean(λ̂), with k between 0.1 and 0.3. The time
between two sharp changes is one period T_λ. The rate should be estimated early in a period, and the estimate
used for the rest of it (Zhang et al. 2007, §3, step 3).

Estimates from few polls differ by far more than 30 % by chance. If standard errors are given, only
differences of more than twice their own standard error count, so that chance does not create periods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s, Ints, as_floats, nonnegative
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class ChangePoints:
    """The sharp changes in a sequence of estimated rates.

    ``marks``   positions of the sharp changes in the sequence.
    ``periods`` T_λ, the times between one sharp change and the next.
    ``period``  median of ``periods``, the time for which an estimate is valid; ∞ if ``periods`` is empty.
    ``rate``    mean of the estimates since the last sharp change, which is the rate to use now.
    ``until``   expected end of the present period, when the rate should be estimated again.
    """

    marks: Ints
    periods: Float64s
    period: float
    rate: float
    until: float


def change_points(
    times: ArrayLike, rates: ArrayLike, k: float = 0.2, *, errors: ArrayLike = 0.0
) -> ChangePoints:
    """Find the sharp changes in the estimates ``rates``, which were made at the increasing ``times``.
    ``k`` is the least sharp change as a share of the mean rate. ``errors`` are the standard errors of the
    estimates, one for all or one for each. Zhang et al. use 0.

    >>> found = change_points([0, 1, 2, 3, 4, 5], [1.0, 1.1, 3.0, 3.1, 1.0, 1.0])
    >>> found.marks.tolist(), found.period, found.rate, found.until
    ([2, 4], 2.0, 1.0, 6.0)
    """
    when = _in_order(times)
    history = np.asarray(nonnegative("rates", rates), dtype=np.float64)
    if when.ndim != 1 or when.shape != history.shape or when.size == 0:
        raise InputError(
            f"{when.size} times and {history.size} rates: give one time for each rate, at least one"
        )
    if np.ndim(errors) and np.shape(errors) != history.shape:
        raise InputError(
            f"{np.size(errors)} errors and {history.size} rates: give one error, or one for each rate"
        )
    if not 0 < k < math.inf:
        raise InputError(f"k is {k}: must be above 0; 0.1 to 0.3 is usual")
    spread = np.broadcast_to(np.asarray(nonnegative("errors", errors), dtype=np.float64), history.shape)
    jump, chance = np.abs(np.diff(history)), 2 * np.hypot(spread[1:], spread[:-1])
    marks = np.flatnonzero((jump > k * history.mean()) & (jump > chance)) + 1
    periods = np.diff(when[marks])
    period = float(np.median(periods)) if periods.size else math.inf
    since = int(marks[-1]) if marks.size else 0
    return ChangePoints(marks, periods, period, float(history[since:].mean()), float(when[since]) + period)


def _in_order(times: ArrayLike) -> Float64s:
    when = np.asarray(as_floats("times", times), dtype=np.float64)
    if not np.all(np.isfinite(when)):
        raise InputError("times must be finite numbers")
    back = np.flatnonzero(np.diff(when) <= 0)
    if back.size:
        at = int(back[0]) + 1
        raise InputError(
            f"times[{at}] is {when[at]:g}: must come after times[{at - 1}], which is {when[at - 1]:g}"
        )
    return when
