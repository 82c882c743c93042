"""Estimates of views from the estimates of their bases.

Rates of distinct bases add up, and so do the variances of what is known of them; the interval is that of the
Gamma distribution with this mean and variance. The variance of a base is read off its own interval: of
width 2z standard deviations, or that of the Gamma of this mean and lower end, whichever is more; beliefs lean
to the right, and either alone is too narrow for some. A view of bases that may all be static may be so too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from afresh.rates.planning_rate import posterior_shape
from afresh.rates.views import ViewGraph
from afresh.values.errors import InputError
from afresh.values.results import RateEstimates


def with_views(
    names: Sequence[str], found: RateEstimates, view: Sequence[str], base: Sequence[str], level: float = 0.9
) -> tuple[tuple[str, ...], RateEstimates]:
    """The names of the views, and the estimates with a row for each view after those of the items.

    >>> ends = np.array([0.5, 1.0])
    >>> bases = RateEstimates(ends, ends / 2, ends * 2, np.array([4, 4]), np.array([2, 3]), "grid")
    >>> added, all_of = with_views(["R", "S"], bases, ["V", "V"], ["R", "S"])
    >>> added, all_of.rate.tolist(), all_of.changes.tolist()
    (('V',), [0.5, 1.0, 1.5], [2, 3, 5])
    """
    from scipy.special import gammaincinv, ndtri

    graph = ViewGraph.of(view, base)
    polled = set(names)
    twice = next((name for name in graph.views if name in polled), None)
    if twice is not None:
        raise InputError(f"{twice!r} is a view and was polled itself: give the view another name")
    if not np.all(np.isfinite(found.rate)):
        raise InputError(f"method {found.method!r} gives infinite rates, of which no view is made: use grid")
    deviation = (found.high - found.low) / (2 * ndtri((1 + level) / 2))

    def summed(column: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return graph.rates(dict(zip(names, np.asarray(column, dtype=float).tolist(), strict=True)))

    skewed = found.rate / np.sqrt(posterior_shape(found.rate, found.low, level))
    rate, variance = summed(found.rate), summed(np.minimum(np.maximum(deviation, skewed), 1e150) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = np.where(variance > 0, rate**2 / variance, np.inf)
        scale = np.where(variance > 0, variance / rate, 0.0)
        tails = ((1 - level) / 2, (1 + level) / 2)
        low, high = (np.where(variance > 0, scale * gammaincinv(shape, tail), rate) for tail in tails)
    low = np.where(summed(found.low) > 0, low, 0.0)
    return graph.views, RateEstimates(
        rate=np.concatenate([found.rate, rate]),
        low=np.concatenate([found.low, low]),
        high=np.concatenate([found.high, high]),
        polls=np.concatenate([found.polls, summed(found.polls).astype(np.int64)]),
        changes=np.concatenate([found.changes, summed(found.changes).astype(np.int64)]),
        method=found.method,
    )
