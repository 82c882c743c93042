"""Freshness: the share of time during which the copy equals the source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.model.curves import fresh, g, phi
from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class FreshnessFixed:
    """Even intervals: F = (1−e^{−r})/r, marginal g(r)/λ, inverse Φ (Cho & Garcia-Molina 2000, §4).

    An item whose price y = μcλ/w is 1 or more is dropped: it changes too fast to be worth a refresh.

    >>> FreshnessFixed().inverse([0.5351623, 1.0]).round(4)
    array([1.7933,    inf])
    """

    power: int = 1
    top: float = 1.0

    def value(self, r: npt.ArrayLike) -> Float64s:
        """(1−e^{−r})/r."""
        return fresh(r)

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """g(r) = 1−(1+r)e^{−r}."""
        return g(r)

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """Φ(y)."""
        return phi(y)


@dataclass(frozen=True, slots=True)
class FreshnessMemoryless:
    """Poisson refreshes: F = 1/(1+r), marginal (r/(1+r))², r = √y/(1−√y) (Azar et al. 2018).

    In frequencies: f = max(0, √(wλ/(cμ)) − λ).

    >>> FreshnessMemoryless().inverse([0.25, 1.0])
    array([ 1., inf])
    """

    power: int = 1
    top: float = 1.0

    def value(self, r: npt.ArrayLike) -> Float64s:
        """1/(1+r)."""
        return np.asarray(1 / (1 + np.asarray(r, dtype=np.float64)), dtype=np.float64)

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """(r/(1+r))²."""
        # Past 1e200 the ratio is 1; the cut keeps ∞/∞ out.
        cut = np.minimum(np.asarray(r, dtype=np.float64), 1e200)
        return np.asarray(np.square(cut / (1 + cut)), dtype=np.float64)

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """√y/(1−√y)."""
        root = np.sqrt(np.minimum(np.asarray(y, dtype=np.float64), 1.0))
        with np.errstate(divide="ignore"):
            return np.asarray(root / (1 - root), dtype=np.float64)
