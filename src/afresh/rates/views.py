"""The rates of views: a view changes when one of its base items does, so its rate is the sum of their rates.

Independent Poisson changes add up: λ_view = Σ λ_base over the distinct bases (Zhang et al. 2007, §4 and Fig.
3). A view may depend on other views to any depth. A base that is reached along several paths counts once, so
rates cannot simply be added along the graph. Sets of bases are bit masks, one block of bases at a time. Only
the views above the block are visited, each after the views that it depends on, without recursion.

The variances of the bases' rates add up as well. The credible interval of a view is that of the Gamma
distribution with the resulting mean and variance. The variance of a base is the larger of two values, because
posteriors are skewed and each value alone is too small for some items. One assumes that the credible interval
is 2z standard deviations wide (z is the normal quantile of its level). The other is the variance of the Gamma
distribution with the same mean and lower end. If the lower ends of all bases are 0, so is that of the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from afresh.rates.estimator import posterior_shape
from afresh.values.arrays import Float64s, nonnegative
from afresh.values.errors import InputError, did_you_mean
from afresh.values.results import RateEstimates

_BLOCK = 4096  # bases per mask of 512 bytes: few passes, and the masks of 1e5 views take 50 MB


@dataclass(frozen=True, slots=True)
class ViewGraph:
    """Views, and the items and views that they depend on; built by ``ViewGraph.of``.
    ``views`` and ``bases`` are names in order of first appearance. Nodes are numbered: first the bases, then
    the views, each after the views that it depends on. For the views in this numbering, ``parts`` lists the
    nodes that each depends on directly, and ``place`` is the position of each in ``views``. ``above`` lists
    for every node the views that depend on it directly."""

    views: tuple[str, ...]
    bases: tuple[str, ...]
    parts: tuple[tuple[int, ...], ...]
    above: tuple[tuple[int, ...], ...]
    place: tuple[int, ...]

    @classmethod
    def of(cls, view: Iterable[str], base: Iterable[str]) -> ViewGraph:
        """Return the graph of the dependencies: ``view[j]`` depends on ``base[j]``, an item or another view.

        >>> graph = ViewGraph.of(["V1", "V1", "V2", "V2"], ["R", "S", "V1", "S"])
        >>> graph.views, graph.bases
        (('V1', 'V2'), ('R', 'S'))
        """
        wholes, below = [str(name) for name in view], [str(name) for name in base]
        if len(wholes) != len(below):
            raise InputError(f"{len(wholes)} views and {len(below)} bases: give one base for each view")
        parts_of: dict[str, dict[str, None]] = {name: {} for name in wholes}
        for whole, part in zip(wholes, below, strict=True):
            parts_of[whole][part] = None
        bases = tuple(dict.fromkeys(name for name in below if name not in parts_of))
        order = _parts_first(parts_of)
        number = {name: at for at, name in enumerate((*bases, *order))}
        parts = tuple(tuple(number[part] for part in parts_of[name]) for name in order)
        position = {name: at for at, name in enumerate(parts_of)}
        place = tuple(position[name] for name in order)
        above: list[list[int]] = [[] for _ in number]
        for whole_at, nodes in enumerate(parts, start=len(bases)):
            for node in nodes:
                above[node].append(whole_at)
        return cls(tuple(parts_of), bases, parts, tuple(map(tuple, above)), place)

    def rates(self, base_rates: Mapping[str, float]) -> Float64s:
        """Return the rate of each view, in the order of ``views``, from the rates of the bases by name.
        If ``base_rates`` contains rates of views, they are ignored.

        >>> ViewGraph.of(["V1", "V1", "V2", "V2"], ["R", "S", "V1", "S"]).rates({"R": 1, "S": 2}).tolist()
        [3.0, 3.0]
        """
        missing = next((name for name in self.bases if name not in base_rates), None)
        if missing is not None:
            hint = did_you_mean(missing, base_rates)
            raise InputError(f"a view depends on {missing!r}, which is neither an item nor a view{hint}")
        given = np.asarray(nonnegative("base rate", [base_rates[name] for name in self.bases]), np.float64)
        total = np.zeros(len(self.views))
        for start in range(0, len(self.bases), _BLOCK):
            self._add_block(start, given[start : start + _BLOCK], total)
        return total

    def _add_block(self, start: int, rates: Float64s, total: Float64s) -> None:
        """Add the rates of one block of bases, from ``start`` on, to ``total`` of every view above them."""
        first = len(self.bases)
        masks = {start + bit: 1 << bit for bit in range(rates.size)}
        sums = dict(zip(masks, rates.tolist(), strict=True))
        for node in sorted(_reachable(list(masks), self.above)):
            if node < first:
                continue
            mask, rate = 0, 0.0
            for part in self.parts[node - first]:
                other = masks.get(part, 0)
                new = other & ~mask
                if new == other:  # no base of the part was counted before
                    rate += sums.get(part, 0.0)
                elif mask & other == mask:  # the part contains all bases counted so far
                    rate = sums[part]
                elif new:
                    packed = np.frombuffer(new.to_bytes(_BLOCK // 8, "little"), np.uint8)
                    rate += float(rates[np.unpackbits(packed, bitorder="little", count=rates.size) > 0].sum())
                mask |= other
            masks[node], sums[node] = mask, rate
            total[self.place[node - first]] += rate


def with_views(
    names: Sequence[str], found: RateEstimates, view: Sequence[str], base: Sequence[str], level: float = 0.9
) -> tuple[tuple[str, ...], RateEstimates]:
    """Return a tuple (views, estimates): the names of the views, and ``found`` with a row more for each view.
    ``names`` are the items of ``found``. ``view[j]`` depends on ``base[j]``. ``level`` is the probability of
    the intervals [low, high].

    >>> ends = np.array([0.5, 1.0])
    >>> bases = RateEstimates(ends, ends / 2, ends * 2, np.array([4, 4]), np.array([2, 3]), "grid")
    >>> added, all_of = with_views(["R", "S"], bases, ["V", "V"], ["R", "S"])
    >>> added, all_of.rate.tolist(), all_of.changes.tolist()
    (('V',), [0.5, 1.0, 1.5], [2, 3, 5])
    """
    from scipy.special import gammaincinv, ndtri

    graph = ViewGraph.of(view, base)
    polled = set(names)
    twice = next((name for name in graph.views if name in polled), None)
    if twice is not None:
        raise InputError(f"{twice!r} is a view and was polled itself: give the view another name")
    if not np.all(np.isfinite(found.rate)):
        raise InputError(f"method {found.method!r} gives infinite rates, which cannot be summed: use grid")
    deviation = (found.high - found.low) / (2 * ndtri((1 + level) / 2))

    def summed(column: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return graph.rates(dict(zip(names, np.asarray(column, dtype=float).tolist(), strict=True)))

    skewed = found.rate / np.sqrt(posterior_shape(found.rate, found.low, level))
    rate, variance = summed(found.rate), summed(np.minimum(np.maximum(deviation, skewed), 1e150) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = np.where(variance > 0, rate**2 / variance, np.inf)
        scale = np.where(variance > 0, variance / rate, 0.0)
        tails = ((1 - level) / 2, (1 + level) / 2)
        low, high = (np.where(variance > 0, scale * gammaincinv(shape, tail), rate) for tail in tails)
    low = np.where(summed(found.low) > 0, low, 0.0)
    polls, changes = (summed(column).astype(np.int64) for column in (found.polls, found.changes))
    added = {"rate": rate, "low": low, "high": high, "polls": polls, "changes": changes}
    every: Any = {name: np.append(getattr(found, name), column) for name, column in added.items()}
    return graph.views, RateEstimates(**every, method=found.method)


def sum_rates(
    rate: Float64s, low: Float64s, high: Float64s, level: float = 0.9
) -> tuple[float, float, float]:
    """Return a tuple (rate, low, high) of one view of items with these rates, as ``with_views`` finds it.

    >>> one = np.array([0.5]), np.array([0.5]), np.array([0.5])
    >>> sum_rates(*one), sum_rates(*(np.repeat(each, 4) for each in one))
    ((0.5, 0.5, 0.5), (2.0, 2.0, 2.0))
    """
    names, none = [str(at) for at in range(rate.size)], np.zeros(rate.size, dtype=np.int64)
    items = RateEstimates(rate, low, high, none, none, "grid")
    found = with_views(names, items, ["view"] * rate.size, names, level)[1]
    return float(found.rate[-1]), float(found.low[-1]), float(found.high[-1])


def _parts_first(parts_of: Mapping[str, Mapping[str, None]]) -> list[str]:
    """Return the views, each after those that it depends on; raise ``InputError`` if there is a cycle."""
    try:
        order = list(TopologicalSorter(parts_of).static_order())
    except CycleError as error:
        circle = error.args[1][::-1]  # from each view to one that it depends on
        if len(circle) > 12:
            circle = [*circle[:6], f"… {len(circle) - 11} more …", *circle[-5:]]
        raise InputError(f"views depend on each other in a circle: {' → '.join(circle)}") from None
    return [name for name in order if name in parts_of]


def _reachable(start: Sequence[int], edges: Sequence[Sequence[int]]) -> set[int]:
    reached, waiting = set(start), list(start)
    while waiting:
        for node in edges[waiting.pop()]:
            if node not in reached:
                reached.add(node)
                waiting.append(node)
    return reached
