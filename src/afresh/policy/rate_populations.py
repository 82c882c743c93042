"""How far what is believed of many items may be off: the populations of rates that their polls allow.

One item's rate is doubtful by itself, and over many items that evens out. What does not is what they have in
common: how rates are spread over all of them, which a young engine hardly knows. So populations π are drawn:
each begins as one of a few items of rates picked evenly (Dirichlet), and learns by EM from the polls of all
items, each counted as often as chance would have it (Rubin's Bayesian bootstrap, 1981). Where polls tell
much, all come to the same; where they tell nothing, they stay as far apart as they began. A plan gives
Σ w·Σ_k p·F under each, p ∝ L·π with L what an item's polls say of the rate k; and by chance a little more or
less, with the variance Σ w²·(Σ_k p·F² − (Σ_k p·F)²), for each item has one rate and not its mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s

Rough = npt.NDArray[np.float32]
DRAWS, STEPS, LEVEL = 32, 25, 0.9
_PICKED = 1.0  # items' worth of rates that a population begins with
_ELSEWHERE = 1e-3  # of it anywhere on the ladder
_ROWS = (
    128  # items at once: larger products are spread over threads, which wait for each other on a busy machine
)


@dataclass(frozen=True, slots=True, eq=False)
class RatePopulations:
    """Populations, rates by draws, that ``evidence`` allows, items by rates; ``chance``: normal, by draw."""

    evidence: Rough
    populations: Rough
    chance: Float64s

    @classmethod
    def of(cls, evidence: Float64s, rng: np.random.Generator, each: float = 1.0) -> RatePopulations:
        """What polls allow: ``evidence`` is up to a factor the likelihood of each rate, a row per item.

        Where the items are a sample, each stands for as many as ``each`` says.
        """
        said, (items, rates) = evidence.astype(np.float32), evidence.shape
        begun = rng.dirichlet(np.full(rates, _PICKED / rates), size=DRAWS)
        found = ((1.0 - _ELSEWHERE) * begun + _ELSEWHERE / rates).T.astype(np.float32)
        counted = rng.gamma(each, size=(items, DRAWS)).astype(np.float32)
        counted /= counted.sum(axis=0)
        for _ in range(STEPS):
            found = found * sum(
                said[some].T @ (counted[some] / (said[some] @ found)) for some in _parts(items)
            )
        return cls(said, found, rng.standard_normal(DRAWS))

    def means(self, fresh: Float64s, share: Float64s) -> Float64s:
        """Σ share·fresh under each population, ``fresh`` by item and rate."""
        likely, part = self._summed(self.evidence), self.evidence * fresh.astype(np.float32)
        return np.asarray(share @ (self._summed(part) / likely))

    def between(self, fresh: Float64s, share: Float64s) -> tuple[float, float]:
        """The interval of Σ share·fresh, ``fresh`` by item and rate: 90 % of the populations lie in it.

        >>> known = RatePopulations.of(np.tile([0.0, 1.0, 0.0], (50, 1)), np.random.default_rng(1))
        >>> low, high = known.between(np.tile([0.9, 0.5, 0.1], (50, 1)), np.full(50, 0.02))
        >>> round(low, 6), round(high, 6)
        (0.5, 0.5)
        >>> nothing = RatePopulations.of(np.ones((50, 3)), np.random.default_rng(1))
        >>> low, high = nothing.between(np.tile([0.9, 0.5, 0.1], (50, 1)), np.full(50, 0.02))
        >>> low < 0.3, high > 0.7
        (True, True)
        """
        likely, each = self._summed(self.evidence), fresh.astype(np.float32)
        mean = self._summed(self.evidence * each) / likely
        spread = np.maximum(self._summed(self.evidence * each**2) / likely - mean**2, 0.0)
        drawn = share @ mean + np.sqrt(share**2 @ spread) * self.chance
        low, high = np.quantile(drawn, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2))
        return max(float(low), 0.0), min(float(high), 1.0)

    def _summed(self, by_rate: Rough) -> Rough:
        """Σ over rates under each population, a row per item."""
        return np.concatenate([by_rate[some] @ self.populations for some in _parts(len(by_rate))])


def _parts(items: int) -> list[slice]:
    return [slice(begin, begin + _ROWS) for begin in range(0, items, _ROWS)] or [slice(0)]
