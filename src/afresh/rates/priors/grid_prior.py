"""Priors beside the Gamma: the lognormal, a mass of items that never change, and one of no particular form.

The items themselves decide between the Gamma and the lognormal. Where polls tell little of the fastest items,
the form of the prior decides how fast these may be; a Gamma ends where a lognormal goes on. Both are fitted
to the items, and each counts by the probability of the items under it, the Gamma e^``FORM_MARGIN`` times
that. After ten polls of 2000 items it is clearly one or the other.

    posterior of each item on the grid → mean m and deviation s of ln λ over all of them → the next prior (EM)

Items that never change are a point mass at rate 0 beside the prior of the items that do. A Gamma of small
shape looks much like it, and where that explains the polls as well there is no such mass: the share is above
0 only if the polls are then more likely by ``STATIC_MARGIN`` (of ln). Where it is, an item never seen to
change may be static, and its interval reaches down to 0.

The prior of no form is the probabilities of the grid's rates, by EM over the items. EM starts from the fitted
Gamma, mixed with a little of a flat prior on the grid (``flat_share``): EM only multiplies, and where items
of very different rates share a log, a Gamma may leave 1e−77 to the rates of some. Each step is followed by a
little smoothing (EMS, Silverman et al. 1990) towards that start, and there are few steps: the unsmoothed
maximum puts all mass on a few points. Where the polls cannot tell rates apart, the Gamma's proportions
remain. A group borrows from the whole as much as ``BORROWED`` more items would tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.rates.likelihood import scale_to_maximum
from afresh.rates.priors.gamma_prior import ITEMS_ENOUGH, LEAST_MASS, GammaPrior, cell_masses, fit_gamma_table
from afresh.rates.segments import whole_groups
from afresh.values.arrays import Bools, Float64s, Ints

FORM_ITEMS = 4000  # that settle it: of more every k-th
FORM_MARGIN = 3.0  # of ln: where nothing tells them apart, the Gamma's intervals are the better ones
FEWEST_FOR_FORM = 50  # items below which the form cannot be decided, and the Gamma stays
FORM_STEPS = 40
NARROWEST = 0.1  # of a deviation of ln λ, within which a rate is one rate


@dataclass(frozen=True, slots=True)
class LogNormalPrior:
    """Normal ln λ of mean ``mean`` and standard deviation ``deviation``.

    >>> LogNormalPrior(0.0, 1.0).cell_masses(np.array([0.5, 1.0, 2.0])).round(3).tolist()
    [0.364, 0.271, 0.364]
    """

    mean: float
    deviation: float

    def cell_masses(self, rates: Float64s) -> Float64s:
        """Probability of each cell of the grid, edges half-way in ln λ, the end cells open."""
        from scipy.special import ndtr

        edges = 0.5 * (np.log(rates[1:]) + np.log(rates[:-1]))
        below = ndtr((edges - self.mean) / self.deviation)
        masses = np.diff(np.concatenate(([0.0], below, [1.0])))
        return np.maximum(masses, LEAST_MASS)

    def mixed_density(self, log_density: Float64s, rates: Float64s, probable: float) -> Float64s:
        """ln of a density per cell at the grid's points, with the share ``probable`` of this one's in it."""
        x = (np.log(rates) - self.mean) / self.deviation
        scale = np.log(rates[1] / rates[0]) / (self.deviation * np.sqrt(2.0 * np.pi))
        own = np.maximum(scale * np.exp(-0.5 * x * x), LEAST_MASS)
        rest = np.log1p(-min(probable, 1.0 - 1e-16))
        return np.asarray(np.logaddexp(log_density + rest, np.log(own) + np.log(probable)))


def fit_lognormal(
    table: Float64s, rates: Float64s, gamma: Float64s, counts: Float64s
) -> tuple[LogNormalPrior, float]:
    """The lognormal that makes the rows most likely, and its probability against the Gamma's.

    ``gamma`` are the cell masses of the fitted Gamma; ``counts`` say how much each row counts.

    >>> from afresh.rates.priors.gamma_prior import GammaPrior, cell_masses
    >>> grid = np.exp2(np.arange(-12.0, 8.0))
    >>> rates = np.exp(np.random.default_rng(0).normal(0.0, 2.0, 400))
    >>> table = 30 * (np.log(grid) - grid / rates[:, None])
    >>> gamma = cell_masses(GammaPrior.of(0.5, 0.1), grid)[0]
    >>> fitted, share = fit_lognormal(table, grid, gamma, np.ones(400))
    >>> abs(fitted.deviation - 2.0) < 0.2, share > 0.99
    (True, True)
    """
    every = max(1, -(-len(table) // FORM_ITEMS))
    likelihood, rows = scale_to_maximum(table[::every]), counts[::every]
    log_rate = np.log(rates)
    # Rates are known no closer than their cells, which widens their spread.
    blur = (log_rate[1] - log_rate[0]) ** 2 / 12.0
    masses, fitted = gamma, LogNormalPrior(0.0, 1.0)
    for _ in range(FORM_STEPS):
        each = rows / np.maximum(likelihood @ masses, np.finfo(float).tiny)
        together = masses * (each @ likelihood)
        together /= together.sum()
        mean = float(together @ log_rate)
        variance = float(together @ (log_rate - mean) ** 2) - blur
        fitted = LogNormalPrior(mean, float(np.sqrt(max(variance, NARROWEST**2))))
        masses = fitted.cell_masses(rates)
    mixed = (np.maximum(likelihood @ each, np.finfo(float).tiny) for each in (masses, gamma))
    own, other = (float(rows @ np.log(each)) for each in mixed)
    gain = own - other - FORM_MARGIN
    return fitted, float(1.0 / (1.0 + np.exp(-np.clip(gain, -700.0, 700.0))))


STATIC_MARGIN = 8.0  # after three polls slow items look static: 7 was seen where none was
FEWEST_SILENT = 20  # items never seen to change, below which the share cannot be decided
STATIC_ITEMS = 2000
STATIC_ROUNDS, STATIC_STEPS = 3, 10
STATIC_BORROWED = 10.0  # items' worth of the whole in a group's share
LARGEST = 0.99


@dataclass(frozen=True, slots=True)
class StaticMixture:
    """Likelihood of each row if its item is static, and if it is not, under a Gamma; both scaled alike."""

    if_static: Float64s
    if_not: Float64s

    @classmethod
    def of(cls, table: Float64s, quiet: Bools, masses: Float64s) -> StaticMixture:
        """From log-likelihoods on the grid; ``quiet`` are the rows of items never seen to change.

        ``masses`` are the Gamma's cell masses, a row for each or one for all.
        """
        likelihood = scale_to_maximum(table)
        mixed = likelihood @ masses[0] if len(masses) == 1 else np.einsum("ij,ij->i", likelihood, masses)
        static = np.exp(np.where(quiet, -table.max(axis=1, initial=-np.inf), -np.inf))
        return cls(static, np.maximum(mixed, np.finfo(float).tiny))

    def responsible(self, share: float | Float64s) -> Float64s:
        """Probability that each item is static."""
        static = share * self.if_static
        return np.asarray(static / (static + (1.0 - share) * self.if_not))

    def share(self, start: float) -> float:
        """The share that makes the rows most likely, by EM."""
        share = start
        for _ in range(STATIC_STEPS):
            share = min(float(self.responsible(share).mean()), LARGEST)
        return share

    def shares(self, kind: Ints, number: int, share: float) -> Float64s:
        """The share in each of ``number`` kinds of items, near that of the whole while they are few."""
        static = np.bincount(kind, self.responsible(share), minlength=number)
        items = np.bincount(kind, minlength=number)
        return np.asarray((static + STATIC_BORROWED * share) / (items + STATIC_BORROWED))

    def log_likelihood(self, share: float) -> float:
        """ln P(all rows)."""
        return float(np.log(share * self.if_static + (1.0 - share) * self.if_not).sum())


def fit_static_share(
    table: Float64s, quiet: Bools, rates: Float64s, parent: GammaPrior
) -> tuple[float, GammaPrior | None]:
    """The share of items that never change, 0 where the polls call for none, and a Gamma for the others.

    The Gamma is of a sample of the items: a place to climb from. None where there was nothing to decide.

    >>> from afresh.rates.likelihood import log_likelihood
    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> item = np.repeat(np.arange(200), 30)
    >>> polls = polls_from_intervals(np.ones(6000), (item % 2 == 0) & (np.arange(6000) % 3 == 0), item=item)
    >>> grid = np.exp2(np.arange(-10.0, 5.0))
    >>> quiet = polls.changes_per_item() == 0
    >>> share, _ = fit_static_share(log_likelihood(polls, grid), quiet, grid, GammaPrior.of(0.5, 0.5))
    >>> round(share, 2)
    0.5
    """
    every = -(-max(1, len(table)) // STATIC_ITEMS)
    some, silent = table[::every], quiet[::every]
    if np.count_nonzero(silent) < FEWEST_SILENT or np.all(silent):
        return 0.0, None
    gamma = alone = fit_gamma_table(some, rates, parent)
    without = StaticMixture.of(some, silent, cell_masses(gamma, rates))
    share = 0.8 * float(silent.mean())
    for _ in range(STATIC_ROUNDS):
        gamma = fit_gamma_table(some, rates, parent, static=static_log_odds(silent, share), start=gamma)
        mixture = StaticMixture.of(some, silent, cell_masses(gamma, rates))
        share = mixture.share(share)
    gain = mixture.log_likelihood(share) - without.log_likelihood(0.0)
    return (share, gamma) if gain > STATIC_MARGIN else (0.0, alone)


def static_log_odds(quiet: Bools, share: float | Float64s) -> Float64s | None:
    """ln(share/(1−share)) for items never seen to change, −∞ for the others; None where there is no share."""
    if not np.any(share):
        return None
    with np.errstate(divide="ignore"):
        return np.where(quiet, np.log(share) - np.log1p(-np.asarray(share)), -math.inf)


BORROWED = 10.0  # items' worth of the whole in a group's prior
BORROWED_BY_ALL = 2.0  # and of the fitted Gamma in that of the whole
STEPS = 8  # measured best of 2 … 100: stopping early regularises
SMOOTHING = 0.1  # share of a cell that may move to either neighbour
FLOOR_STEPS = 10
FLAT, FLAT_WORTH = 0.002, 20.0  # the share of the flat prior, as sure as so many items make it


def flat_share(table: Float64s, gamma: Float64s, counts: Float64s | None = None) -> float:
    """The share s of a flat prior in the mixture (1−s)·Gamma + s·flat that the rows of the table call for.

    By EM over the rows, held near ``FLAT`` while they are few: small where the Gamma fits, about a tenth
    where it misses a tenth of the items. ``gamma`` holds its weights, ``counts`` how much each row counts.

    >>> table = np.log([[1.0, 1e-3, 1e-9]] * 900 + [[1e-9, 1e-3, 1.0]] * 100)
    >>> round(flat_share(table, np.array([0.9, 0.1, 1e-77])), 2), round(flat_share(table, np.ones(3) / 3), 2)
    (0.15, 0.0)
    """
    every = max(1, -(-len(table) // ITEMS_ENOUGH))
    likelihood = scale_to_maximum(table[::every])
    rows = np.ones(len(likelihood)) if counts is None else counts[::every]
    flat, fitted = likelihood.mean(axis=1), likelihood @ gamma
    share = FLAT
    for _ in range(FLOOR_STEPS):
        blamed = share * flat
        total = np.maximum(blamed + (1.0 - share) * fitted, np.finfo(float).tiny)
        share = (float(rows @ (blamed / total)) + FLAT * FLAT_WORTH) / (float(rows.sum()) + FLAT_WORTH)
    return share


def fit_grid(table: Float64s, start: Float64s, counts: Float64s | None = None) -> Float64s:
    """Weights of the grid's rates learned from all rows of a table of log-likelihoods.

    ``start`` holds the weights to start from: those of a fitted Gamma, with a floor. ``counts`` say how much
    each row counts, all of it where not given.

    >>> table = np.log([[0.9, 0.1, 1e-9], [0.8, 0.2, 1e-9], [0.9, 0.1, 1e-9]])
    >>> weights = fit_grid(table, np.array([0.3, 0.4, 0.3]))
    >>> int(weights.argmax()), float(weights.sum().round(12))
    (0, 1.0)
    """
    if len(table) == 0:
        return start
    every = -(-len(table) // ITEMS_ENOUGH)
    rows = np.ones(len(table)) if counts is None else counts
    first = np.zeros(1, dtype=np.int64)
    weights = _ems(scale_to_maximum(table[::every]), first, start[None], BORROWED_BY_ALL, rows[::every])
    return np.asarray(weights[0])


def fit_grid_groups(
    table: Float64s, groups: Ints, number: int, start: Float64s, counts: Float64s | None = None
) -> Float64s:
    """The same for each of ``number`` groups, a row of weights each; small groups lean on the whole.

    >>> table = np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    >>> weights = fit_grid_groups(table, np.array([0, 0, 1]), 3, np.array([0.5, 0.5]))
    >>> bool(weights[0, 0] > weights[2, 0] > weights[1, 0])        # group 2 has no items: it is the whole
    True
    """
    everyone = fit_grid(table, start, counts)[None]
    each = np.ones(len(table)) if counts is None else counts
    weights = np.repeat(everyone, number, axis=0)
    order = np.argsort(groups, kind="stable")
    present, starts = np.unique(groups[order], return_index=True)
    for begin, end in whole_groups(starts, groups.size):
        rows = order[starts[begin] : starts[end] if end < starts.size else groups.size]
        local = starts[begin:end] - starts[begin]
        likelihood = scale_to_maximum(table[rows])
        weights[present[begin:end]] = _ems(likelihood, local, everyone, BORROWED, each[rows])
    return weights


def _ems(likelihood: Float64s, starts: Ints, parent: Float64s, borrowed: float, counts: Float64s) -> Float64s:
    """EMS for the weights of each run of rows (from ``starts``), with ``borrowed`` rows of the parent."""
    lengths = np.diff(np.append(starts, len(likelihood)))
    weights = np.repeat(parent, starts.size, axis=0)
    for _ in range(STEPS):
        # w_g·Σ_i L_ig / Σ_h L_ih w_h: the posterior, summed over the items of the run.
        total = np.einsum("ig,ig->i", likelihood, np.repeat(weights, lengths, axis=0))
        per_row = counts / np.maximum(total, np.finfo(float).tiny)
        pull = np.add.reduceat(likelihood * per_row[:, None], starts, axis=0)
        mass = weights * pull + borrowed * parent
        weights = _smooth(mass / mass.sum(axis=1, keepdims=True), parent)
    return weights


def _smooth(weights: Float64s, parent: Float64s) -> Float64s:
    """One Metropolis step between neighbours: spreads peaks, keeps the mass, leaves the parent as it is."""
    up = SMOOTHING * weights[:, :-1] * np.minimum(1.0, parent[:, 1:] / parent[:, :-1])
    down = SMOOTHING * weights[:, 1:] * np.minimum(1.0, parent[:, :-1] / parent[:, 1:])
    moved = weights.copy()
    moved[:, :-1] += down - up
    moved[:, 1:] += up - down
    return moved
