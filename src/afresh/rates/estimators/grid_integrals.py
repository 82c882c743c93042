"""Computes means and quantiles of many posteriors on a common grid of rates λ, in one pass.

Between the points of the grid the log posterior is a cubic in ln λ. Most posteriors are wide. These are
interpolated at the same points of a finer grid, the common nodes, and integrated there by the trapezoid rule,
which is exact up to rounding for any smooth density as wide as a cell. Quantiles also use the Euler–Maclaurin
correction. A posterior that is too narrow for this gets its own nodes, over the part of the axis that
contains its mass. Below the grid the density continues as a power of λ.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from afresh.rates.likelihood import interpolate_table
from afresh.values.arrays import Bools, Float64s, Ints

NODES = 40  # nodes of a narrow posterior, over the part of the axis that contains its mass
DEPTH = 14.0  # densities below e^−14 = 1e−6 of the maximum are left out
FINER = 6  # common nodes per octave
WIDE = 20  # a posterior that covers this many common nodes needs no nodes of its own
ROWS = 2048  # items at a time, so that their arrays stay in the cache
_THREADS = 2  # NumPy releases the GIL during most of the work


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes in ln λ (a row for each posterior, or one row for all) and the densities of posteriors there.
    ``density`` is the density under the cautious prior, ``density``·``ratio`` that under the learned prior.
    ``spacing`` is the distance between nodes in ln λ. ``static`` is the mass at a rate of 0 and ``below`` the
    mass below the first node, both in units of density · spacing. Below the first node the mean rate is
    ``mean_below`` and the density is proportional to λ^(``tail``−1)."""

    log_rate: Float64s
    density: Float64s
    ratio: Float64s
    spacing: Float64s
    static: Float64s
    below: Float64s
    mean_below: Float64s
    tail: Float64s

    def mean(self, of: Callable[[Float64s], Float64s]) -> Float64s:
        """Return the posterior mean E[of(λ)] of a function ``of`` of the rate, under the learned prior."""
        inner = of(np.exp(self.log_rate))
        under = self.below * self.ratio[..., 0]
        none = self.static * of(np.zeros(1))
        total = self._sum(np.ones(1)) + under + self.static
        return np.asarray((self._sum(inner) + under * of(self.mean_below) + none) / total)

    def _sum(self, values: Float64s) -> Float64s:
        """Return the integral of ``values`` under each posterior (learned prior), in units of the spacing.
        It is Σ values·density·ratio over the nodes; the two end nodes count half (trapezoid rule)."""
        weights = self.ratio * values
        halves = 0.5 * (self.density[:, 0] * weights[..., 0] + self.density[:, -1] * weights[..., -1])
        if len(weights) == 1:
            # The operator @ is not used, because the threads of BLAS would compete with ours.
            return np.asarray(np.einsum("ij,j->i", self.density, weights[0]) - halves)
        return np.asarray(np.einsum("ij,ij->i", self.density, weights) - halves)

    def interval(self, below: float) -> list[Float64s]:
        """Return the ends [low, high] of the credible interval under the cautious prior.
        The rate is below ``low`` and above ``high`` with probability ``below`` each. ``low`` is 0 if the item
        is static with probability ``below`` or more. ``high`` is that of an item that does change, because no
        number of polls proves that an item never changes."""
        density = self.density
        # By the trapezoid rule the mass up to node k is the sum up to k minus half its first and last term.
        mass = np.cumsum(density, axis=1)
        mass -= 0.5 * density
        mass += (self.below - 0.5 * density[:, 0])[:, None]
        total = mass[:, -1]
        wanted = below * (total + self.static) - self.static
        low = self._rate_at(mass, np.maximum(wanted, 0.0))
        return [np.where(wanted > 0.0, low, 0.0), self._rate_at(mass, (1.0 - below) * total)]

    def _rate_at(self, mass: Float64s, wanted: Float64s) -> Float64s:
        """Return the rate below which the mass is ``wanted``, without the mass at rate 0.
        ``mass`` is the mass up to each node."""
        density, last, rows = self.density, mass.shape[1] - 1, np.arange(len(mass))
        log_rate = np.broadcast_to(self.log_rate, density.shape)

        def up_to(k: Ints) -> Float64s:
            slope = density[rows, np.minimum(k + 1, last)] - density[rows, np.maximum(k - 1, 0)]
            inner = (k > 0) & (k < last)
            return np.asarray(mass[rows, k] - np.where(inner, slope / 24.0, 0.0))

        k = np.clip(np.count_nonzero(mass < wanted[:, None], axis=1), 1, last)
        start, end = up_to(k - 1), up_to(k)
        share = _share_of_cell(density[rows, k - 1], density[rows, k], wanted - start, end - start)
        spot = log_rate[rows, k - 1] + share * self.spacing
        lower = (wanted < self.below) & (wanted > 0.0)
        power = np.log(np.where(lower, wanted, 1.0) / np.where(lower, self.below, 1.0)) / self.tail
        return np.asarray(np.exp(np.where(lower, log_rate[:, 0] + power, spot)))


def _share_of_cell(left: Float64s, right: Float64s, rest: Float64s, whole: Float64s) -> Float64s:
    """Return the position (0 to 1) in a cell at which its mass up to there is ``rest``.
    ``whole`` is the mass of the cell. The density in the cell is assumed to be linear from ``left`` to
    ``right``, times a factor that gives the mass ``whole``."""
    straight = 0.5 * (left + right)
    tiny = np.finfo(float).tiny
    whole = np.maximum(whole, 0.0)
    rest = np.clip(rest, 0.0, whole) / np.maximum(whole, tiny) * straight
    root = np.sqrt(np.maximum(left * left + 2.0 * (right - left) * rest, 0.0))
    return np.asarray(np.minimum(2.0 * rest / np.maximum(left + root, tiny), 1.0))


@dataclass(frozen=True, slots=True)
class PosteriorRows:
    """The log-likelihoods of some items (rows) on the grid, and their priors.
    ``kind`` is the row of each item's prior in ``log_prior``, ``log_cautious`` and ``tail``. ``log_static``
    are the log prior odds that each item is static."""

    rates: Float64s
    log_likelihood: Float64s
    kind: Ints
    log_prior: Float64s
    log_cautious: Float64s
    tail: Float64s
    log_static: Float64s

    @property
    def step(self) -> float:
        """The distance between two points of the grid in ln λ."""
        return float(np.log(self.rates[1] / self.rates[0]))

    def wide(self) -> tuple[Nodes, Bools]:
        """Return a tuple (nodes, enough): all posteriors on the common nodes, and which are wide enough."""
        height = self.log_likelihood + self.log_cautious[self.kind]
        height, rates = interpolate_table(height, self.rates, FINER)
        top = height.max(axis=1)
        height -= top[:, None]
        enough = np.count_nonzero(height > -DEPTH, axis=1) >= WIDE
        density = np.exp(height, out=height)
        log_ratio, _ = interpolate_table(self.log_prior - self.log_cautious, self.rates, FINER)
        ratio = np.exp(log_ratio)
        ratio = ratio if len(ratio) == 1 else ratio[self.kind]
        spacing = np.full(len(density), np.log(rates[1] / rates[0]))
        static = np.exp(self.log_static - top)
        return self._nodes(np.log(rates)[None], density, ratio, spacing, static, self.kind), enough

    def narrow(self, which: Bools) -> Nodes:
        """Return the posteriors of the items marked in ``which``, each on its own nodes."""
        kind = self.kind[which]
        axis, height = _narrow_nodes(self.log_likelihood[which] + self.log_cautious[kind])
        return self.on_nodes(kind, axis, height, self.log_static[which])

    def on_nodes(self, kind: Ints, axis: Float64s, height: Float64s, log_static: Float64s) -> Nodes:
        """Return the nodes at the positions ``axis`` (in grid cells) with the log posterior ``height`` there.
        ``kind`` and ``log_static`` are those of the rows."""
        top = height.max(axis=1, initial=-np.inf)
        density = np.exp(height - top[:, None])
        ratio = np.exp(interpolate_cubic((self.log_prior - self.log_cautious)[kind], axis))
        spacing, log_rate = self.step * (axis[:, 1] - axis[:, 0]), np.log(self.rates[0]) + self.step * axis
        nodes = self._nodes(log_rate, density, ratio, spacing, np.exp(log_static - top), kind)
        return replace(nodes, below=np.where(axis[:, 0] == 0.0, nodes.below, 0.0))

    def _nodes(
        self,
        log_rate: Float64s,
        density: Float64s,
        ratio: Float64s,
        spacing: Float64s,
        static: Float64s,
        kind: Ints,
    ) -> Nodes:
        """Return the nodes of an integral over the rate of each item (row).

        ``density`` is that of the log rate at ``log_rate``, ``spacing`` the distance of two nodes, ``ratio``
        the factor between two rates, ``static`` the mass at rate 0, and ``kind`` the prior of each item.
        ``Nodes`` keeps the mass at rate 0 and the mass below the first node beside the nodes.
        """
        own = self.tail[kind]
        below, mean_below = density[:, 0] / (own * spacing), self.rates[0] * own / (own + 1.0)
        static = static * (self.step / spacing)
        return Nodes(log_rate, density, ratio, spacing, static, below, mean_below, own)


def map_parts(items: int, job: Callable[[slice], T], rows: int = ROWS) -> list[T]:
    """Call ``job`` for slices of ``rows`` items that cover all items, on two threads; return the results.

    >>> map_parts(5, lambda part: (part.start, part.stop), rows=3)
    [(0, 3), (3, 5)]
    """
    parts = [slice(begin, min(begin + rows, items)) for begin in range(0, max(items, 1), rows)]
    if len(parts) < 2 * _THREADS:
        return [job(part) for part in parts]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(job, parts))


def even_nodes(table: Float64s, low: Float64s, high: Float64s) -> tuple[Float64s, Float64s]:
    """Return a tuple (axis, values): ``NODES`` evenly spaced positions from column ``low`` to column ``high``
    of each row of the table, and the interpolated values there."""
    axis = low[:, None] + (high - low)[:, None] * (np.arange(NODES) / (NODES - 1))
    return axis, interpolate_cubic(table, axis)


def interpolate_cubic(table: Float64s, axis: Float64s) -> Float64s:
    """Interpolate each row of the table at the fractional columns ``axis``, by cubics through 4 points.

    >>> interpolate_cubic(np.array([[0.0, 1.0, 8.0, 27.0, 64.0]]), np.array([[0.5, 3.5]])).tolist()
    [[0.125, 42.875]]
    """
    points = table.shape[1]
    left = np.clip(axis.astype(np.int64) - 1, 0, points - 4)
    x = axis - left
    flat = (left + (np.arange(len(left)) * points)[:, None]).ravel()
    values = table.ravel()
    f0, f1, f2, f3 = (values[flat + k].reshape(x.shape) for k in range(4))
    # Newton's form of the cubic through (0, f0) … (3, f3).
    d1, d2, d3 = f1 - f0, f2 - 2 * f1 + f0, f3 - 3 * (f2 - f1) - f0
    return np.asarray(f0 + x * (d1 + (x - 1) * (d2 / 2 + (x - 2) * (d3 / 6))))


def _narrow_nodes(log_posterior: Float64s) -> tuple[Float64s, Float64s]:
    """Return a tuple (axis, height): for every row nodes (in grid cells) over the part of the axis that
    contains its posterior, and the log posterior there."""
    low, high = (end.astype(np.float64) for end in _span(log_posterior))
    axis, height = even_nodes(log_posterior, low, high)
    rows = np.arange(len(log_posterior))
    for _ in range(12):  # each pass at least halves the span, so the last is 1/4000 of the first
        first, last = _span(height[rows])
        narrow = last - first <= NODES // 2
        if not np.any(narrow):
            break
        rows, first, last = rows[narrow], first[narrow], last[narrow]
        axis[rows], height[rows] = even_nodes(log_posterior[rows], axis[rows, first], axis[rows, last])
    return axis, height


def _span(height: Float64s) -> tuple[Ints, Ints]:
    """Return a tuple (first, last): the columns just before and after the part of each row that is within
    ``DEPTH`` of its maximum."""
    above = height > height.max(axis=1, keepdims=True) - DEPTH
    columns = height.shape[1]
    first = np.maximum(above.argmax(axis=1) - 1, 0)
    last = np.minimum(columns - above[:, ::-1].argmax(axis=1), columns - 1)
    return first, last
