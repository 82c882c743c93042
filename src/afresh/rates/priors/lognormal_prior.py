"""The lognormal prior, an alternative to the Gamma: the items themselves decide between the two forms.

Where polls tell little of the fastest items, the form of the prior decides how fast these may be; a Gamma
ends where a lognormal goes on. Both are fitted to the items, and each counts by the probability of the items
under it, the Gamma e^``MARGIN`` times that. After ten polls of 2000 items it is clearly one or the other.

    posterior of each item on the grid → mean m and deviation s of ln λ over all of them → the next prior (EM)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.likelihood import scale_to_maximum
from afresh.rates.priors.gamma_prior import LEAST_MASS
from afresh.values.arrays import Float64s

ITEMS = 4000  # that settle it: of more every k-th
MARGIN = 3.0  # of ln: where nothing tells them apart, the Gamma's intervals are the better ones
FEWEST = 50  # items below which the form cannot be decided, and the Gamma stays
STEPS = 40
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
    every = max(1, -(-len(table) // ITEMS))
    likelihood, rows = scale_to_maximum(table[::every]), counts[::every]
    log_rate = np.log(rates)
    # Rates are known no closer than their cells, which widens their spread.
    blur = (log_rate[1] - log_rate[0]) ** 2 / 12.0
    masses, fitted = gamma, LogNormalPrior(0.0, 1.0)
    for _ in range(STEPS):
        each = rows / np.maximum(likelihood @ masses, np.finfo(float).tiny)
        together = masses * (each @ likelihood)
        together /= together.sum()
        mean = float(together @ log_rate)
        variance = float(together @ (log_rate - mean) ** 2) - blur
        fitted = LogNormalPrior(mean, float(np.sqrt(max(variance, NARROWEST**2))))
        masses = fitted.cell_masses(rates)
    gain = _log_probability(likelihood, masses, rows) - _log_probability(likelihood, gamma, rows) - MARGIN
    return fitted, float(1.0 / (1.0 + np.exp(-np.clip(gain, -700.0, 700.0))))


def _log_probability(likelihood: Float64s, masses: Float64s, rows: Float64s) -> float:
    return float(rows @ np.log(np.maximum(likelihood @ masses, np.finfo(float).tiny)))
