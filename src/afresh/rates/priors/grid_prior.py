"""A prior of no particular form: probabilities of the grid's rates, by EM over the items.

EM starts from the fitted Gamma, mixed with a little of a flat prior on the grid (``flat_share``): EM only
multiplies, and where items of very different rates share a log, a Gamma may leave 1e−77 to the rates of some.
Each step is followed by a little smoothing (EMS, Silverman et al. 1990) towards that start, and there are few
steps: the unsmoothed maximum puts all mass on a few points. Where the polls cannot tell rates apart, the
Gamma's proportions remain. A group borrows from the whole as much as ``BORROWED`` more items would tell.
"""

from __future__ import annotations

import numpy as np

from afresh.rates.likelihood import scale_to_maximum
from afresh.rates.priors.gamma_prior import ITEMS_ENOUGH
from afresh.rates.segments import whole_groups
from afresh.values.arrays import Float64s, Ints

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
