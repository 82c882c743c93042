"""A histogram of prices: all that the search for the freshness plan's multiplier needs of the items.

With x = cλ/w the spend at a multiplier μ is C(μ) = Σ w·x/Φ(μx): the items matter only through the
distribution of w over x. A histogram keeps it in bins 1/256 wide, each with the number of items, Σw, Σw·t
and Σw·t², t the place within the bin. Everything is a sum, so histograms of partitions add up to that of the
whole, on threads or processes.

A bin stands for w spread evenly over the stretch that has its mean and variance. That is right to the third
order in the bin's width, except at the cut-off, where 1/Φ is singular: there a second pass counts the items
of the few bins around the edge again, in bins 2¹² times as narrow (``window``), until the unresolved spend is
negligible. Items of equal price end in a bin of their own, a single double.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from afresh.allocation.large import item_columns
from afresh.allocation.large.cutoff import Cutoff
from afresh.allocation.large.item_columns import WHOLE, ItemColumns, PriceWindow
from afresh.model.roots import HUGE, TINY, solve_decreasing
from afresh.values.arrays import ArrayLike, Float64s, Ints

_CHUNK = 1 << 15
_NARROWER = 12  # bits more of the mantissa at each closer look
_AROUND = 4  # bins on either side of the edge that a closer look covers
_UNRESOLVED = 1e-8  # share of the budget that may lie in bins at the edge
_TOO_CLOSE = 1e-9  # of the edge: there a price is needed to the last bit
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Mergeable sums over items: ``a + b`` is the histogram of both. Frozen, picklable, small.

    ``start`` (bits of a bin's least double) and ``shift`` (it is 2^shift doubles wide) name the bins; the
    rows of ``sums`` are the number of items, Σw, Σw·t and Σw·t². Items of rate 0 (static) or weight 0 have
    no bin.

    >>> halves = Histogram.from_items([1.0, 2.0]) + Histogram.from_items([3.0, 4.0, 5.0])
    >>> round(halves.solve(5.0).multiplier, 4)  # Cho & Garcia-Molina 2000, Table 5 (b): the fifth is dropped
    0.2164
    """

    start: Ints
    shift: Ints
    sums: Float64s
    static: int = 0
    unweighted: int = 0
    static_weight: float = 0.0

    @staticmethod
    def from_items(
        rates: ArrayLike, weights: ArrayLike | None = None, costs: ArrayLike | None = None
    ) -> Histogram:
        return Histogram.from_columns(ItemColumns.from_arrays(rates, weights, costs))

    @staticmethod
    def from_columns(columns: ItemColumns, window: PriceWindow = WHOLE) -> Histogram:
        """The histogram of those items whose price lies in ``window``."""
        table = np.zeros((4, window.rows))
        static, unweighted, static_weight = 0, 0, 0.0
        for start in range(0, columns.size, _CHUNK):
            part = columns.part(start, start + _CHUNK)
            if window is not WHOLE:
                part = part[item_columns.find_candidates(part, window)]
            zeros = part.count_zeros()
            if any(zeros):
                static, unweighted = static + zeros[0], unweighted + zeros[1]
                static_weight += float(np.sum(part.weight() * (part.rates == 0)))
                part = part[np.flatnonzero((part.rates > 0) & np.greater(part.weight(), 0))]
            item_columns.add_items(table, part.prices(), part.weight(), window)
        return Histogram.from_table(table, window, static, unweighted, static_weight)

    @staticmethod
    def from_table(
        table: Float64s, window: PriceWindow, static: int, unweighted: int, static_weight: float
    ) -> Histogram:
        """From the rows count, Σw, Σw·t, Σw·t² over all keys of ``window``, most of them empty."""
        if window is not WHOLE:  # a closer look at items that were counted before
            static, unweighted, static_weight = 0, 0, 0.0
        (used,) = np.nonzero(table[0])
        start = (used + window.first) << window.shift
        shift = np.full_like(start, window.shift)
        return Histogram(start, shift, table[:, used], static, unweighted, static_weight)

    def __add__(self, other: Histogram) -> Histogram:
        start, shift = np.append(self.start, other.start), np.append(self.shift, other.shift)
        order = np.lexsort((shift, start))
        start, shift = start[order], shift[order]
        sums = np.concatenate([self.sums, other.sums], axis=1)[:, order]
        new = np.ones(len(start), dtype=bool)
        new[1:] = (np.diff(start) != 0) | (np.diff(shift) != 0)
        (firsts,) = np.nonzero(new)
        return Histogram(
            start[firsts],
            shift[firsts],
            np.add.reduceat(sums, firsts, axis=1) if len(firsts) else sums,
            static=self.static + other.static,
            unweighted=self.unweighted + other.unweighted,
            static_weight=self.static_weight + other.static_weight,
        )

    @property
    def items(self) -> int:
        return int(self.sums[0].sum()) + self.static + self.unweighted

    @property
    def total_weight(self) -> float:
        """Σw, over static items too."""
        return math.fsum(self.sums[1]) + self.static_weight

    def spend(self, cutoff: Cutoff) -> float:
        """C = Σ w·x/Φ(y): what the plan with this cut-off costs per time."""
        return self._spend(cutoff, self._stretches())

    def _spend(self, cutoff: Cutoff, stretches: tuple[Float64s, Float64s]) -> float:
        place, weight = self._measure(cutoff.edge, stretches)
        return float((weight * place * cutoff.inverse_ratio(place)).sum())

    def dropped(self, cutoff: Cutoff) -> float:
        """How many changing, weighted items the plan drops: exact but for the bin that holds the edge."""
        middle, half = self._stretches()
        with np.errstate(divide="ignore", invalid="ignore"):
            beyond = np.clip(0.5 + (middle - cutoff.edge) / (2 * half), 0.0, 1.0)
        out = middle > cutoff.edge
        if cutoff.ratio == math.inf:
            out |= middle == cutoff.edge
        beyond = np.where(half > 0, beyond, out)
        return float((self.sums[0] * beyond).sum())

    def _stretches(self) -> tuple[Float64s, Float64s]:
        """Middle and half length of the stretch of x over which each bin spreads its weight evenly."""
        low = self.start.view(np.float64)
        width = (self.start + (1 << self.shift)).view(np.float64) - low
        _, weight, first, second = self.sums
        mean = first / weight
        variance = second / weight - mean * mean
        # Rounding leaves some 1e−16 of mean² where all x are equal.
        variance[variance < 1e-14 * mean * mean] = 0.0
        return low + mean * width, np.sqrt(3 * variance) * width

    def _measure(self, edge: float, stretches: tuple[Float64s, Float64s]) -> tuple[Float64s, Float64s]:
        """Points of x and their weight that stand for all items below the edge: Gauss nodes of the stretches.

        One node for stretches that are short against their distances from 0 and from the edge, two for the
        others, and eight on what lies below the edge where a stretch comes near it.
        """
        middle, half = stretches
        distance = edge - middle
        near = (half >= 0.02 * np.abs(distance)) & (half > 0)
        below = ~near & (distance >= 0)
        short = below & (half <= 3e-6 * np.minimum(distance, middle))
        double = below & ~short
        offset = half[double] / math.sqrt(3)
        halved = self.sums[1][double] / 2
        low = middle[near] - half[near]
        high = np.minimum(middle[near] + half[near], edge)
        reach = np.maximum(high - low, 0.0) / 2
        nodes = (low + reach)[:, None] + reach[:, None] * _NODES
        shares = (self.sums[1][near] * reach / half[near])[:, None] * (_NODE_WEIGHTS / 2)
        double_middle = middle[double]
        place = [middle[short], double_middle - offset, double_middle + offset, nodes.ravel()]
        return np.concatenate(place), np.concatenate([self.sums[1][short], halved, halved, shares.ravel()])

    def solve(self, budget: float, near: Cutoff | None = None) -> Cutoff:
        """The cut-off at which the plan spends ``budget``; there must be an item to spend it on.

        ``near`` is one that nearly does: where to begin.
        """
        least = float(self.start.view(np.float64)[0])
        if budget == 0:
            return Cutoff(least)
        stretches = self._stretches()
        # A rich budget has small y, where 1/Φ ≈ 1/√(2y) and C ≈ Σ w·√x/√(2μ).
        root = float((self.sums[1] * np.sqrt(stretches[0])).sum()) / budget
        guess = 0.5 * root * root if near is None else near.multiplier

        def spends(multiplier: Float64s) -> Float64s:
            return np.array([self._spend(Cutoff(1 / float(m)), stretches) for m in multiplier])

        high = min(2 / least, HUGE)
        found = solve_decreasing(spends, budget, np.clip(guess, TINY, high / 2), high=high)
        above, below = float(found.at_low[0]), float(found.at_high[0])
        if above - below <= 1e-12 * budget:
            return Cutoff(1 / float(found.low[0]))
        return self._split_edge(1 / float(found.low[0]), budget)

    def _split_edge(self, edge: float, budget: float) -> Cutoff:
        """The spend jumps at ``edge``: the items of one price just below it share what the others leave."""
        middle, half = self._stretches()
        at = np.flatnonzero((half == 0) & (middle <= edge) & (middle > edge * (1 - 1e-8)))
        if not at.size:
            return Cutoff(edge)
        last = int(at[np.argmax(middle[at])])
        price = float(middle[last])
        left = budget - self.spend(Cutoff(price))
        return Cutoff(price, float(self.sums[1][last]) * price / left) if left > 0 else Cutoff(edge)

    def window(self, edge: float, budget: float) -> PriceWindow | None:
        """Where a closer look at the items would tell the spend apart; None if all is resolved."""
        low, high = self.start, self.start + (1 << self.shift)
        place = item_columns.double_to_bits(edge)
        close = np.flatnonzero((low - (1 << self.shift) <= place) & (place < high + (1 << self.shift)))
        middle, half = self._stretches()
        vague = (half > 0) | (np.abs(middle - edge) < _TOO_CLOSE * edge)
        close = close[vague[close] & (self.shift[close] > 0)]
        start = low[close].view(np.float64)
        width = high[close].view(np.float64) - start
        # At most what these bins would spend if they lay a bin's width below the edge.
        spend = self.sums[1][close] * start / -np.log(width / start)
        close = close[spend > _UNRESOLVED * budget]
        if not close.size:
            return None
        shift = int(self.shift[close].max())
        first, last = (place >> shift) - _AROUND, (place >> shift) + _AROUND
        wider = self.shift > shift
        begin = max(first << shift, int(high[wider & (high <= place)].max(initial=0)))
        end = min(last << shift, int(low[wider & (low > place)].min(initial=last << shift)))
        narrow = max(shift - _NARROWER, 0)
        return PriceWindow(narrow, begin >> narrow, (end - begin) >> narrow) if begin < end else None

    def without(self, window: PriceWindow) -> Histogram:
        """Without the bins that ``window`` counts again; what is not binned stays."""
        begin, end = window.bounds
        keep = (self.start < begin) | (self.start >= end)
        return replace(self, start=self.start[keep], shift=self.shift[keep], sums=self.sums[:, keep])
