"""Audits: polls of items drawn at random, in proportion to weight, that measure freshness without a model.

If an audit finds an item unchanged, its copy was fresh. The draw does not depend on what is believed of the
item, so the share of fresh copies among audits is an unbiased estimate of Σw·fresh/Σw over the items with a
copy, where w is the weight. Its confidence interval is Wilson's. Audits are unconditional requests, because
a server that wrongly answers 304 (not modified) would bias the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.engine.scheduler.item_rows import ItemRows
from afresh.values.stored import ObservationColumns

_TRIES = 64
LEAST, WINDOW_S = 200, 86400.0
Z95 = 1.959963984540054  # 95 % of a normal distribution is within this number of standard deviations


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """The estimate of a share (``value``) from ``n`` items, with the ends of its confidence interval;
    ``level`` is the probability that the interval contains the share."""

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95


def wilson_interval(fresh: int, n: int) -> ShareEstimate:
    """Return the share p̂ = ``fresh``/``n`` of fresh copies with Wilson's 95 % confidence interval, z = 1.96:
    (p̂ + z²/2n ± z√(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n).

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
    """Return the freshness that the audits of the last 24 hours measured; if these are fewer than 200, the
    last 200 audits are used. ``covered_share`` is the share of the weight whose items have a copy. Audits
    that were not compared with an earlier copy (``elapsed_s`` is 0) are not counted."""
    compared = np.flatnonzero(audits.elapsed_s > 0)
    recent = compared[audits.time_s[compared] >= now_s - WINDOW_S]
    used = recent if recent.size >= LEAST else compared[-LEAST:]
    share = wilson_interval(int(np.count_nonzero(~audits.changed[used])), int(used.size))
    return ShareEstimate(
        share.value * covered_share, share.low * covered_share, share.high * covered_share, share.n
    )


def may_audit(item_rows: ItemRows, row: int, now_s: float) -> bool:
    """Return whether ``row`` has a copy to compare with and may be polled now."""
    held = np.isnan(item_rows.polled_s[row]) or item_rows.not_before_s[row] > now_s
    return bool(item_rows.is_active[row] and not held)


def draw(item_rows: ItemRows, rng: np.random.Generator, now_s: float) -> int | None:
    """Draw a row that may be audited, with probability in proportion to weight; None if none was found."""
    if item_rows.size == 0:
        return None
    # Each try draws any row with the same probability, and accepts it with the probability weight/heaviest.
    heaviest = float(item_rows.weight.max())
    for _ in range(_TRIES):
        row = int(rng.integers(item_rows.size))
        if may_audit(item_rows, row, now_s) and rng.random() * heaviest < item_rows.weight[row]:
            return row
    return None
