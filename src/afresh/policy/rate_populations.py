"""The uncertainty of the mean freshness of many items, from distributions of rates that fit the polls.

The errors of single items average out over many items. The error in the distribution of rates over all items
does not, and an engine hardly knows that distribution after few polls. So several distributions are drawn.
Each is a population π: a probability for each rate of a grid. It starts from a Dirichlet draw and is fitted
by EM to the polls of all items, with a random weight for each item (Rubin's Bayesian bootstrap, 1981). If the
polls contain much information, all populations become equal. If they contain none, they stay as different as
they were. Under one population the mean freshness is Σ w·Σ_k p·F over the items. Here w is the item's share
of the total weight, F its freshness if it has rate k, and p ∝ L·π the probability of rate k, where L is the
likelihood of the item's polls. An item has one rate and not a mixture, so this sum also varies by chance,
with the variance Σ w²·(Σ_k p·F² − (Σ_k p·F)²).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s

Float32s = npt.NDArray[np.float32]
DRAWS, STEPS, LEVEL = 32, 25, 0.9
_CONCENTRATION = 1.0  # sum of the parameters of the Dirichlet distribution that a population starts from
_FLAT = 1e-3  # share of the flat distribution that is mixed into each Dirichlet draw
# Items per matrix product. For larger products BLAS uses threads, which delay each other on a busy machine.
_ROWS = 128


@dataclass(frozen=True, slots=True, eq=False)
class RatePopulations:
    """Drawn distributions of rates, and the likelihoods of the items that they were fitted to.

    ``evidence``     the likelihood of each rate (column) given the polls of each item (row).
    ``populations``  the probability of each rate (row) in each drawn population (column).
    ``chance``       a standard normal number for each population, for the variance by chance.
    """

    evidence: Float32s
    populations: Float32s
    chance: Float64s

    @classmethod
    def draw(
        cls, evidence: Float64s, rng: np.random.Generator, items_per_row: float = 1.0
    ) -> RatePopulations:
        """Draw populations and fit them to the ``evidence`` (see the class; its rows may have any scale).
        If the rows are a sample of the items, each row represents ``items_per_row`` items."""
        likelihood, (items, rates) = evidence.astype(np.float32), evidence.shape
        first = rng.dirichlet(np.full(rates, _CONCENTRATION / rates), size=DRAWS)
        found = ((1.0 - _FLAT) * first + _FLAT / rates).T.astype(np.float32)
        counted = rng.gamma(items_per_row, size=(items, DRAWS)).astype(np.float32)
        counted /= counted.sum(axis=0)
        for _ in range(STEPS):
            blocks = ((likelihood[some], counted[some]) for some in _blocks(items))
            found = found * sum(each.T @ (count / (each @ found)) for each, count in blocks)
        return cls(likelihood, found, rng.standard_normal(DRAWS))

    def means(self, fresh: Float64s, share: Float64s) -> Float64s:
        """Return the mean freshness under each population, without the variation by chance.
        ``fresh`` is the freshness of each item (row) at each rate, ``share`` its share of all weights."""
        likely, part = self._sum_rates(self.evidence), self.evidence * fresh.astype(np.float32)
        return np.asarray(share @ (self._sum_rates(part) / likely))

    def interval(self, fresh: Float64s, share: Float64s) -> tuple[float, float]:
        """Return a tuple (low, high) between which the mean freshness is in 90 % of the draws.
        The arguments are those of ``means``; the variation by chance is included.

        >>> known = RatePopulations.draw(np.tile([0.0, 1.0, 0.0], (50, 1)), np.random.default_rng(1))
        >>> low, high = known.interval(np.tile([0.9, 0.5, 0.1], (50, 1)), np.full(50, 0.02))
        >>> round(low, 6), round(high, 6)
        (0.5, 0.5)
        >>> nothing = RatePopulations.draw(np.ones((50, 3)), np.random.default_rng(1))
        >>> low, high = nothing.interval(np.tile([0.9, 0.5, 0.1], (50, 1)), np.full(50, 0.02))
        >>> low < 0.3, high > 0.7
        (True, True)
        """
        likely, each = self._sum_rates(self.evidence), fresh.astype(np.float32)
        mean = self._sum_rates(self.evidence * each) / likely
        spread = np.maximum(self._sum_rates(self.evidence * each**2) / likely - mean**2, 0.0)
        drawn = share @ mean + np.sqrt(share**2 @ spread) * self.chance
        low, high = np.quantile(drawn, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2))
        return max(float(low), 0.0), min(float(high), 1.0)

    def _sum_rates(self, by_rate: Float32s) -> Float32s:
        """Return Σ probability·``by_rate`` over the rates, for each item (row) and population (column)."""
        return np.concatenate([by_rate[some] @ self.populations for some in _blocks(len(by_rate))])


def _blocks(items: int) -> list[slice]:
    return [slice(begin, begin + _ROWS) for begin in range(0, items, _ROWS)] or [slice(0)]
