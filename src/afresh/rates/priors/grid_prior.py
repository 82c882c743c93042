"""Priors other than the Gamma: the lognormal, a share of items that never change, one without a fixed form.

The items themselves decide between the Gamma and the lognormal. If the polls contain little information about
the fastest items, the form of the prior decides how fast these may be: the Gamma has a much shorter upper
tail than the lognormal. Both are fitted to the items, and mixed in proportion to the probability of the polls
under each; that of the Gamma is multiplied by e^``FORM_MARGIN``. After ten polls of 2000 items one of the two
clearly wins. The lognormal is fitted by EM: the posteriors of all items on the grid give a mean and a
standard deviation of ln λ, and these define the next prior.

Items that never change are a point mass at rate 0, in addition to the prior of the items that do change. A
Gamma of small shape looks much like it. If such a Gamma explains the polls as well, the point mass is not
used: its share is above 0 only if it raises the log-likelihood by ``STATIC_MARGIN``. Then an item that no
poll found changed may be static, and its credible interval begins at 0.

The prior without a fixed form is the probability of each rate of the grid, learned by EM from the items. EM
starts from the fitted Gamma mixed with a small share of a flat prior on the grid (``flat_share``). The flat
share is needed because EM only multiplies, and if the rates of items differ very much, a Gamma may give some
rates a probability of 1e−77. Each step is followed by a little smoothing towards that start (EMS, Silverman
et al. 1990), and there are few steps, because the unsmoothed maximum puts all mass on a few points. For rates
that the polls cannot distinguish, the proportions of the Gamma remain. The prior of all items enters that of
a group with the weight of ``BORROWED`` items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.rates.likelihood import scale_to_maximum
from afresh.rates.priors.gamma_prior import ITEMS_ENOUGH, LEAST_MASS, GammaPrior, cell_masses, fit_gamma_table
from afresh.rates.segments import whole_groups
from afresh.values.arrays import Bools, Float64s, Ints

FORM_ITEMS = 4000  # this many items suffice to decide the form; of more, every k-th is used
FORM_MARGIN = 3.0  # in ln; if the polls do not decide, the credible intervals of the Gamma are better
FEWEST_FOR_FORM = 50  # with fewer items the form cannot be decided, and the Gamma is used
FORM_STEPS = 40
NARROWEST = 0.1  # the least standard deviation of ln λ


@dataclass(frozen=True, slots=True)
class LogNormalPrior:
    """A prior under which the logarithm of the rate is normal with this mean and standard deviation.

    >>> LogNormalPrior(0.0, 1.0).cell_masses(np.array([0.5, 1.0, 2.0])).round(3).tolist()
    [0.364, 0.271, 0.364]
    """

    mean: float
    deviation: float

    def cell_masses(self, rates: Float64s) -> Float64s:
        """Return the probability of each cell of the grid, with the cells of ``gamma_prior.cell_masses``."""
        from scipy.special import ndtr

        edges = 0.5 * (np.log(rates[1:]) + np.log(rates[:-1]))
        below = ndtr((edges - self.mean) / self.deviation)
        masses = np.diff(np.concatenate(([0.0], below, [1.0])))
        return np.maximum(masses, LEAST_MASS)

    def mixed_density(self, log_density: Float64s, rates: Float64s, probable: float) -> Float64s:
        """Return the log of a mixture: this density with the share ``probable``, and e^``log_density``."""
        x = (np.log(rates) - self.mean) / self.deviation
        scale = np.log(rates[1] / rates[0]) / (self.deviation * np.sqrt(2.0 * np.pi))
        own = np.maximum(scale * np.exp(-0.5 * x * x), LEAST_MASS)
        rest = np.log1p(-min(probable, 1.0 - 1e-16))
        return np.asarray(np.logaddexp(log_density + rest, np.log(own) + np.log(probable)))


def fit_lognormal(
    table: Float64s, rates: Float64s, gamma: Float64s, counts: Float64s
) -> tuple[LogNormalPrior, float]:
    """Return a tuple (prior, probability): the lognormal that makes the rows most likely, and the probability
    that the lognormal is right and not the Gamma.

    ``table`` holds log-likelihoods with a row per item. ``gamma`` are the cell masses of the fitted Gamma,
    ``counts`` the weights of the rows.

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
    # The grid rounds each rate to a cell, which adds the variance of a uniform distribution over a cell.
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


STATIC_MARGIN = 8.0  # in ln; a gain of 7 occurred without static items, as slow items look static at first
FEWEST_SILENT = 20  # with fewer items that no poll found changed, the static share cannot be decided
STATIC_ITEMS = 2000
STATIC_ROUNDS, STATIC_STEPS = 3, 10
STATIC_BORROWED = 10.0  # weight, in items, of the share of all items in a group's share
LARGEST = 0.99


@dataclass(frozen=True, slots=True)
class StaticMixture:
    """The likelihood of each item's polls if the item is static, and if its rate follows a Gamma prior.
    Both likelihoods of an item are divided by the same number, its maximum on the grid."""

    if_static: Float64s
    if_not: Float64s

    @classmethod
    def of(cls, table: Float64s, quiet: Bools, masses: Float64s) -> StaticMixture:
        """Build from log-likelihoods on the grid; ``quiet`` marks the items that no poll found changed.
        ``masses`` are the Gamma's cell masses: one row for all items, or a row for each."""
        likelihood = scale_to_maximum(table)
        mixed = likelihood @ masses[0] if len(masses) == 1 else np.einsum("ij,ij->i", likelihood, masses)
        static = np.exp(np.where(quiet, -table.max(axis=1, initial=-np.inf), -np.inf))
        return cls(static, np.maximum(mixed, np.finfo(float).tiny))

    def responsible(self, share: float | Float64s) -> Float64s:
        """Return the probability that each item is static, given the prior ``share`` of static items."""
        static = share * self.if_static
        return np.asarray(static / (static + (1.0 - share) * self.if_not))

    def share(self, start: float) -> float:
        """Return the share of static items that makes the polls most likely, by EM from ``start``."""
        share = start
        for _ in range(STATIC_STEPS):
            share = min(float(self.responsible(share).mean()), LARGEST)
        return share

    def shares(self, kind: Ints, number: int, share: float) -> Float64s:
        """Return the share of static items in each of ``number`` kinds; it is near ``share`` for a kind with
        few items. ``kind`` is the kind of each item."""
        static = np.bincount(kind, self.responsible(share), minlength=number)
        items = np.bincount(kind, minlength=number)
        return np.asarray((static + STATIC_BORROWED * share) / (items + STATIC_BORROWED))

    def log_likelihood(self, share: float) -> float:
        """Return the log-likelihood of the polls of all items, given the share of static items."""
        return float(np.log(share * self.if_static + (1.0 - share) * self.if_not).sum())


def fit_static_share(
    table: Float64s, quiet: Bools, rates: Float64s, parent: GammaPrior
) -> tuple[float, GammaPrior | None]:
    """Return a tuple (share, prior): the share of items that never change, and a Gamma prior of the others.
    The share is 0 if the polls do not support it. The prior is fitted to a sample of the items, as the start
    of the climb of ``fit_gamma_table``; it is None if nothing was fitted. It stays near ``parent``.

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
    """Return ln(share/(1−share)) for ``quiet`` items, −∞ for the others, or None if the share is 0.
    Quiet items are those that no poll found changed; ``share`` is the share of static items."""
    if not np.any(share):
        return None
    with np.errstate(divide="ignore"):
        return np.where(quiet, np.log(share) - np.log1p(-np.asarray(share)), -math.inf)


BORROWED = 10.0  # weight, in items, of the prior of all items in a group's prior
BORROWED_BY_ALL = 2.0  # weight, in items, of the fitted Gamma in the prior of all items
STEPS = 8  # the best of 2 … 100 in measurements, because stopping early regularises
SMOOTHING = 0.1  # share of a cell that may move to either neighbour
FLOOR_STEPS = 10
FLAT, FLAT_WORTH = 0.002, 20.0  # share of the flat prior before any item, and its weight in items


def flat_share(table: Float64s, gamma: Float64s, counts: Float64s | None = None) -> float:
    """Return the share s of a flat prior that makes (1−s)·Gamma + s·flat fit the rows of the table best.
    It is found by EM over the rows, and is near ``FLAT`` while there are few rows. It is about a tenth if the
    Gamma does not fit a tenth of the items. ``table`` holds log-likelihoods with a row per item, ``gamma``
    the cell masses, ``counts`` the weights of the rows.

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
    """Learn the probabilities of the grid's rates from all rows of a table of log-likelihoods.
    ``start`` are the probabilities to start from: those of a fitted Gamma, with a floor. ``counts`` is the
    weight of each row, 1 by default.

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
    """Learn the probability of each rate of the grid for each group (row), by EM as ``fit_grid`` does.

    ``table`` has the log-likelihoods of an item in each row, ``groups`` its group, ``counts`` how many items
    it stands for. ``number`` is the number of groups, ``start`` the probabilities to start from. Those of a
    small group stay near those of all items.

    >>> table = np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    >>> weights = fit_grid_groups(table, np.array([0, 0, 1]), 3, np.array([0.5, 0.5]))
    >>> bool(weights[0, 0] > weights[2, 0] > weights[1, 0])        # group 2 has no items
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
    """Learn the probabilities of the grid's rates for each run of rows, by EM with smoothing (EMS). Runs
    begin at ``starts``, ``counts`` weighs the rows, and ``parent`` counts as much as ``borrowed`` rows."""
    lengths = np.diff(np.append(starts, len(likelihood)))
    weights = np.repeat(parent, starts.size, axis=0)
    for _ in range(STEPS):
        # w_g·Σ_i L_ig / Σ_h L_ih w_h is the posterior of rate g, summed over the items i of the run.
        total = np.einsum("ig,ig->i", likelihood, np.repeat(weights, lengths, axis=0))
        per_row = counts / np.maximum(total, np.finfo(float).tiny)
        pull = np.add.reduceat(likelihood * per_row[:, None], starts, axis=0)
        mass = weights * pull + borrowed * parent
        weights = _smooth(mass / mass.sum(axis=1, keepdims=True), parent)
    return weights


def _smooth(weights: Float64s, parent: Float64s) -> Float64s:
    """Smooth ``weights`` by one Metropolis step between neighbours. It keeps the total mass, and would leave
    ``parent`` unchanged."""
    up = SMOOTHING * weights[:, :-1] * np.minimum(1.0, parent[:, 1:] / parent[:, :-1])
    down = SMOOTHING * weights[:, 1:] * np.minimum(1.0, parent[:, :-1] / parent[:, 1:])
    moved = weights.copy()
    moved[:, :-1] += down - up
    moved[:, 1:] += up - down
    return moved
