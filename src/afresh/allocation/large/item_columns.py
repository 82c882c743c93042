"""The columns that the passes over many items read, and the sums that the passes return.

An item's rate λ, weight w and cost c affect the freshness plan mostly through its *price* x = cλ/w, the cost
of refreshing after every change, per unit of weight. Items are refreshed if their price is below a common
cut-off.

Items are counted in bins of their price. The number of a bin is the leading bits of a double, so that no
logarithm is needed: the bits of a positive double, read as an integer, grow with it. Shifted right by 44,
they leave the exponent and 8 bits of the mantissa, which gives bins of relative width 1/256 everywhere. With
a smaller shift bins are narrower, down to single doubles. The bits that were shifted out give the position t
of x within its bin, from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afresh.allocation.problem import check_column, check_rates
from afresh.values.arrays import ArrayLike, Float64s, Floats, Ints

# Prices are limited to normal doubles, so that the end of the last bin is finite too.
LEAST_PRICE, LARGEST_PRICE = 2.0**-1022, 2.0**1022


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """The rates, weights and costs of items, float32 or float64; None if all weights or costs are 1."""

    rates: Floats
    weights: Floats | None = None
    costs: Floats | None = None

    @staticmethod
    def from_arrays(rates: ArrayLike, weights: ArrayLike | None, costs: ArrayLike | None) -> ItemColumns:
        """Return the checked columns; one number as weight or cost is used for all items.

        >>> ItemColumns.from_arrays([1.0, 2.0], [1.0], None)
        Traceback (most recent call last):
        afresh.values.errors.InputError: weight has 1 values for 2 items: give one for each item
        """
        rate = np.ascontiguousarray(check_rates(rates))
        weight, cost = check_column("weight", weights, rate), check_column("cost", costs, rate)
        return ItemColumns(
            rate, *(None if one is None else np.ascontiguousarray(one) for one in (weight, cost))
        )

    @property
    def size(self) -> int:
        return self.rates.size

    def part(self, start: int, stop: int) -> ItemColumns:
        """Return the items from ``start`` to ``stop`` − 1, without copying."""
        return self[slice(start, stop)]

    def __getitem__(self, rows: slice | Ints) -> ItemColumns:
        weights = None if self.weights is None else self.weights[rows]
        return ItemColumns(self.rates[rows], weights, None if self.costs is None else self.costs[rows])

    def weight(self) -> Float64s | float:
        """Return the weight of each item as float64, or 1.0 if all weights are 1."""
        return 1.0 if self.weights is None else self.weights.astype(np.float64)

    def count_zeros(self) -> tuple[int, int]:
        """Return a tuple (static, unweighted): the number of items of rate 0, and of others of weight 0."""
        # The minimum is computed several times as fast as zeros are counted, and it is rarely 0.
        static = self.size - int(np.count_nonzero(self.rates)) if self.rates.min(initial=1) == 0 else 0
        if self.weights is None or self.weights.min(initial=1) > 0:
            return static, 0
        return static, int(np.count_nonzero((self.weights == 0) & (self.rates > 0)))

    def prices(self) -> Float64s:
        """Return the price cost·rate/weight of each item; ∞ for weight 0, NaN if the rate is 0 too.

        >>> ItemColumns(np.array([2.0, 3.0]), np.array([4.0, 1.0])).prices()
        array([0.5, 3. ])
        """
        prices = self.rates.astype(np.float64)
        with np.errstate(all="ignore"):
            if self.costs is not None:
                prices *= self.costs
            if self.weights is not None:
                prices /= self.weights
        return prices


@dataclass(frozen=True, slots=True)
class PlanSums:
    """Sums over the items of a plan: ``spend`` Σ cost·frequency, ``value`` Σ weight·freshness, ``age``
    Σ weight·age (0 if it is not computed), and the number of dropped items."""

    spend: float
    value: float
    age: float
    dropped: int

    @staticmethod
    def of_parts(parts: Sequence[PlanSums]) -> PlanSums:
        """Return the sums over all items from those over parts of them, with the error of one rounding."""
        spend, value, age = (
            math.fsum(getattr(part, name) for part in parts) for name in ("spend", "value", "age")
        )
        return PlanSums(spend, value, age, sum(part.dropped for part in parts))


def double_to_bits(x: float) -> int:
    """Return the bits of a positive double as an integer.

    >>> double_to_bits(2.0) - double_to_bits(1.0) == 1 << 52
    True
    """
    return int(np.float64(x).view(np.int64))


@dataclass(frozen=True, slots=True)
class PriceWindow:
    """A range of prices, divided into ``rows`` bins of 2^``shift`` doubles.
    Bin k holds the prices whose bits, shifted right by ``shift``, are ``first`` + k."""

    shift: int
    first: int
    rows: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The bits of the first double inside the range, and of the first double after it."""
        return self.first << self.shift, (self.first + self.rows) << self.shift

    @property
    def prices(self) -> tuple[float, float]:
        """The least and the largest price of the range, with a margin for rounding in float32."""
        low, high = np.array(self.bounds, dtype=np.int64).view(np.float64).tolist()
        return low * (1 - 1e-6), high * (1 + 1e-6)


_COARSE_SHIFT = 44
WHOLE = PriceWindow(_COARSE_SHIFT, 0, (double_to_bits(LARGEST_PRICE) >> _COARSE_SHIFT) + 1)


def find_candidates(columns: ItemColumns, window: PriceWindow) -> Ints:
    """Return the positions of items whose price may lie in ``window``."""
    # float32 is precise enough for this, unless it overflows or underflows.
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
    """Add these items to the rows of ``table`` (count, Σw, Σw·t, Σw·t²); ``prices`` is overwritten."""
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
