"""Audits: polls of items drawn at random, in proportion to weight, that measure freshness without a model.

An item so drawn, found unchanged, was fresh. Since the draw does not look at what is believed of the item,
the share found fresh is an unbiased estimate of Σw·fresh/Σw over the items with a copy; Wilson's interval
goes with it. Validators are not asked: a 304 that lies would be a bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.engine.scheduler.item_rows import ItemRows
from afresh.values.stored import ObservationColumns

_TRIES = 64
LEAST, WINDOW_S = 200, 86400.0
Z95 = 1.959963984540054  # 95 % of a normal distribution lies within so many standard deviations


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """A share that was estimated from ``n`` draws, with the interval that holds it at ``level``."""

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95


def wilson_interval(fresh: int, n: int) -> ShareEstimate:
    """Return Wilson's 95 % interval: (p̂ + z²/2n ± z√(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n).

    >>> share = wilson_interval(9, 10)
    >>> share.value, round(share.low, 4), round(share.high, 4)
    (0.9, 0.5958, 0.9821)
    >>> wilson_interval(0, 0)
    ShareEstimate(value=nan, low=0.0, high=1.0, n=0, level=0.95)
    """
    if n == 0:
        return ShareEstimate(math.nan, 0.0, 1.0, 0)
    z, p = Z95, fresh / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return ShareEstimate(p, max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale), n)


def audited_freshness(audits: ObservationColumns, now_s: float, covered_share: float = 1.0) -> ShareEstimate:
    """Return the freshness by the audits of the last day, or the last 200 if those are more.
    ``covered_share`` is the share of the weight that has a copy at all. The first poll of an item compares
    with nothing and does not count."""
    told = np.flatnonzero(audits.elapsed_s > 0)
    recent = told[audits.time_s[told] >= now_s - WINDOW_S]
    used = recent if recent.size >= LEAST else told[-LEAST:]
    share = wilson_interval(int(np.count_nonzero(~audits.changed[used])), int(used.size))
    return ShareEstimate(
        share.value * covered_share, share.low * covered_share, share.high * covered_share, share.n
    )


def may_audit(item_rows: ItemRows, row: int, now_s: float) -> bool:
    """Return whether a row has a copy to compare with, and may be polled now."""
    held = np.isnan(item_rows.polled_s[row]) or item_rows.not_before_s[row] > now_s
    return bool(item_rows.is_active[row] and not held)


def draw(item_rows: ItemRows, rng: np.random.Generator, now_s: float) -> int | None:
    """Draw a row that may be audited, in proportion to weight; None if none was found."""
    if item_rows.size == 0:
        return None
    heaviest = float(item_rows.weight.max())
    for _ in range(_TRIES):
        row = int(rng.integers(item_rows.size))
        if may_audit(item_rows, row, now_s) and rng.random() * heaviest < item_rows.weight[row]:
            return row
    return None
