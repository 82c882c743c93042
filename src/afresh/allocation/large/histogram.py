"""A histogram of the items' prices, which is all that the search for a freshness plan's multiplier needs.

With the price x = cλ/w (cost c, rate λ, weight w) the spend at a multiplier μ is C(μ) = Σ w·x/Φ(μx). So only
the distribution of w over x matters. The histogram stores it in bins of relative width 1/256, each with the
number of items, Σw, Σw·t and Σw·t², where t is the position within the bin, from 0 to 1. These are all sums,
so the histograms of parts of the items, made by threads or processes, can be added.

The weight of a bin is treated as if it were spread evenly over a range of prices with the bin's mean and
variance. The error is of third order in the bin's width, except at the cut-off, where 1/Φ is singular. So
another pass counts the items of the few bins around the edge in bins 2¹² times as narrow (``window``), until
the spend of the bins at the edge is negligible. Items of equal price end in a bin of one double.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from afresh.allocation.large import item_columns
from afresh.allocation.large.cutoff import Cutoff, freshness_at
from afresh.allocation.large.item_columns import WHOLE, ItemColumns, PriceWindow
from afresh.model.roots import HUGE, TINY, solve_decreasing
from afresh.values.arrays import Float64s, Ints

_CHUNK = 1 << 15
_NARROWER = 12  # each further pass uses this many more bits of the mantissa
_AROUND = 4  # bins on either side of the edge that a further pass covers
_UNRESOLVED = 1e-8  # share of the budget that may be spent in bins at the edge
_TOO_CLOSE = 1e-9  # relative distance to the edge below which a price is needed in all digits
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Sums over items in bins of their price cost·rate/weight; ``a + b`` is the histogram of both.

    Bin i begins at the double with the bits ``start[i]`` and is 2^``shift[i]`` doubles wide. The rows of
    ``sums`` are the number of items, Σw, Σw·t and Σw·t², with the weight w and the position t in the bin.
    Items of rate 0 (static) or weight 0 (unweighted) have no bin. Histograms can be sent to other processes.

    >>> one, other = (Histogram.from_columns(ItemColumns(np.array(part))) for part in ([1.0, 2], [3.0, 4, 5]))
    >>> round((one + other).solve(5.0).multiplier, 4)  # Cho & Garcia-Molina 2000, Table 5 (b)
    0.2164
    """

    start: Ints
    shift: Ints
    sums: Float64s
    static: int = 0
    unweighted: int = 0
    static_weight: float = 0.0

    @staticmethod
    def from_columns(columns: ItemColumns, window: PriceWindow = WHOLE) -> Histogram:
        """Return the histogram of the items whose price lies in ``window``."""
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
        """Return the histogram of a table with the rows count, Σw, Σw·t, Σw·t² and a column per bin."""
        if window is not WHOLE:  # these items were already counted in an earlier pass
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
        """The sum of the weights of all items, including static items."""
        return math.fsum(self.sums[1]) + self.static_weight

    def spend(self, cutoff: Cutoff) -> float:
        """Return the cost per time of the plan with this cut-off."""
        return self._spend(cutoff, self._stretches())

    def _spend(self, cutoff: Cutoff, stretches: tuple[Float64s, Float64s]) -> float:
        place, weight = self._measure(cutoff.edge, stretches)
        return float((weight * place * cutoff.inverse_ratio(place)).sum())

    def freshness(self, cutoff: Cutoff) -> float:
        """Return the mean freshness of the plan with this cut-off, weighted by the items' weights."""
        place, weight = self._measure(cutoff.edge, self._stretches())
        y = np.minimum(place * cutoff.multiplier, 1.0)
        value = float((weight * freshness_at(y, cutoff.inverse_ratio(place))).sum())
        return (value + self.static_weight) / self.total_weight

    def dropped(self, cutoff: Cutoff) -> float:
        """Return the number of items that the plan drops; the part in the bin at the edge is approximate."""
        middle, half = self._stretches()
        with np.errstate(divide="ignore", invalid="ignore"):
            beyond = np.clip(0.5 + (middle - cutoff.edge) / (2 * half), 0.0, 1.0)
        out = middle > cutoff.edge
        if cutoff.ratio == math.inf:
            out |= middle == cutoff.edge
        beyond = np.where(half > 0, beyond, out)
        return float((self.sums[0] * beyond).sum())

    def _stretches(self) -> tuple[Float64s, Float64s]:
        """Return (middles, half lengths) of the price ranges over which the bins spread their weight."""
        low = self.start.view(np.float64)
        width = (self.start + (1 << self.shift)).view(np.float64) - low
        _, weight, first, second = self.sums
        mean = first / weight
        variance = second / weight - mean * mean
        # If all x are equal, rounding leaves about 1e−16 of mean² instead of 0.
        variance[variance < 1e-14 * mean * mean] = 0.0
        return low + mean * width, np.sqrt(3 * variance) * width

    def _measure(self, edge: float, stretches: tuple[Float64s, Float64s]) -> tuple[Float64s, Float64s]:
        """Return a tuple (prices, weights) of a few points that stand for all items below the edge.
        They are the nodes of Gauss quadrature: one in price ranges that are short compared with their
        distances from 0 and from the edge, eight in the part below the edge of ranges near it, else two."""
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
        """Return the cut-off at which the plan spends ``budget``; at least one item must have a bin.
        The search begins at the cut-off ``near``, if it is given."""
        least = float(self.start.view(np.float64)[0])
        if budget == 0:
            return Cutoff(least)
        stretches = self._stretches()
        # With a large budget y is small, where 1/Φ ≈ 1/√(2y) and C ≈ Σ w·√x/√(2μ).
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
        """Return the cut-off if the spend jumps at ``edge``, where many items have the same price.
        These items share the budget that the cheaper items leave."""
        middle, half = self._stretches()
        at = np.flatnonzero((half == 0) & (middle <= edge) & (middle > edge * (1 - 1e-8)))
        if not at.size:
            return Cutoff(edge)
        last = int(at[np.argmax(middle[at])])
        price = float(middle[last])
        left = budget - self.spend(Cutoff(price))
        return Cutoff(price, float(self.sums[1][last]) * price / left) if left > 0 else Cutoff(edge)

    def window(self, edge: float, budget: float) -> PriceWindow | None:
        """Return the range of prices at the edge that must be counted again in narrower bins.
        It is None if the spend of the bins at the edge is negligible."""
        low, high = self.start, self.start + (1 << self.shift)
        place = item_columns.double_to_bits(edge)
        close = np.flatnonzero((low - (1 << self.shift) <= place) & (place < high + (1 << self.shift)))
        middle, half = self._stretches()
        vague = (half > 0) | (np.abs(middle - edge) < _TOO_CLOSE * edge)
        close = close[vague[close] & (self.shift[close] > 0)]
        start = low[close].view(np.float64)
        width = high[close].view(np.float64) - start
        # An upper bound: the spend of these bins if they were a bin's width below the edge.
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
        """Return the histogram without the bins in ``window``, whose items are counted again."""
        begin, end = window.bounds
        keep = (self.start < begin) | (self.start >= end)
        return replace(self, start=self.start[keep], shift=self.shift[keep], sums=self.sums[:, keep])
