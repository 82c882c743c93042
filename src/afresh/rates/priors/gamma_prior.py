"""The Gamma prior: what is believed about the rate λ of an item before any poll of it, and how it is learned.

Its density is b^a λ^{a−1} e^{−bλ} / Γ(a). It has the same weight as a changes that were seen in a time b.

The prior is learned from the items themselves (empirical Bayes), for each group of items. Candidates are all
combinations of some shapes a and means a/b (a lattice). The candidate that maximises
Σ_i ln ∫Gamma(λ; a, b) L_i(λ) dλ is chosen, where L_i is the likelihood of item i and the integral is a sum
over the cells of the grid of rates. A parabola through the neighbours refines the choice. This is too coarse
for nearly equal rates, because the cells are wide, and for many items, because the peak is narrow. So for all
items together, and for groups of at least ``MANY`` items, hill climbing on a finer grid follows.

The priors form a hierarchy. ln a and ln(a/b) of a group are assumed to be normal around those of all items,
with the standard deviations ``GROUPS``. Those of all items are assumed to be normal around the weak prior,
with the standard deviations ``WHOLE``. So a group of one or two items stays near the prior of all items, and
a group of hundreds gets its own prior. A few items cannot determine the prior of a population, and their
polls would be used twice, as evidence and in the prior. So while there are few items, the prior of all items
stays near the weak prior: its standard deviations are at most ``FEW``·√items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.likelihood import interpolate_table, log_likelihood, rate_grid, scale_to_maximum
from afresh.rates.log_ratio import check_level
from afresh.rates.poll_table import PollTable
from afresh.rates.segments import whole_groups
from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.errors import InputError

LEAST_MASS = 1e-200  # least mass of a cell, so that the likelihood decides if a prior would underflow
WEAK_SHAPE = 0.5  # Jeffreys' prior for a Poisson rate: half a change


@dataclass(frozen=True, slots=True)
class GammaPrior:
    """The shape a and rate parameter b (a time) of Gamma priors: one entry for all items, or one per item.

    >>> GammaPrior.of(2.0, 4.0).mean().tolist()
    [0.5]
    """

    shape: Float64s
    rate: Float64s

    @classmethod
    def of(cls, shape: float, rate: float) -> GammaPrior:
        """Return the same prior for every item."""
        return cls(np.array([shape], dtype=np.float64), np.array([rate], dtype=np.float64))

    def __post_init__(self) -> None:
        for name, value in (("shape", self.shape), ("rate", self.rate)):
            if value.size and not (value.min() > 0 and value.max() < np.inf):
                raise InputError(f"the {name} of a Gamma prior must be above 0 and finite, not {value}")

    def for_items(self, items: int) -> GammaPrior:
        if self.shape.size not in (1, items):
            raise InputError(f"a prior of {self.shape.size} rows does not fit {items} items")
        return GammaPrior(*(np.broadcast_to(v, items).copy() for v in (self.shape, self.rate)))

    def distinct(self) -> tuple[GammaPrior, Ints]:
        """Return a tuple (priors, row): the distinct priors, and for each entry the index of its prior."""
        _, first, row = np.unique(self.shape + 1j * self.rate, return_index=True, return_inverse=True)
        return GammaPrior(self.shape[first], self.rate[first]), row.astype(np.int64)

    def mean(self) -> Float64s:
        """Return the mean rate a/b."""
        return self.shape / self.rate

    def interval(self, level: float) -> tuple[Float64s, Float64s]:
        """Return a tuple (low, high): the equal-tailed interval of the rate with probability ``level``."""
        return gamma_interval(self.shape, self.rate, level)


def weak_prior(polls: PollTable) -> GammaPrior:
    """Return the prior to use if nothing else is known: half a change in half a mean polling interval.
    Without polls it is half a change in half a unit of time.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> weak_prior(polls_from_intervals([2.0, 6.0], [True, False], item=[0, 0])).mean().tolist()
    [0.25]
    """
    unit = float(polls.elapsed.mean()) if polls.size else 1.0
    return GammaPrior.of(WEAK_SHAPE, WEAK_SHAPE * unit)


def gamma_interval(shape: Float64s, rate: Float64s, level: float) -> tuple[Float64s, Float64s]:
    """Return a tuple (low, high): the interval that contains a rate of distribution Gamma(``shape``,
    ``rate``) with probability ``level``, and has the same probability below and above.

    >>> low, high = gamma_interval(np.array([1.0]), np.array([1.0]), 0.9)
    >>> bool(np.isclose(low[0], -np.log(0.95))), bool(np.isclose(high[0], -np.log(0.05)))
    (True, True)
    """
    from scipy.special import gammaincinv

    tail = (1.0 - check_level(level)) / 2.0
    return gammaincinv(shape, tail) / rate, gammaincinv(shape, 1.0 - tail) / rate


def cell_masses(prior: GammaPrior, rates: Float64s) -> Float64s:
    """Return the probability of each cell of the grid (column) under each prior (row).
    The edges of cells are the midpoints between grid points in ln λ; the first edge is 0, the last is ∞.

    >>> cell_masses(GammaPrior.of(1.0, 1.0), np.array([0.5, 1.0, 2.0])).sum().round(12).item()
    1.0
    """
    edges = np.sqrt(rates[1:] * rates[:-1])
    return _masses_between(*_tails(prior.shape[:, None], prior.rate[:, None] * edges))


def _tails(shape: Float64s, at: Float64s) -> tuple[Float64s, Float64s]:
    """Return the probabilities below and above ``at`` under Gamma(shape, 1), with a row per shape."""
    from scipy.special import gammainc, gammaincc

    # The larger tail is 1 minus the smaller one: to compute it by itself would take as long again.
    is_left, shapes = at < shape, np.broadcast_to(shape, at.shape)
    below, above = np.empty_like(at), np.empty_like(at)
    below[is_left] = gammainc(shapes[is_left], at[is_left])
    above[~is_left] = gammaincc(shapes[~is_left], at[~is_left])
    above[is_left], below[~is_left] = 1.0 - below[is_left], 1.0 - above[~is_left]
    return below, above


def _masses_between(below: Float64s, above: Float64s) -> Float64s:
    """Return the probability of each cell from the tails at its inner edges, with a row per prior."""
    none, full = np.zeros((len(below), 1)), np.ones((len(below), 1))
    below, above = np.hstack((none, below, full)), np.hstack((full, above, none))
    # The difference is taken of the smaller tail, so that cells far out in a tail keep a mass above 0.
    masses = np.where(below[:, 1:] < 0.5, np.diff(below, axis=1), -np.diff(above, axis=1))
    return np.maximum(masses, LEAST_MASS)


GROUPS = (0.7, 0.7)  # standard deviations of ln a and of ln(a/b); so are WHOLE and FEW
WHOLE = (1.0, 4.0)
FEW = (0.3, 0.7)
SHAPES = np.geomspace(0.05, 51.2, 21)  # two per octave
ITEMS_ENOUGH = 20_000  # this many items suffice to learn a prior; of more items, every k-th is used
ENOUGH_TO_START = 4000  # this many items suffice to find the lattice point from which the climb starts
LEAST_PER_GROUP = 8
MANY = 100  # for a group of this many items the lattice is too coarse
FINE = 8  # rates per octave for the climb
CLIMB, CLOSE_ENOUGH = 40, 0.01  # the largest number of steps; the step width in ln a and ln(a/b) that ends it


def fit_gamma(polls: PollTable, groups: Ints | None = None) -> GammaPrior:
    """Learn a Gamma prior from the polls: of all items or, with ``groups``, of each item's group.
    ``groups`` is the group number of each item. The result has an entry per item, without groups only one.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> rng = np.random.default_rng(1)
    >>> item = np.repeat(np.arange(4000), 10)
    >>> rates = rng.gamma(2.0, 0.25, 4000)[item]
    >>> changed = rng.random(40000) < -np.expm1(-rates)
    >>> prior = fit_gamma(polls_from_intervals(np.ones(40000), changed, item=item))
    >>> abs(prior.mean()[0] - 0.5) < 0.03, abs(prior.shape[0] - 2.0) < 0.3
    (np.True_, np.True_)
    """
    sample = sample_items(polls.items, groups)
    part = polls if sample is None else polls.of_items(sample)
    rates = rate_grid(polls)
    table, weak = log_likelihood(part, rates), weak_prior(polls)
    if groups is None:
        return fit_gamma_table(table, rates, weak)
    of_part = groups if sample is None else groups[sample]
    by_group = fit_gamma_groups(table, rates, of_part, weak)
    return GammaPrior(by_group.shape[groups], by_group.rate[groups])


def fit_gamma_table(
    table: Float64s,
    rates: Float64s,
    parent: GammaPrior,
    *,
    static: Float64s | None = None,
    start: GammaPrior | None = None,
) -> GammaPrior:
    """Learn one Gamma prior from a table of log-likelihoods with a row per item and a column per rate.
    It stays loosely near ``parent``. ``static`` is for each row ln(odds of a rate of 0 · likelihood at 0), or
    None if no item is static. ``start`` is the start of the climb; by default the best point of a lattice."""
    polled = max(1.0, float(np.count_nonzero(np.any(table, axis=1))))
    loosely = (min(WHOLE[0], FEW[0] * polled**0.5), min(WHOLE[1], FEW[1] * polled**0.5))
    if start is None:
        lattice, every = _Lattice.of(rates), -(-max(1, len(table)) // ENOUGH_TO_START)
        scores = lattice.scores(table[::every], None if static is None else static[::every]).sum(0)
        start = lattice.best((every * scores + _near(lattice.candidates, parent, loosely))[None])
    return _climb(table, rates, start, parent, loosely, static)


@dataclass(frozen=True, slots=True)
class _Lattice:
    """Candidate Gamma priors, with every shape of ``SHAPES`` and every rate of the grid as mean, and the
    probabilities (``masses``) of the grid's cells under each."""

    means: Float64s
    candidates: GammaPrior
    masses: Float64s

    @classmethod
    def of(cls, rates: Float64s) -> _Lattice:
        shape, mean = (grid.ravel() for grid in np.meshgrid(SHAPES, rates, indexing="ij"))
        # The rates are evenly spaced in ln λ and the means are the same rates, so edge/mean depends only on
        # how many steps lie between them: 2n tails per shape are enough for all n² pairs.
        n, step = rates.size, rates[1] / rates[0]
        edge_to_mean = step ** (np.arange(1 - n, n - 1) + 0.5)
        tails = _tails(SHAPES[:, None], SHAPES[:, None] * edge_to_mean)
        windows = (np.lib.stride_tricks.sliding_window_view(tail, n - 1, axis=1) for tail in tails)
        masses = _masses_between(*(window[:, ::-1].reshape(shape.size, n - 1) for window in windows))
        return cls(rates, GammaPrior(shape, shape / mean), masses)

    def scores(self, table: Float64s, static: Float64s | None = None) -> Float64s:
        """Return ln ∫ Gamma·likelihood of every item (row) under every candidate (column)."""
        return _log_mixed(table, self.masses, static)

    def best(self, scores: Float64s) -> GammaPrior:
        """Return the best candidate of each row of scores, refined by parabolas through its neighbours."""
        rows = np.arange(len(scores))
        surface = scores.reshape(-1, SHAPES.size, self.means.size)
        i, j = np.divmod(scores.argmax(1), self.means.size)
        di = _peak(surface[rows, :, j], i)
        dj = _peak(surface[rows, i, :], j)
        shape = np.exp(np.log(SHAPES[i]) + di * np.log(SHAPES[1] / SHAPES[0]))
        mean = np.exp(np.log(self.means[j]) + dj * np.log(self.means[1] / self.means[0]))
        return GammaPrior(shape, shape / mean)


def _log_mixed(
    table: Float64s, masses: Float64s, static: Float64s | None, likelihood: Float64s | None = None
) -> Float64s:
    """Return ln ∫ prior·likelihood of each item (row) under each candidate prior (column).

    ``table`` has the log-likelihoods of an item in each row, ``masses`` the cell masses of a candidate. The
    largest log-likelihood of an item is subtracted from its row. ``likelihood`` is exp of the table scaled
    in this way, if it was computed before; ``static`` is as in ``fit_gamma_table``.
    """
    mixed = (scale_to_maximum(table) if likelihood is None else likelihood) @ masses.T
    if static is not None:
        mixed += np.exp(static - table.max(axis=1))[:, None]
    return np.log(np.maximum(mixed, np.finfo(float).tiny))


def _near(candidates: GammaPrior, parent: GammaPrior, deviations: tuple[float, float]) -> Float64s:
    """Return the log density of each candidate if ln a and ln(a/b) are normal around ``parent``."""
    shape = np.log(candidates.shape / parent.shape[0]) / deviations[0]
    mean = np.log(candidates.mean() / parent.mean()[0]) / deviations[1]
    return np.asarray(-0.5 * (shape * shape + mean * mean))


def _climb(
    table: Float64s,
    rates: Float64s,
    start: GammaPrior,
    parent: GammaPrior,
    deviations: tuple[float, float],
    static: Float64s | None,
) -> GammaPrior:
    """Return the best prior by hill climbing from ``start`` in ln a and ln(a/b): go to the best of eight
    neighbours, or halve the step. ``deviations`` say how close to ``parent`` the prior stays."""
    finer_table, grid = interpolate_table(table, rates, FINE)
    likelihood = scale_to_maximum(finer_table)
    bounds = np.log([[SHAPES[0], rates[0]], [SHAPES[-1], rates[-1]]])
    around = np.array([(0, 0), *((i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)])
    at, step = np.clip(np.log([start.shape[0], start.mean()[0]]), *bounds), 0.2
    for _ in range(CLIMB):
        shape, mean = np.exp(np.clip(at + step * around, *bounds)).T
        candidates = GammaPrior(shape, shape / mean)
        scores = _log_mixed(finer_table, cell_masses(candidates, grid), static, likelihood).sum(axis=0)
        best = int(np.argmax(scores + _near(candidates, parent, deviations)))
        at = np.log([shape[best], mean[best]])
        if best == 0:
            step /= 2.0
        if step < CLOSE_ENOUGH:
            break
    return GammaPrior.of(float(np.exp(at[0])), float(np.exp(at[0] - at[1])))


def _peak(lines: Float64s, at: Ints) -> Float64s:
    """Return the offset (−½ to ½ steps) of the peak of the parabola through three points of each line: its
    maximum, which is at ``at``, and its two neighbours."""
    rows, last = np.arange(len(lines)), lines.shape[1] - 1
    middle = lines[rows, at]
    left = middle - lines[rows, np.maximum(at - 1, 0)]
    right = middle - lines[rows, np.minimum(at + 1, last)]
    inner = (at > 0) & (at < last) & (left + right > 0)
    return np.where(inner, 0.5 * (left - right) / np.where(inner, left + right, 1.0), 0.0)


def fit_gamma_groups(
    table: Float64s, rates: Float64s, groups: Ints, parent: GammaPrior, *, static: Float64s | None = None
) -> GammaPrior:
    """Learn a Gamma prior for each group of rows of a table of log-likelihoods; ``groups`` numbers the rows.
    The priors stay near the prior of all rows, which stays loosely near ``parent``."""
    everyone = fit_gamma_table(table, rates, parent, static=static)
    number = int(groups.max(initial=0)) + 1
    lattice = _Lattice.of(rates)
    near = _near(lattice.candidates, everyone, GROUPS)
    shape, rate = np.repeat(everyone.shape, number), np.repeat(everyone.rate, number)
    order = np.argsort(groups, kind="stable")
    present, starts = np.unique(groups[order], return_index=True)
    for begin, end in whole_groups(starts, groups.size):
        rows = order[starts[begin] : starts[end] if end < starts.size else groups.size]
        scores = lattice.scores(table[rows], None if static is None else static[rows])
        fitted = lattice.best(np.add.reduceat(scores, starts[begin:end] - starts[begin], axis=0) + near)
        shape[present[begin:end]], rate[present[begin:end]] = fitted.shape, fitted.rate
    sizes = np.diff(np.append(starts, groups.size))
    for k in np.flatnonzero(sizes >= MANY):
        group, rows = present[k], order[starts[k] : starts[k] + sizes[k]]
        first = GammaPrior.of(shape[group], rate[group])
        of_rows = None if static is None else static[rows]
        fitted = _climb(table[rows], rates, first, everyone, GROUPS, of_rows)
        shape[group], rate[group] = fitted.shape[0], fitted.rate[0]
    return GammaPrior(shape, rate)


def sample_items(items: int, groups: Ints | None = None) -> Bools | None:
    """Return which items to use: every k-th of each group, about ``ITEMS_ENOUGH`` in all, or None for all.

    >>> sample_items(50_000).sum().item(), sample_items(20_000)
    (16667, None)
    """
    if items <= ITEMS_ENOUGH:
        return None
    of_group = np.zeros(items, dtype=np.int64) if groups is None else groups
    sizes = np.bincount(of_group)
    most = max(LEAST_PER_GROUP, ITEMS_ENOUGH // max(1, int(np.count_nonzero(sizes))))
    order = np.argsort(of_group, kind="stable")
    rank = np.empty(items, dtype=np.int64)
    rank[order] = np.arange(items) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    every = np.maximum(-(-sizes // most), 1)
    return np.asarray(rank % every[of_group] == 0)
