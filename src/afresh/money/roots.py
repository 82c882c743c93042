"""Roots and maxima of many one-dimensional functions at once, on a logarithmic axis.

Intervals span many decades, so both searches work on ln u. Bounds are safe: a root stays bracketed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s

Function: TypeAlias = Callable[[Float64s], Float64s]
Part: TypeAlias = Callable[[npt.NDArray[np.intp]], Function]

_ROUNDS = 200  # Chandrupatla needs about 12; halving 700 e-folds to the last bit needs 62
_GOLDEN = (np.sqrt(5) - 1) / 2
_NARROWINGS = 48  # 0.618^48 = 1e−10: at a smooth maximum nothing finer can be seen


def rising_root(function: Function, low: Float64s, high: Float64s, *, part: Part | None = None) -> Float64s:
    """u in [low, high] with function(u) = 0, for functions that rise through 0 there; else the nearer bound.

    Chandrupatla's method (1997): inverse quadratic interpolation where it is safe, else halving.
    ``part(rows)`` is the same function for some of its elements: with it the last few roots are sought alone.

    >>> rising_root(lambda u: u * u - [2.0, 4.0], np.full(2, 1e-9), np.full(2, 1e9)).round(12)
    array([1.41421356, 2.        ])
    """
    if low.size == 0:
        return np.array(low)
    # a is the newest point, b brackets the root with it, c is the one before
    a, b, fa, fb = np.log(high), np.log(low), function(high), function(low)
    bound, outside = np.where(fb >= 0, low, high), (fb >= 0) | (fa <= 0)
    place = np.full_like(a, 0.5)
    for count in range(1, _ROUNDS):
        x = a + place * (b - a)
        fx = function(np.exp(x))
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        width = np.abs(b - a)
        tight = 4 * np.finfo(np.float64).eps * np.maximum(np.abs(a), 1.0)
        left = np.flatnonzero(~outside & (width > tight) & (fa != 0) & (fb != 0))
        if left.size == 0 or (part and count % 6 == 0 and 2 * left.size < low.size):
            break
        least = 0.5 * tight / np.maximum(width, tight)
        place = np.clip(_interpolation(a, b, c, fa, fb, fc), least, 1 - least)
    root = np.where(outside, bound, np.exp(np.where(np.abs(fa) <= np.abs(fb), a, b)))
    if part and left.size:
        ends = np.exp(np.minimum(a, b)[left]), np.exp(np.maximum(a, b)[left])
        root[left] = rising_root(part(left), *ends, part=lambda rows: part(left[rows]))
    return root


def _interpolation(
    a: Float64s, b: Float64s, c: Float64s, fa: Float64s, fb: Float64s, fc: Float64s
) -> Float64s:
    """The next point's place between a and b: inverse quadratic where Chandrupatla's test allows it."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        xi, ph = (a - b) / (c - b), (fa - fb) / (fc - fb)
        fits = (ph * ph < xi) & ((1 - ph) ** 2 < 1 - xi)
        t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(fits & np.isfinite(t), t, 0.5)


def highest(function: Function, low: Float64s, high: Float64s, *, per_decade: int = 8) -> Float64s:
    """Where function is highest in [low, high]: a scan of so many points per decade, then golden sections.

    >>> highest(lambda u: -((np.log(u) - 1) ** 2), np.array([1e-6]), np.array([1e6])).round(6)
    array([2.718282])
    """
    decades = float(np.max(np.log10(high) - np.log10(low), initial=1.0))
    return narrowed(function, *scanned(function, low, high, points=8 + int(per_decade * decades)))


def scanned(function: Function, low: Float64s, high: Float64s, *, points: int) -> tuple[Float64s, Float64s]:
    """The two cells, of ``points`` between low and high, on either side of the highest point tried.

    A second hump wider than a cell is not missed.

    >>> scanned(lambda u: -np.abs(u - 9), np.array([1.0]), np.array([1e4]), points=4)
    (array([1.]), array([100.]))
    """
    a, b = np.log(low), np.log(high)
    best, place = np.full_like(a, -np.inf), np.zeros_like(a)
    for index in range(points + 1):
        value = function(np.exp(a + (b - a) * (index / points)))
        better = value > best
        best, place = np.where(better, value, best), np.where(better, index, place)
    left = a + (b - a) * (np.maximum(place - 1, 0) / points)
    right = a + (b - a) * (np.minimum(place + 1, points) / points)
    return np.exp(left), np.exp(right)


def narrowed(function: Function, low: Float64s, high: Float64s) -> Float64s:
    """The highest point between ``low`` and ``high`` by golden sections, for a single hump there.

    >>> narrowed(lambda u: -np.abs(u - 9), np.array([1.0]), np.array([100.0])).round(6)
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
