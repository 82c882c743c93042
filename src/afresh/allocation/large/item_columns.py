"""The columns that the passes over many items read, and the sums that they return.

An item's rate λ, weight w and cost c matter to the freshness plan mostly through its *price* x = cλ/w, the
spend on its changes per unit of weight: it is refreshed while x lies below a cut-off that all items share.

Prices are counted in bins numbered by the leading bits of a double, which are in order and need no logarithm.
A price x is a positive double; its bits, read as an integer, grow with it. Shifted right by 44 they leave the
exponent and 8 bits of the mantissa: bins 1/256 wide over the whole range. Shifted by less they are
narrower, down to single doubles. The place t of x within its bin is what was shifted out, from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s, Floats, Ints, nonnegative
from afresh.values.errors import InputError

# Prices are kept to normal doubles whose next power of two is finite too.
LEAST_PRICE, LARGEST_PRICE = 2.0**-1022, 2.0**1022


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """Rates, and weights and costs where they are not all 1; float32 or float64, of one length."""

    rates: Floats
    weights: Floats | None = None
    costs: Floats | None = None

    @staticmethod
    def from_arrays(rates: ArrayLike, weights: ArrayLike | None, costs: ArrayLike | None) -> ItemColumns:
        """Columns whose every number is fit to plan with; a single weight or cost serves all items.

        >>> ItemColumns.from_arrays([1.0, 2.0], [1.0], None)
        Traceback (most recent call last):
        afresh.values.errors.InputError: weight has 1 values for 2 items: give one for each item
        """
        rate = np.ascontiguousarray(nonnegative("rate", rates))
        if np.ndim(rates) != 1:
            raise InputError(
                f"rate has {np.ndim(rates)} dimensions: give a list of numbers, one for each item"
            )
        cost = _column("cost", costs, rate)
        if cost is not None and cost.size and not cost.min() > 0:
            raise InputError(f"cost[{int(np.argmin(cost))}] is 0: a refresh must cost more than nothing")
        return ItemColumns(rate, _column("weight", weights, rate), cost)

    @property
    def size(self) -> int:
        return self.rates.size

    def part(self, start: int, stop: int) -> ItemColumns:
        """The items from ``start`` to before ``stop``, not copied."""
        return self[slice(start, stop)]

    def __getitem__(self, rows: slice | Ints) -> ItemColumns:
        weights = None if self.weights is None else self.weights[rows]
        return ItemColumns(self.rates[rows], weights, None if self.costs is None else self.costs[rows])

    def weight(self) -> Float64s | float:
        """w of each item in double precision."""
        return 1.0 if self.weights is None else self.weights.astype(np.float64)

    def count_zeros(self) -> tuple[int, int]:
        """How many items are static, and how many others have no weight."""
        # The least value is found several times as fast as the zeros are counted, and seldom is 0.
        static = self.size - int(np.count_nonzero(self.rates)) if self.rates.min(initial=1) == 0 else 0
        if self.weights is None or self.weights.min(initial=1) > 0:
            return static, 0
        return static, int(np.count_nonzero((self.weights == 0) & (self.rates > 0)))

    def prices(self) -> Float64s:
        """x = cλ/w of each item; infinite for items of weight 0, NaN where the rate is 0 too.

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


def _column(name: str, given: ArrayLike | None, rate: Floats) -> Floats | None:
    if given is None:
        return None
    column = nonnegative(name, given)
    if column.ndim == 0:
        return np.full_like(rate, column)
    if column.shape != rate.shape:
        raise InputError(f"{name} has {column.size} values for {rate.size} items: give one for each item")
    return np.ascontiguousarray(column)


@dataclass(frozen=True, slots=True)
class PlanSums:
    """What a plan adds up to: Σ c·f, Σ w·F, Σ w·A (age, if asked for) and how many items are dropped."""

    spend: float
    value: float
    age: float
    dropped: int


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
