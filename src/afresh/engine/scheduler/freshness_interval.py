"""How far the freshness that is believed may be off.

By the luck of the copies, each right or wrong on its own, which evens out over many. And by what all of them
have in common: how rates are spread, which an engine hardly knows before it has looked at most items twice.
So the freshness is reckoned under many populations of rates that the polls allow
(``policy.rate_populations``), and the interval holds 95 % of what comes out, luck included; it is never
narrower than luck alone makes it.
"""

from __future__ import annotations

import numpy as np

from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.policy.rate_populations import RatePopulations

LEVEL = 0.95
_Z95 = 1.959963984540054
_LOOKED_AT = 256  # rows that tell how rates are spread
_SEED = 0  # the same for all: an interval must not dance


def freshness_interval(policy: RowPolicy, value: float, error: float, now_s: float) -> tuple[float, float]:
    """The 95 % interval of the freshness now, ``value`` believed with the standard ``error`` of luck."""
    item_rows = policy.item_rows
    weight = np.where(item_rows.is_active, item_rows.weight, 0.0)
    guessed = np.flatnonzero((weight > 0) & ~np.isnan(item_rows.polled_s) & ~policy.is_observed())
    low, high = value - _Z95 * error, value + _Z95 * error
    if guessed.size:
        rows = guessed[:: -(-guessed.size // _LOOKED_AT)]
        share = weight[rows] * (weight[guessed].sum() / weight[rows].sum() / weight.sum())
        fresh, told = policy.ranking.fresh_at(now_s, rows)
        doubt = RatePopulations.draw(told, np.random.default_rng(_SEED), guessed.size / rows.size)
        # What is seen, and what the sample leaves out, comes on top.
        rest = value - float(share @ policy.ranking.fresh(now_s, rows))
        drawn = doubt.means(fresh, share) + rest + error * doubt.chance
        least, most = np.quantile(drawn, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)).tolist()
        low, high = min(low, least), max(high, most)
    return max(low, 0.0), min(high, 1.0)
