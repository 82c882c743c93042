"""Find the roots or maxima of many functions of one positive number x, all functions at once.

The functions fall as x grows: what a plan spends falls with the multiplier, and what a refresh gains falls
with the frequency. They may also fall in jumps (an item leaves the plan, a decay function has steps). So a
root is returned as a bracket: two points whose values lie on either side of the target. If the function jumps
over the target, the two points are adjacent doubles.

The search takes secant steps of log value over log x, in which these functions are nearly linear. If a step
leaves the bracket, or if two steps have not halved the error, it bisects the doubles between the ends by
their bit patterns; 64 bisections reach adjacent doubles from any start. For Weibull items of ``afresh.money``
this took 6 to 9 evaluations, Chandrupatla's method 9 to 12. (``rates.segments`` has its own Newton search.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s, Ints

Function: TypeAlias = Callable[[Float64s], Float64s]

TINY, HUGE = 1e-300, 1e300
JUST_ABOVE = 1 + 16 * np.finfo(np.float64).eps  # a factor that exceeds rounding errors
_MAX_STEPS = 400
_LONGEST = 20.0  # one secant step changes x by at most e²⁰
_GOLDEN = (np.sqrt(5) - 1) / 2
_NARROWINGS = 48  # 0.618^48 = 1e−10; rounding hides anything finer at a smooth maximum


@dataclass(frozen=True, slots=True)
class Brackets:
    """For each function, two points with value(low) ≥ target ≥ value(high), and the values there.
    ``low`` equals ``high`` if the value at that point equals the target."""

    low: Float64s
    high: Float64s
    at_low: Float64s
    at_high: Float64s

    def share(self, target: Float64s) -> Float64s:
        """Return where the target lies between the two values, from 0 (at ``high``) to 1 (at ``low``)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (target - self.at_high) / (self.at_low - self.at_high)
        return np.where(self.low == self.high, 1.0, np.clip(np.nan_to_num(share), 0.0, 1.0))


def solve_decreasing(
    values: Function,
    target: ArrayLike,
    guess: ArrayLike,
    *,
    low: ArrayLike = TINY,
    high: ArrayLike = HUGE,
    slope: float = -0.5,
    rtol: float = 1e-12,
) -> Brackets:
    """Find the x > 0 with ``values(x) = target > 0``, element by element, for decreasing functions.

    ``values`` is called with the array of all x each time. The search starts at ``guess`` and stays in [low,
    high]; the value at ``low`` counts as infinite and that at ``high`` as 0 until they are evaluated.
    ``slope`` is the first guess of d(log value)/d(log x), ``rtol`` the relative error allowed in the value.

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
    # Infinite and zero values are allowed, because they only show on which side of the root x lies.
    with np.errstate(all="ignore"):
        steepness = np.full(target.shape, slope)
        for step in range(_MAX_STEPS):
            if not search.note(x, values(x)):
                break
            x, steepness = search.next(steepness, halve=step % 2 == 1)
    return Brackets(search.low, search.high, search.at_low, search.at_high)


def find_crossing(values: Function, low: Float64s, high: Float64s) -> Float64s:
    """Return the x in [low, high] at which the decreasing function ``values`` is 1, element by element.
    x is ``low`` if the function is at most 1 everywhere, and ``high`` if it is at least 1 everywhere.

    >>> find_crossing(lambda x: [2.0, 4.0, 0.0] / x**2, np.full(3, 1e-9), np.full(3, 1e9)).round(12)
    array([1.41421356e+00, 2.00000000e+00, 1.00000000e-09])
    """
    at_low, at_high = values(low), values(high)
    inside = (at_low > 1) & (at_high < 1)
    found = solve_decreasing(
        lambda x: np.where(inside, values(x), 1.0),
        np.ones_like(low),
        np.sqrt(low) * np.sqrt(high),
        low=low,
        high=high,
        rtol=1e-15,
    )
    return np.where(inside, found.low, np.where(at_low <= 1, low, high))


class _Search:
    """The state of a search: the brackets, the last two points with their values, and the last errors."""

    def __init__(self, target: Float64s, low: ArrayLike, high: ArrayLike, rtol: float) -> None:
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
        """Narrow the brackets with the values at x; return False when every root is found."""
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
        """Return a tuple (x, slopes): the next points to evaluate, and the slopes of the steps to them.
        A slope is d(log value)/d(log x). ``halve`` chooses how ``_between`` divides a bracket."""
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
        """Return a double inside each bracket: the middle one, or one close to the last point evaluated.
        A search that makes no progress is often a few units in the last place from its root, while the other
        end of the bracket is far away. A step of √width doubles then closes the bracket at once."""
        width = self._width()
        near = np.maximum(np.sqrt(width.astype(np.float64)).astype(np.int64), 1)
        part = np.where(halve | ~(np.abs(self.miss) < 0.1), width // 2, near)
        from_low = self.x == self.low
        bits = np.where(from_low, _bits(self.low) + part, _bits(self.high) - part)
        return bits.view(np.float64)

    def _width(self) -> Ints:
        return _bits(self.high) - _bits(self.low)


def _bits(x: Float64s) -> Ints:
    """Return the bits of positive doubles as integers, which have the same order."""
    return np.ascontiguousarray(x).view(np.int64)


def find_maximum(function: Function, low: Float64s, high: Float64s, *, per_decade: int = 8) -> Float64s:
    """Return the x in [low, high] at which each function is largest, by a scan and then golden sections.
    The scan evaluates at least ``per_decade`` points for each factor of 10 between ``low`` and ``high``.

    >>> find_maximum(lambda u: -((np.log(u) - 1) ** 2), np.array([1e-6]), np.array([1e6])).round(6)
    array([2.718282])
    """
    points = 8 + int(per_decade * float(np.max(np.log10(high) - np.log10(low), initial=1.0)))
    a, b = np.log(low), np.log(high)
    best, place = np.full_like(a, -np.inf), np.zeros_like(a)
    for index in range(points + 1):
        value = function(np.exp(a + (b - a) * (index / points)))
        better = value > best
        best, place = np.where(better, value, best), np.where(better, index, place)
    # The maximum lies between the neighbours of the point with the largest value, if it is wider than a cell.
    left = a + (b - a) * (np.maximum(place - 1, 0) / points)
    right = a + (b - a) * (np.minimum(place + 1, points) / points)
    return narrow_maximum(function, np.exp(left), np.exp(right))


def narrow_maximum(function: Function, low: Float64s, high: Float64s) -> Float64s:
    """Return the x in [low, high] at which a function with one maximum is largest, by golden sections.

    >>> narrow_maximum(lambda u: -np.abs(u - 9), np.array([1.0]), np.array([100.0])).round(6)
    array([9.])
    """
    left, right = np.log(low), np.log(high)
    inner, outer = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    f_inner, f_outer = function(np.exp(inner)), function(np.exp(outer))
    for _ in range(_NARROWINGS):
        lower = f_inner >= f_outer  # the maximum lies left of ``outer``
        left, right = np.where(lower, left, inner), np.where(lower, outer, right)
        new = np.where(lower, right - _GOLDEN * (right - left), left + _GOLDEN * (right - left))
        f_new = function(np.exp(new))
        inner, outer = np.where(lower, new, outer), np.where(lower, inner, new)
        f_inner, f_outer = np.where(lower, f_new, f_outer), np.where(lower, f_inner, f_new)
    return np.asarray(np.exp(np.where(f_inner >= f_outer, inner, outer)))
