"""Renewal processes with Gamma gaps: regular, Poisson or bursty.

Gaps of mean 1 are Gamma(k)/k: k = 1 is Poisson, k > 1 more regular (k → ∞ a clock), k < 1 bursty. The process
is stationary: it starts at a random moment of its life. Longer gaps are more likely to hold this moment, so
the first gap is Gamma(k+1)/k, and the moment is uniform within it.
"""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import UsageError


def renewal_events(lengths: Float64s, shape: float, rng: np.random.Generator) -> tuple[Ints, Float64s]:
    """Owner and position of every event in [0, lengths[owner]) of processes of rate 1, one for each length.

    >>> owner, place = renewal_events(np.array([0.0, 1e5]), 4.0, np.random.default_rng(1))
    >>> gaps = np.diff(place)
    >>> set(owner.tolist()), round(float(gaps.mean()), 2), round(float(gaps.std()), 1)   # sd = 1/√k
    ({1}, 1.0, 0.5)
    """
    if not (shape > 0 and np.isfinite(shape)):
        raise UsageError(f"shape of the gaps is {shape:g}: must be above 0, and finite (1 is Poisson)")
    reached = rng.gamma(shape + 1, 1 / shape, lengths.size) * rng.random(lengths.size)
    active = np.flatnonzero(reached < lengths)
    owners, places = [active], [reached[active]]
    while active.size:
        segment, place = _next_events(reached[active], lengths[active], shape, rng)
        owner = active[segment]
        inside = place < lengths[owner]
        owners.append(owner[inside])
        places.append(place[inside])
        last = np.flatnonzero(np.append(segment[1:] != segment[:-1], True))
        reached[owner[last]] = place[last]
        active = active[reached[active] < lengths[active]]
    owner, place = np.concatenate(owners), np.concatenate(places)
    order = np.argsort(owner, kind="stable")  # each round continued where the one before had ended
    return owner[order], place[order]


def _next_events(
    begin: Float64s, end: Float64s, shape: float, rng: np.random.Generator
) -> tuple[Ints, Float64s]:
    """The next events of each process, probably as many as it needs to pass its end."""
    expected = end - begin
    counts = np.ceil(expected + 2 * np.sqrt(expected / shape) + 1).astype(np.int64)
    segment = np.repeat(np.arange(counts.size), counts)
    passed = np.cumsum(rng.gamma(shape, 1 / shape, segment.size))
    before = np.concatenate(([0.0], passed))[np.cumsum(counts) - counts]
    return segment, begin[segment] + (passed - before[segment])
