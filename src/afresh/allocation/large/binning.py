"""Bins of prices, numbered by the leading bits of a double: they are in order and need no logarithm.

A price x is a positive double; its bits, read as an integer, grow with it. Shifted right by 44 they leave the
exponent and 8 bits of the mantissa: bins 1/256 wide over the whole range. Shifted by less they are
narrower, down to single doubles. The place t of x within its bin is what was shifted out, from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.allocation.large.item_columns import LARGEST_PRICE, LEAST_PRICE, ItemColumns
from afresh.values.arrays import Float64s, Ints


def double_to_bits(x: float) -> int:
    """The bits of a positive double as an integer.

    >>> double_to_bits(2.0) - double_to_bits(1.0) == 1 << 52
    True
    """
    return int(np.float64(x).view(np.int64))


def bits_to_double(bits: int) -> float:
    """The double with these bits.

    >>> bits_to_double(double_to_bits(0.1))
    0.1
    """
    return float(np.int64(bits).view(np.float64))


@dataclass(frozen=True, slots=True)
class PriceWindow:
    """Bins of one width: keys are bits shifted right by ``shift``, ``rows`` of them from ``first`` on."""

    shift: int
    first: int
    rows: int

    @property
    def bounds(self) -> tuple[int, int]:
        """Bits of the first double inside and of the first one past the window."""
        return self.first << self.shift, (self.first + self.rows) << self.shift

    @property
    def prices(self) -> tuple[float, float]:
        """The least and largest price inside, with a little to spare for rounding in float32."""
        low, high = (bits_to_double(bits) for bits in self.bounds)
        return low * (1 - 1e-6), high * (1 + 1e-6)


_COARSE_SHIFT = 44
WHOLE = PriceWindow(_COARSE_SHIFT, 0, (double_to_bits(LARGEST_PRICE) >> _COARSE_SHIFT) + 1)


def find_candidates(columns: ItemColumns, window: PriceWindow) -> Ints:
    """Rows that may lie in ``window``: float32 is enough to tell, unless it would over- or underflow."""
    low, high = window.prices
    single = columns.costs is None and 1e-30 < low < high < 1e30
    part = columns.rates if single else columns.rates.astype(np.float64)
    with np.errstate(all="ignore"):
        if columns.costs is not None:
            part = part * columns.costs
        if columns.weights is not None:
            part = part / columns.weights
        return np.flatnonzero((part >= low) & (part <= high))


def add_items(table: Float64s, prices: Float64s, weight: Float64s | float, window: PriceWindow) -> None:
    """Add count, Σw, Σw·t and Σw·t² of these items to the rows of ``table``; ``prices`` is used up."""
    np.maximum(prices, LEAST_PRICE, out=prices)
    np.minimum(prices, LARGEST_PRICE, out=prices)
    bits = prices.view(np.int64)
    key = bits >> window.shift
    key -= window.first
    if window is not WHOLE:
        inside = (key >= 0) & (key < window.rows)
        bits, key = bits[inside], key[inside]
        weight = weight if np.ndim(weight) == 0 else np.asarray(weight)[inside]
    if not key.size:
        return
    least = int(key.min())
    key -= least
    t = (bits & ((1 << window.shift) - 1)).astype(np.float64)
    t *= 0.5**window.shift
    count = np.bincount(key)
    rows = table[:, least : least + count.size]
    rows[0] += count
    first = weight * t
    rows[1] += count if np.ndim(weight) == 0 else np.bincount(key, weights=np.asarray(weight))
    rows[2] += np.bincount(key, weights=first)
    first *= t
    rows[3] += np.bincount(key, weights=first)
