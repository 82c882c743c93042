"""What is believed of every item's change rate: Gamma(a₀+Δa, b₀+Δb), the evidence apart from the prior.

Keeping the evidence (Δa, Δb) alone lets a prior that is learned anew count for all items at once, and makes a
belief a few bytes. A poll's bit moves it as ``rates.gamma_filter`` does; old evidence fades (H = 1 year).

The value of looking again after τ is the Bayes index (SCIENCE: Lomax survival),

    V(τ) = b·[expm1((1−a)ℓ)/(1−a) − x·e^{−aℓ}],   x = τ/b,  ℓ = ln(1+x),   ≈ (aτ²/2b)(1 − ⅔(a+1)x) for small x

and for age the model's own closed form of τ²/2 − ∫₀^τ s·survival(s) ds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from struct import Struct

import numpy as np
import numpy.typing as npt

from afresh.rates.gamma_filter import found_change
from afresh.values.stored import Doubles

_PRIOR, _BELIEF = Struct("<dd"), Struct("<ddd")
BELIEF_BYTES = _BELIEF.size
HORIZON_S = 365.25 * 86400.0
_SMALL = 1e-4
_LONGEST_S = 10 * 365.25 * 86400.0
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prior:
    """Gamma(shape, rate) of a rate per second; a shape of at most 1, so that no item is given up for ever."""

    shape: float
    rate: float

    def pack(self) -> bytes:
        """As the store keeps it."""
        return _PRIOR.pack(self.shape, self.rate)

    @classmethod
    def unpack(cls, packed: bytes) -> Prior:
        """What was kept.

        >>> Prior.unpack(Prior(0.5, 100.0).pack())
        Prior(shape=0.5, rate=100.0)
        """
        return cls(*_PRIOR.unpack(packed))


def first_prior(items: int, requests_per_s: float) -> Prior:
    """Before any poll: half a change in half a round of all items at the budget.

    >>> first_prior(100, 2.0)
    Prior(shape=0.5, rate=25.0)
    """
    return Prior(0.5, 0.5 * max(items, 1) / requests_per_s)


def posterior(
    prior: Prior, more_shape: Floats, more_rate: Floats, known_rate: Floats
) -> tuple[Floats, Floats]:
    """(a, b) of each item; ``known_rate`` is a guess of the item's own rate, NaN where there is none."""
    start = np.where(known_rate > 0, prior.shape / np.where(known_rate > 0, known_rate, 1.0), prior.rate)
    shape = prior.shape + np.maximum(more_shape, 0.0)
    # A late first change lowers b below the prior's; half the prior's is as far as that may go.
    return shape, start + np.maximum(more_rate, -0.5 * start)


def learned(shape: float, rate: float, elapsed_s: float, changed: bool) -> tuple[float, float]:
    """(a, b) after a poll ``elapsed_s`` after the one before.

    >>> learned(1.0, 1.0, 1.0, False)
    (1.0, 2.0)
    """
    if elapsed_s <= 0:
        return shape, rate
    if not changed:
        return shape, rate + elapsed_s
    new = found_change(np.array([shape]), np.array([rate]), np.array([elapsed_s]))
    return float(new[0][0]), float(new[1][0])


def faded(more: tuple[float, float], elapsed_s: float) -> tuple[float, float]:
    """The evidence left after ``elapsed_s``.

    >>> faded((1.0, 2.0), 0.0)
    (1.0, 2.0)
    """
    kept = math.exp(-max(elapsed_s, 0.0) / HORIZON_S)
    return more[0] * kept, more[1] * kept


def pack(more_shape: float, more_rate: float, hold_s: float) -> bytes:
    """One item's evidence, and when it may be tried again, as the store keeps it."""
    return _BELIEF.pack(more_shape, more_rate, hold_s)


def unpack(beliefs: bytes, sizes: npt.NDArray[np.int64]) -> Floats:
    """The same of many items, three columns; no evidence where nothing (or nothing of ours) was kept.

    >>> unpack(pack(1.0, 2.0, 5.0), np.array([0, 24])).tolist()
    [[0.0, 0.0, -inf], [1.0, 2.0, 5.0]]
    """
    found = np.tile([0.0, 0.0, -np.inf], (sizes.size, 1))
    ours = sizes == BELIEF_BYTES
    if sizes[ours].sum() == len(beliefs):
        found[ours] = np.frombuffer(beliefs, dtype="<f8").reshape(-1, 3)
    else:
        ends = np.cumsum(sizes)
        for row in np.flatnonzero(ours):
            found[row] = _BELIEF.unpack(beliefs[ends[row] - BELIEF_BYTES : ends[row]])
    return found


def gain(shape: Floats, rate: Floats, tau: Floats) -> Floats:
    """V(τ), the Bayes index of freshness.

    >>> gain(np.array([2.0]), np.array([1.0]), np.array([1.0])).round(6).tolist()      # 1 − 1/2 − 1/4
    [0.25]
    """
    x = tau / rate
    log = np.log1p(x)
    rest = np.where(np.abs(1.0 - shape) < 1e-9, 1e-9, 1.0 - shape)
    far = rate * (np.expm1(rest * log) / rest - x * np.exp(-shape * log))
    near = 0.5 * shape * tau * x * (1.0 - (2.0 / 3.0) * (shape + 1.0) * x)
    return np.asarray(np.where((shape + 1.0) * x < _SMALL, near, far))


def age_gain(shape: Floats, rate: Floats, tau: Floats) -> Floats:
    """The same for age: τ²/2 − ∫₀^τ s·survival(s) ds."""
    from afresh.model.decay import Lomax

    return Lomax(shape, rate).age_gain(tau)


def survival(shape: Floats, rate: Floats, tau: Floats) -> Doubles:
    """(1+τ/b)^{−a}: the probability that a copy is still right.

    >>> survival(np.array([1.0]), np.array([1.0]), np.array([3.0])).tolist()
    [0.25]
    """
    return np.asarray(np.exp(-shape * np.log1p(tau / rate)))


def due_after_s(shape: float, rate: float, level: float) -> float:
    """τ at which V(τ) reaches ``level``; infinite where it does not within ten years.

    >>> round(due_after_s(2.0, 1.0, 0.25), 9)
    1.0
    """
    if level <= 0:
        return 0.0
    if _gain(shape, rate, _LONGEST_S) < level:
        return math.inf
    low, high = 1e-9, _LONGEST_S
    while high / low > 1 + 1e-12:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _gain(shape, rate, middle) >= level else (middle, high)
        if middle in (low, high) and math.sqrt(low * high) in (low, high):
            break
    return high


def _gain(shape: float, rate: float, tau: float) -> float:
    x = tau / rate
    if (shape + 1.0) * x < _SMALL:
        return 0.5 * shape * tau * x * (1.0 - (2.0 / 3.0) * (shape + 1.0) * x)
    log = math.log1p(x)
    rest = 1.0 - shape if abs(1.0 - shape) >= 1e-9 else 1e-9
    return rate * (math.expm1(rest * log) / rest - x * math.exp(-shape * log))
