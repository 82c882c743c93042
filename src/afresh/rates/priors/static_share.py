"""The share of items that never change: a point mass at rate 0 beside the prior of the items that do.

A Gamma of small shape looks much like it, and where that explains the polls as well there is no such mass:
the share is above 0 only if the polls are then more likely by ``MARGIN`` (of ln). Where it is, an item never
seen to change may be static, and its interval reaches down to 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.rates.likelihood import scale_to_maximum
from afresh.rates.priors.gamma_prior import GammaPrior, cell_masses, fit_gamma_table
from afresh.values.arrays import Bools, Float64s, Ints

MARGIN = 8.0  # after three polls slow items look static: 7 was seen where none was
FEWEST = 20  # items never seen to change, below which the share cannot be decided
ITEMS = 2000
ROUNDS, STEPS = 3, 10
BORROWED = 10.0  # items' worth of the whole in a group's share
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
        for _ in range(STEPS):
            share = min(float(self.responsible(share).mean()), LARGEST)
        return share

    def shares(self, kind: Ints, number: int, share: float) -> Float64s:
        """The share in each of ``number`` kinds of items, near that of the whole while they are few."""
        static = np.bincount(kind, self.responsible(share), minlength=number)
        items = np.bincount(kind, minlength=number)
        return np.asarray((static + BORROWED * share) / (items + BORROWED))

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
    every = -(-max(1, len(table)) // ITEMS)
    some, silent = table[::every], quiet[::every]
    if np.count_nonzero(silent) < FEWEST or np.all(silent):
        return 0.0, None
    gamma = alone = fit_gamma_table(some, rates, parent)
    without = StaticMixture.of(some, silent, cell_masses(gamma, rates))
    share = 0.8 * float(silent.mean())
    for _ in range(ROUNDS):
        gamma = fit_gamma_table(some, rates, parent, static=static_log_odds(silent, share), start=gamma)
        mixture = StaticMixture.of(some, silent, cell_masses(gamma, rates))
        share = mixture.share(share)
    gain = mixture.log_likelihood(share) - without.log_likelihood(0.0)
    return (share, gamma) if gain > MARGIN else (0.0, alone)


def static_log_odds(quiet: Bools, share: float | Float64s) -> Float64s | None:
    """ln(share/(1−share)) for items never seen to change, −∞ for the others; None where there is no share."""
    if not np.any(share):
        return None
    with np.errstate(divide="ignore"):
        return np.where(quiet, np.log(share) - np.log1p(-np.asarray(share)), -math.inf)
