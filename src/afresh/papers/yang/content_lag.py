"""Yang et al. 2010, Tables 2 and 3, and the expected content lag of §4.2."""

from __future__ import annotations

import math

import numpy as np

from afresh.papers.check import Check, row
from afresh.papers.report import Section
from afresh.probes.query_order import best_order, coefficients, interval_for, lag_after_round, lag_per_time
from afresh.probes.update_models import expected_lag
from afresh.values.arrays import ArrayLike
from afresh.values.errors import UsageError

_GROUP_SUMS = (3.0, 7.0)  # λ = 1, 2 behind the first query, 3, 4 behind the second, all weights 1
_TUPLES = 4
_BISECTIONS = 60


def table_2() -> Section:
    """The content lag of an element that changes at 5, 6 and 7."""
    times = (6, 7, 8)
    lags = [content_lag((5.0, 6.0, 7.0), now) for now in times]
    return Section("Table 2", row("F(e;{})", times, "1 3 6", lags))


def table_3() -> Section:
    """The lag after a round of two queries, by their places; 0 is not sent."""
    places = ((0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2), (1, 2))
    a = coefficients(_GROUP_SUMS, _TUPLES, 1.0)
    lags = [lag_after_round(a, place) for place in places]
    cells = row("F(L;2), x = {}", places, "5 3.875 3.5 2.375 0.875 1.5 0.375", lags)
    best = np.empty(2)
    best[best_order(_GROUP_SUMS)] = (1, 2)
    least = Check("least, in the best order", "0.375", lag_after_round(a, best))
    alpha = 0.75
    ratio = search_interval(_GROUP_SUMS, _TUPLES, alpha) / interval_for(_GROUP_SUMS, _TUPLES, alpha)
    search = Check("§4.4: doubling and bisection against the closed form", "1.000000", ratio)
    return Section("Table 3", (*cells, least, search), "x: the queries' places in the round, 0 is not sent.")


def expected_lag_section() -> Section:
    """½λt² is exact: simulated, against the paper's asymptotic claim."""
    rng = np.random.default_rng(1)
    rate, span, runs = 0.7, 3.0, 200_000
    counts = rng.poisson(rate * span, runs)
    lags = np.add.reduceat(
        np.append(span * rng.random(int(counts.sum())), 0.0), np.append(0, np.cumsum(counts)[:-1])
    )
    mean = float(lags[counts > 0].sum() / runs)
    ratio = mean / float(expected_lag(rate, span))
    note = "The paper calls ½λt² asymptotic; by Campbell's theorem it is exact at every t."
    return Section("§4.2, expected content lag", (Check("simulated E[F]/½λt²", "1.00", ratio),), note)


def content_lag(changes: ArrayLike, now: float) -> float:
    """F(e;t) = Σ (t − t_i) over the changes missed so far (Definition in §4.2).

    >>> [content_lag([5, 6, 7], now) for now in (6, 7, 8)]  # the paper's Table 2
    [1.0, 3.0, 6.0]
    """
    times = np.asarray(changes, dtype=np.float64)
    return float(np.maximum(now - times, 0.0).sum())


def search_interval(group_sums: ArrayLike, tuples: int, alpha: float, *, start: float = 1.0) -> float:
    """``interval_for`` by the paper's search: doubling or halving from ``start``, then bisection (§4.4).

    >>> round(search_interval([3.0, 7.0], tuples=4, alpha=0.75), 9)
    4.0
    """
    if not (0 < alpha < math.inf and 0 < start < math.inf):
        raise UsageError(f"alpha {alpha} and start {start}: both must be above 0 and finite")
    if lag_per_time(group_sums, tuples, 1.0) == 0:
        return math.inf
    low = high = start
    while lag_per_time(group_sums, tuples, high) < alpha:
        low, high = high, 2 * high
    while lag_per_time(group_sums, tuples, low) > alpha:
        low, high = low / 2, low
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if lag_per_time(group_sums, tuples, middle) < alpha else (low, middle)
    return 0.5 * (low + high)
