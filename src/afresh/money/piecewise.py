"""The best interval under an empirical decay of steps or straight lines, solved piece by piece.

On a piece where z(u) = α − m·u the excess of net income is

    E(u) = a/u + G·(α−z∞) − U·m − G·m·u/2,    a = G·ζ − K − U·(1−α),    ζ = Z(u)−α·u+m·u²/2 (constant)

so its highest point there is √(−2a/(G·m)), cut to the piece; on a step (m = 0) it is the end if a < 0.
At a jump of z the end of the piece before it counts with z from the left: net income has its supremum just
before the jump, since a refresh there rarely finds a change and so rarely pays the update cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.model.decay import Empirical
from afresh.money.terms import IncomeTerms, IntervalOptimum, just_before, make_optimum
from afresh.values.arrays import Float64s

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
