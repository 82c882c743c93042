"""Change points: sharp changes in a history of estimated rates, and the periods between them.

λ̂_i is a sharp change when |λ̂_i − λ̂_{i−1}| > k·mean(λ̂), k between 0.1 and 0.3; between two of them lies one
period T_λ. Estimate early in a period, use the estimate for the rest of it. Zhang et al. 2007, §3, step 3.

Estimates from few polls jump by chance far beyond 30 %. Given their standard errors, only jumps of more than
twice their own error count, so that noise makes no periods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s, Ints, as_floats, nonnegative
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class ChangePoints:
    """Where a history of rates changed sharply.

    ``marks``   positions of the sharp changes in the history.
    ``periods`` T_λ, the times between one mark and the next.
    ``period``  their median: how long an estimate holds; infinite while fewer than two marks are known.
    ``rate``    mean of the estimates since the last mark: the rate to use now.
    ``until``   when the present period is expected to end: time to estimate again.
    """

    marks: Ints
    periods: Float64s
    period: float
    rate: float
    until: float


def change_points(
    times: ArrayLike, rates: ArrayLike, k: float = 0.2, *, errors: ArrayLike = 0.0
) -> ChangePoints:
    """The sharp changes in estimates ``rates`` made at ``times`` (in order), and what follows from them.

    ``errors`` are the standard errors of the estimates, one or one for each; 0 is the paper's rule.

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
