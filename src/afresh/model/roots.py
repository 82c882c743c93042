"""Roots of many decreasing functions at once, to the last bit where need be.

Spend falls as its price rises, and so does a marginal as the frequency rises; both may also fall in jumps (an
item leaves the plan, a decay function has steps). So a root is a bracket: two points, adjacent doubles if
there is a jump between them, whose values lie on either side of the target.

The steps are secants of log value over log x, where these functions are nearly straight. A step that leaves
the bracket, or two that have not halved the miss, give way to bisection of the doubles between the ends, that
is of their bit patterns: 64 of these reach adjacent doubles from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s, Ints

TINY, HUGE = 1e-300, 1e300
JUST_ABOVE = 1 + 16 * np.finfo(np.float64).eps  # past what rounding does to a limit
_MAX_STEPS = 400
_LONGEST = 20.0  # one secant step changes x by at most e²⁰


@dataclass(frozen=True, slots=True)
class Brackets:
    """Ends with value(low) ≥ target ≥ value(high); low = high where the target was hit."""

    low: Float64s
    high: Float64s
    at_low: Float64s
    at_high: Float64s

    def share(self, target: Float64s) -> Float64s:
        """θ in [0, 1]: how far the target lies from the value at ``high`` to that at ``low``."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (target - self.at_high) / (self.at_low - self.at_high)
        return np.where(self.low == self.high, 1.0, np.clip(np.nan_to_num(share), 0.0, 1.0))


def solve_decreasing(
    values: Callable[[Float64s], Float64s],
    target: npt.ArrayLike,
    guess: npt.ArrayLike,
    *,
    low: npt.ArrayLike = TINY,
    high: npt.ArrayLike = HUGE,
    slope: float = -0.5,
    rtol: float = 1e-12,
) -> Brackets:
    """The x > 0 with ``values(x) = target > 0``, element by element.

    ``values`` sees the whole vector of x each time. At ``low`` and ``high`` the values are taken to be
    infinite and 0 unless the search comes there. ``slope`` is the first guess of dlog value/dlog x.

    >>> bracket = solve_decreasing(lambda x: 1 / x**2, [4.0, 1e-200], 1.0)
    >>> bracket.low
    array([5.e-001, 1.e+100])
    >>> step = solve_decreasing(lambda x: np.where(x < 2, 5.0, 1.0), [3.0], 1.0)
    >>> step.low < step.high, step.high - step.low < 1e-15, step.share(np.array([3.0]))
    (array([ True]), array([ True]), array([0.5]))
    """
    target = np.atleast_1d(np.asarray(target, dtype=np.float64))
    search = _Search(target, low, high, rtol)
    x = np.clip(np.broadcast_to(np.asarray(guess, dtype=np.float64), target.shape), search.low, search.high)
    # Infinite and zero values are fair: they only say on which side of the root x lies.
    with np.errstate(all="ignore"):
        steepness = np.full(target.shape, slope)
        for step in range(_MAX_STEPS):
            if not search.note(x, values(x)):
                break
            x, steepness = search.next(steepness, halve=step % 2 == 1)
    return Brackets(search.low, search.high, search.at_low, search.at_high)


class _Search:
    """The brackets so far and the last two points tried."""

    def __init__(self, target: Float64s, low: npt.ArrayLike, high: npt.ArrayLike, rtol: float) -> None:
        shape = target.shape
        self.target, self.rtol = target, rtol
        self.low = np.array(np.broadcast_to(np.asarray(low, dtype=np.float64), shape))
        self.high = np.array(np.broadcast_to(np.asarray(high, dtype=np.float64), shape))
        self.at_low, self.at_high = np.full(shape, np.inf), np.zeros(shape)
        self.x, self.value = np.full(shape, np.nan), np.full(shape, np.nan)
        self.miss = self.older_miss = self.oldest_miss = np.full(shape, np.inf)
        self.previous_x = self.previous_value = self.x
        self.open = np.ones(shape, dtype=bool)

    def note(self, x: Float64s, value: Float64s) -> bool:
        """Take in the values at x; False once every root is found."""
        self.previous_x, self.previous_value, self.x, self.value = self.x, self.value, x, value
        off = (value - self.target) / self.target
        self.oldest_miss, self.older_miss, self.miss = self.older_miss, self.miss, np.log1p(off)
        hit = self.open & (np.abs(off) <= self.rtol)
        above = self.open & (hit | (off > 0))
        below = self.open & (hit | (off <= 0))
        self.low, self.at_low = np.where(above, x, self.low), np.where(above, value, self.at_low)
        self.high, self.at_high = np.where(below, x, self.high), np.where(below, value, self.at_high)
        self.open &= self._width() > 1
        return bool(self.open.any())

    def next(self, steepness: Float64s, *, halve: bool) -> tuple[Float64s, Float64s]:
        """The next points to try, and the slope they were found with."""
        run = np.log1p((self.x - self.previous_x) / self.previous_x)
        rise = np.log1p((self.value - self.previous_value) / self.previous_value)
        secant = rise / run
        steepness = np.where(np.isfinite(secant) & (secant < 0), secant, steepness)
        x = self.x * np.exp(np.clip(-self.miss / steepness, -_LONGEST, _LONGEST))
        stalled = np.abs(self.miss) > 0.5 * np.abs(self.oldest_miss)
        inside = (x > self.low) & (x < self.high) & np.isfinite(self.miss)
        x = np.where(inside & ~stalled, x, self._between(halve))
        return np.where(self.open, x, self.x), steepness

    def _between(self, halve: bool) -> Float64s:
        """A double between the ends: the middle one, or one close to the last point tried.

        A search that stalls is often a few units in the last place from its root while the far end is far:
        a step of √width closes the bracket there at once.
        """
        width = self._width()
        near = np.maximum(np.sqrt(width.astype(np.float64)).astype(np.int64), 1)
        part = np.where(halve | ~(np.abs(self.miss) < 0.1), width // 2, near)
        from_low = self.x == self.low
        bits = np.where(from_low, _bits(self.low) + part, _bits(self.high) - part)
        return bits.view(np.float64)

    def _width(self) -> Ints:
        return _bits(self.high) - _bits(self.low)


def _bits(x: Float64s) -> Ints:
    """Positive doubles in order, as integers in the same order."""
    return np.ascontiguousarray(x).view(np.int64)
