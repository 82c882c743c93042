"""A Gamma distribution of rates: what is believed of an item before any poll of it.

Density b^a λ^{a−1} e^{−bλ} / Γ(a): a is worth a changes, b is the time in which they were seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.poll_table import PollTable
from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import InputError

LEAST_MASS = 1e-200  # of a cell: likelihoods decide where a prior underflows
WEAK_SHAPE = 0.5  # Jeffreys' choice for a Poisson rate: half a change


@dataclass(frozen=True, slots=True)
class GammaPrior:
    """Shape ``a`` and rate ``b`` (a time), one each or one per item.

    >>> GammaPrior.of(2.0, 4.0).mean().tolist()
    [0.5]
    """

    shape: Float64s
    rate: Float64s

    @classmethod
    def of(cls, shape: float, rate: float) -> GammaPrior:
        """The same prior for every item."""
        return cls(np.array([shape], dtype=np.float64), np.array([rate], dtype=np.float64))

    def __post_init__(self) -> None:
        for name, value in (("shape", self.shape), ("rate", self.rate)):
            if value.size and not (value.min() > 0 and value.max() < np.inf):
                raise InputError(f"the {name} of a Gamma prior must be above 0 and finite, not {value}")

    def for_items(self, items: int) -> GammaPrior:
        """One row per item."""
        if self.shape.size not in (1, items):
            raise InputError(f"a prior of {self.shape.size} rows does not fit {items} items")
        return GammaPrior(*(np.broadcast_to(v, items).copy() for v in (self.shape, self.rate)))

    def distinct(self) -> tuple[GammaPrior, Ints]:
        """The different rows, and which of them each row is: items of a group share one."""
        _, first, row = np.unique(self.shape + 1j * self.rate, return_index=True, return_inverse=True)
        return GammaPrior(self.shape[first], self.rate[first]), row.astype(np.int64)

    def mean(self) -> Float64s:
        """E[λ] = a/b."""
        return self.shape / self.rate

    def interval(self, level: float) -> tuple[Float64s, Float64s]:
        """The equal-tailed interval that holds λ with probability ``level``."""
        return gamma_interval(self.shape, self.rate, level)


def weak_prior(polls: PollTable) -> GammaPrior:
    """Half a change in half a mean interval: the prior where nothing else is known, in the data's own time.

    Without any poll the unit of time is all there is: half a change in half a unit.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> weak_prior(polls_from_intervals([2.0, 6.0], [True, False], item=[0, 0])).mean().tolist()
    [0.25]
    """
    unit = float(polls.elapsed.mean()) if polls.size else 1.0
    return GammaPrior.of(WEAK_SHAPE, WEAK_SHAPE * unit)


def gamma_interval(shape: Float64s, rate: Float64s, level: float) -> tuple[Float64s, Float64s]:
    """Equal-tailed credible interval of Gamma(a, b).

    >>> low, high = gamma_interval(np.array([1.0]), np.array([1.0]), 0.9)
    >>> bool(np.isclose(low[0], -np.log(0.95))), bool(np.isclose(high[0], -np.log(0.05)))
    (True, True)
    """
    from scipy.special import gammaincinv

    tail = (1.0 - check_level(level)) / 2.0
    return gammaincinv(shape, tail) / rate, gammaincinv(shape, 1.0 - tail) / rate


def cell_masses(prior: GammaPrior, rates: Float64s) -> Float64s:
    """Probability of each cell of the grid (edges half-way in ln λ, the end cells open): a row per prior row.

    >>> cell_masses(GammaPrior.of(1.0, 1.0), np.array([0.5, 1.0, 2.0])).sum().round(12).item()
    1.0
    """
    from scipy.special import gammainc, gammaincc

    edges = np.sqrt(rates[1:] * rates[:-1])
    shape, at = prior.shape[:, None], prior.rate[:, None] * edges
    below, above = gammainc(shape, at), gammaincc(shape, at)
    none, full = np.zeros_like(shape), np.ones_like(shape)
    below, above = np.hstack((none, below, full)), np.hstack((full, above, none))
    # The difference of the smaller tails keeps far cells positive.
    return np.maximum(
        np.where(below[:, 1:] < 0.5, np.diff(below, axis=1), -np.diff(above, axis=1)), LEAST_MASS
    )


def check_level(level: float) -> float:
    """``level`` if it is a probability strictly between 0 and 1.

    >>> check_level(0.9)
    0.9
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}: must be above 0 and below 1, such as 0.9")
    return level
