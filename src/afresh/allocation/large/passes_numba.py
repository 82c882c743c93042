"""The two passes over the items, compiled by Numba: several times as fast as ``passes_numpy``, same results.

They process 1024 items at a time, which stay in the first-level cache, in short loops that the compiler turns
into vector instructions. Only the table is read item by item. The loops release the GIL for other threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

from afresh.allocation.large.cutoff import CELLS, CELLS_PER_UNIT, Cutoff, phi_table
from afresh.allocation.large.histogram import Histogram
from afresh.allocation.large.item_columns import (
    LARGEST_PRICE,
    LEAST_PRICE,
    WHOLE,
    ItemColumns,
    PlanSums,
    PriceWindow,
)
from afresh.values.arrays import Float64s, Floats

THREADS = 64  # at most
PART = 1 << 17  # items per call of ``write_plan``: enough for threads, few enough for accurate sums

# Numba compiles module-level names as constants.
_BLOCK = 1024
_LEAST_WEIGHT = 1e-300  # replaces a weight of 0 in divisions; the price is then above any cut-off
_CELLS_PER_UNIT, _LAST = float(CELLS_PER_UNIT), CELLS - 1e-9
_LEAST_ROOT = 1e-150  # static items have s = 0
_LEAST_REST = 2.0**-53
_LN2 = math.log(2)
_ONE = np.float64(1.0).view(np.int64).item()
_ROOT_HALF = np.float64(math.sqrt(0.5)).view(np.int64).item()


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function compiled to machine code, which is cached on disk if a cache is writable."""
    # Sums may be reordered and products fused, but NaN and infinity must keep their meaning.
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": {"reassoc", "contract", "nsz"},
    }
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither cache is writable, so each process compiles for itself
        compiled = numba.njit(**options)(function)
    return compiled


def build_histogram(columns: ItemColumns, window: PriceWindow = WHOLE) -> Histogram:
    """Return the histogram of the items whose price lies in ``window``.

    >>> build_histogram(ItemColumns(np.array([1.0, 0.0, 3.0]))).items
    3
    """
    if window is not WHOLE:
        columns = columns[_candidates(columns.rates, columns.weights, columns.costs, *window.prices)]
    table = np.zeros((window.rows, 4))
    rest = _fill_table(columns.rates, columns.weights, columns.costs, window.shift, window.first, table)
    return Histogram.from_table(table.T, window, *rest)


def write_plan(columns: ItemColumns, cutoff: Cutoff, scale: float, out: Floats, with_age: bool) -> PlanSums:
    """Write the frequency scale·λ/Φ(y) of each item into ``out``, and return the sums; see ``passes_numpy``.

    >>> frequency = np.empty(2)
    >>> write_plan(ItemColumns(np.array([1.0, 5.0])), Cutoff(4.6204), 1.0, frequency, with_age=False).dropped
    1
    >>> frequency.round(2)  # Cho & Garcia-Molina 2000, Table 5 (b)
    array([1.15, 0.  ])
    """
    place = (cutoff.multiplier, cutoff.edge, cutoff.rest, 1 / cutoff.ratio)
    return PlanSums(
        *_write_blocks(columns.rates, columns.weights, columns.costs, out, place, scale, with_age, _table())
    )


@cache
def _table() -> Float64s:
    """Return ``phi_table`` with the coefficients of a cell side by side, in one cache line."""
    return np.ascontiguousarray(phi_table().T)


@_compile
def _price(rate, weight, cost, j):  # type: ignore[no-untyped-def]
    x = np.float64(rate[j])
    if cost is not None:
        x *= np.float64(cost[j])
    if weight is not None:
        x /= max(np.float64(weight[j]), _LEAST_WEIGHT)
    return x


@_compile
def _fill_table(rates, weights, costs, shift, first, table):  # type: ignore[no-untyped-def]
    x = np.empty(_BLOCK)
    static, unweighted, static_weight = 0, 0, 0.0
    for start in range(0, rates.size, _BLOCK):
        stop = min(start + _BLOCK, rates.size)
        rate = rates[start:stop]
        weight = None if weights is None else weights[start:stop]
        cost = None if costs is None else costs[start:stop]
        for j in range(rate.size):
            x[j] = min(max(_price(rate, weight, cost, j), LEAST_PRICE), LARGEST_PRICE)
        zeros = _exclude_zeros(rate, weight, x)
        static += zeros[0]
        unweighted += zeros[1]
        static_weight += zeros[2]
        _count(rate.size, weight, x, shift, first, table)
    return static, unweighted, static_weight


@_compile
def _exclude_zeros(rate, weight, x):  # type: ignore[no-untyped-def]
    """Give items of rate or weight 0 an infinite price x, which has no bin.
    Returns a tuple (static, unweighted, static weight): the items of rate 0, others of weight 0, and Σw of
    the static ones."""
    zeros, static, unweighted, static_weight = 0, 0, 0, 0.0
    for j in range(rate.size):  # most blocks have none
        zeros += (rate[j] == 0) if weight is None else (rate[j] == 0) | (weight[j] == 0)
    if zeros > 0:
        for j in range(rate.size):
            w = 1.0 if weight is None else np.float64(weight[j])
            if rate[j] == 0:
                x[j] = np.inf
                static += 1
                static_weight += w
            elif w == 0:
                x[j] = np.inf
                unweighted += 1
    return static, unweighted, static_weight


@_compile
def _count(size, weight, x, shift, first, table):  # type: ignore[no-untyped-def]
    """Add count, Σw, Σw·t and Σw·t² of a block to the bins of ``table``; t is the position within the bin."""
    bits = x.view(np.int64)
    mask = (np.int64(1) << shift) - 1
    scale = 1.0 / (mask + 1.0)
    for j in range(size):
        w = 1.0 if weight is None else np.float64(weight[j])
        t = np.float64(bits[j] & mask) * scale
        row = np.uint64((bits[j] >> shift) - first)  # a row below the first wraps to a huge number
        if row < np.uint64(table.shape[0]):
            table[row, 0] += 1.0
            table[row, 1] += w
            table[row, 2] += w * t
            table[row, 3] += w * t * t


@_compile
def _candidates(rates, weights, costs, low, high):  # type: ignore[no-untyped-def]
    """Return the positions of items whose price may lie from ``low`` to ``high``, without divisions."""
    flags = np.zeros(_BLOCK, np.uint8)
    eights = flags.view(np.uint64)
    found, many = np.empty(max(rates.size // 64, _BLOCK), np.int64), 0
    for start in range(0, rates.size, _BLOCK):
        stop = min(start + _BLOCK, rates.size)
        if many + _BLOCK > found.size:
            found = np.concatenate((found, np.empty_like(found)))
        rate = rates[start:stop]
        weight = None if weights is None else weights[start:stop]
        cost = None if costs is None else costs[start:stop]
        flags[rate.size :] = 0
        for j in range(rate.size):
            spend = np.float64(rate[j]) if cost is None else np.float64(rate[j]) * np.float64(cost[j])
            w = 1.0 if weight is None else np.float64(weight[j])
            flags[j] = (spend >= low * w) & (spend <= high * w)
        for k in range(eights.size):
            if eights[k] != 0:
                for j in range(8 * k, 8 * k + 8):
                    found[many] = start + j
                    many += flags[j]
    return found[:many]


@_compile
def _write_blocks(rates, weights, costs, out, place, scale, with_age, table):  # type: ignore[no-untyped-def]
    s, h, y, rest = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    spend, value, age, dropped = 0.0, 0.0, 0.0, 0
    for start in range(0, rates.size, _BLOCK):
        stop = min(start + _BLOCK, rates.size)
        rate, target = rates[start:stop], out[start:stop]
        weight = None if weights is None else weights[start:stop]
        cost = None if costs is None else costs[start:stop]
        for j in range(rate.size):
            x = _price(rate, weight, cost, j)
            y[j] = min(place[0] * x, 1.0)
            rest[j] = (place[1] - x) * place[0]
        _roots(rate.size, y, rest, place[2], s)
        _look_up(rate.size, s, h, rest, place[3], table)
        spent, gained, idle = _write(rate, weight, cost, target, y, s, h, scale)
        spend += spent
        value += gained
        dropped += idle
        if with_age:
            age += _age(rate, weight, s, h, scale)
    return spend, value, age, dropped


@_compile
def _roots(size, y, rest, rest_at_edge, s):  # type: ignore[no-untyped-def]
    """Set s to √(2L) with L = −ln(1−y), for every item; y is multiplier·price.
    With 1−y = 2ᵏm and m near 1, L = −k·ln 2 + 2·artanh((1−m)/(1+m)). For k = 0 the numerator is y itself,
    which is exact for small y."""
    bits = s.view(np.int64)
    for j in range(size):
        s[j] = min(max(rest[j] + rest_at_edge, _LEAST_REST), 1.0)
    for j in range(size):
        power = ((bits[j] + (_ONE - _ROOT_HALF)) >> 52) - 1023
        bits[j] -= power << 52
        lack = y[j] if power == 0 else 1.0 - s[j]
        z = lack / (1.0 + s[j])
        q = z * z
        tail = 1 / 11 + q * (1 / 13 + q * (1 / 15 + q / 17))
        series = 1 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q * tail))))
        s[j] = max(np.sqrt(4 * z * series - 2 * _LN2 * power), _LEAST_ROOT)


@_compile
def _look_up(size, s, h, rest, at_edge, table):  # type: ignore[no-untyped-def]
    """Set h to s/Φ for every item below the cut-off price (``rest`` > 0), interpolated in ``table``.
    h is 0 for items above that price (dropped), and s·``at_edge`` for items exactly at that price."""
    for j in range(size):
        position = min(s[j] * _CELLS_PER_UNIT, _LAST)
        cell = np.uint32(np.int32(position))
        t = position - cell
        h[j] = table[cell, 0] + t * (table[cell, 1] + t * (table[cell, 2] + t * table[cell, 3]))
    for j in range(size):
        outside = at_edge * s[j] if rest[j] == 0.0 else 0.0
        h[j] = h[j] if rest[j] > 0.0 else outside


@_compile
def _write(rate, weight, cost, target, y, s, h, scale):  # type: ignore[no-untyped-def]
    """Write the frequencies of some items; return a tuple (Σ cost·frequency, Σ weight·freshness, dropped)."""
    lack = 1.0 - 1.0 / scale
    spend, value, dropped = 0.0, 0.0, 0
    for j in range(rate.size):
        # One division, the slowest operation here, gives both i = 1/r = h/s and i/(1+i) = h/(s+h).
        both = s[j] + h[j]
        part = h[j] / (s[j] * both)
        i = part * both
        fresh = part * s[j] * (1.0 + y[j] * i - (1.0 - y[j]) * lack)
        idle = h[j] == 0.0
        if weight is not None:
            fresh *= weight[j]
            i = i if weight[j] > 0 else 0.0
            idle &= weight[j] > 0
        frequency = scale * i * rate[j]
        target[j] = frequency
        spend += frequency if cost is None else frequency * cost[j]
        value += fresh
        dropped += idle
    return spend, scale * value, dropped


@_compile
def _age(rate, weight, s, h, scale):  # type: ignore[no-untyped-def]
    """Return Σ weight·age of some items. With r changes per refresh at the rate λ the age is r/λ times
    ½−1/r+(1−e^{−r})/r², which below r = 1 is computed as r·Σ (−r)ʲ/(j+3)!."""
    age = 0.0
    for j in range(rate.size):
        w = 1.0 if weight is None else np.float64(weight[j])
        if rate[j] > 0 and w > 0 and h[j] > 0:
            r = s[j] / (scale * h[j])
            if r < 1.0:
                term, part = r / 6, 0.0
                for order in range(4, 24):
                    part += term
                    term *= -r / order
            else:
                part = 0.5 - (1.0 + math.expm1(-r) / r) / r
            age += w * part * r / rate[j]
    return age
