"""The uncertainty of the believed mean freshness of many items, by populations of rates that fit the polls.

The uncertainty of single items averages out over many items. What does not average out is the distribution of
rates over all items, which an engine hardly knows after few polls. So populations π of rates are drawn. Each
starts from a Dirichlet draw and learns by EM from the polls of all items, with a random weight for each item
(Rubin's Bayesian bootstrap, 1981). If the polls contain much information, all populations become equal; if
they contain none, the populations stay as different as they were. Under each population the mean freshness is
Σ w·Σ_k p·F over the items, with the weight w of an item, its freshness F at rate k and its probability p ∝
L·π of rate k, where L is the likelihood. An item has one rate and not its mean, so this sum also varies by
chance, with the variance Σ w²·(Σ_k p·F² − (Σ_k p·F)²).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s

Float32s = npt.NDArray[np.float32]
DRAWS, STEPS, LEVEL = 32, 25, 0.9
_CONCENTRATION = 1.0  # sum of the parameters of the Dirichlet distribution that a population starts from
_FLAT = 1e-3  # share of the flat distribution in the start
# Items at once. BLAS uses several threads for larger products, which wait for each other on a busy machine.
_ROWS = 128


@dataclass(frozen=True, slots=True, eq=False)
class RatePopulations:
    """``populations`` (rates × draws), ``evidence`` (items × rates), ``chance`` (a normal draw each)."""

    evidence: Float32s
    populations: Float32s
    chance: Float64s

    @classmethod
    def draw(
        cls, evidence: Float64s, rng: np.random.Generator, items_per_row: float = 1.0
    ) -> RatePopulations:
        """Draw populations; ``evidence`` is the likelihood of each rate up to a factor, with a row per item.

        If the items are a sample, each row represents ``items_per_row`` items.
        """
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
        """Return Σ share·freshness under each population; ``fresh`` is the freshness by item and rate."""
        likely, part = self._sum_rates(self.evidence), self.evidence * fresh.astype(np.float32)
        return np.asarray(share @ (self._sum_rates(part) / likely))

    def interval(self, fresh: Float64s, share: Float64s) -> tuple[float, float]:
        """Return the interval that contains Σ share·freshness under 90 % of the populations.

        ``fresh`` is the freshness by item and rate.

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
        """Return the sum over rates under each population, with a row per item."""
        return np.concatenate([by_rate[some] @ self.populations for some in _blocks(len(by_rate))])


def _blocks(items: int) -> list[slice]:
    return [slice(begin, begin + _ROWS) for begin in range(0, items, _ROWS)] or [slice(0)]
