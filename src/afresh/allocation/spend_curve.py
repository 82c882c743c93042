"""Share one budget among several sets of items (shards), by the spend curve of each.

At the shadow price μ a shard would poll each of its items whenever its poll value reaches μ. Its *spend
curve* says what these polls cost per second at a few dozen prices. The best plan for all items together is
the best plan of each shard at one common price: Σ C_s(μ) = B, and shard s gets C_s(μ). So the shards need
not know each other's items: about a kilobyte from each is enough.

Between two prices, ln C is taken as linear in ln μ. A curve is constant beyond its ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Float64s

STEPS_PER_OCTAVE = 6
OCTAVES = 4  # below and above the price now
_TINY = 1e-300
_HALVINGS = 60


@dataclass(frozen=True, slots=True, eq=False)
class SpendCurve:
    """What a shard would spend (cost per second) at each of the ``prices``, which ascend, and the weighted
    freshness per second, or what its objective counts, that its polls ``gain`` there. ``fixed`` is what it
    spends at any price: audits, listings, polls of new items and other exploration.

    >>> curve = SpendCurve(np.array([1.0, 4.0]), np.array([8.0, 2.0]), np.array([9.0, 5.0]), fixed=1.0)
    >>> curve.spend_at(np.array([0.5, 1.0, 2.0, 9.0]))
    array([9., 9., 5., 3.])
    """

    prices: Float64s
    spend: Float64s
    gain: Float64s
    fixed: float = 0.0

    def spend_at(self, prices: Float64s) -> Float64s:
        """Return what is spent per second at each of ``prices``, with the fixed part."""
        if not self.prices.size:
            return np.full(prices.shape, self.fixed)
        logs = np.interp(np.log(prices), np.log(self.prices), np.log(np.maximum(self.spend, _TINY)))
        found = np.exp(logs)
        return np.asarray(np.where(found > 1e-200, found, 0.0) + self.fixed)


def price_grid(price: float) -> Float64s:
    """Return the prices of a curve: from four octaves below ``price`` to four above. They are powers of
    2^(1/6), so that the curves of all shards have prices in common.

    >>> grid = price_grid(1.0)
    >>> grid.size, float(grid[0]), float(grid[-1])
    (49, 0.0625, 16.0)
    """
    middle = round(float(np.log2(price)) * STEPS_PER_OCTAVE)
    reach = OCTAVES * STEPS_PER_OCTAVE
    return np.asarray(np.exp2(np.arange(middle - reach, middle + reach + 1) / STEPS_PER_OCTAVE))


@dataclass(frozen=True, slots=True, eq=False)
class SharedBudget:
    """The common ``price`` and what each shard may spend per second, in the order of the curves."""

    price: float
    spend: Float64s


def share_budget(curves: Sequence[SpendCurve], budget: float) -> SharedBudget:
    """Return the common price μ at which Σ C_s(μ) = ``budget``, and the share C_s(μ) of each shard.

    The shares always sum to the budget. If even the lowest price of the curves does not spend it all, because
    hosts allow no more, the shares are in proportion to what the shards spend there; likewise if their fixed
    parts alone exceed it.

    >>> steep = SpendCurve(np.array([1.0, 4.0]), np.array([8.0, 2.0]), np.zeros(2))
    >>> flat = SpendCurve(np.array([1.0, 4.0]), np.array([4.0, 4.0]), np.zeros(2))
    >>> shared = share_budget([steep, flat], 8.0)
    >>> round(shared.price, 6), shared.spend.round(6)
    (2.0, array([4., 4.]))
    """
    prices = np.unique(np.concatenate([curve.prices for curve in curves] or [np.ones(1)]))
    if not curves or not prices.size:
        return SharedBudget(0.0, np.full(len(curves), budget / max(len(curves), 1)))
    spends = np.array([curve.spend_at(prices) for curve in curves])
    total = spends.sum(axis=0)
    below = int(np.count_nonzero(total >= budget))  # the total falls with the price
    if below in (0, prices.size):
        price = float(prices[min(below, prices.size - 1)])
    else:
        price = _price_between(curves, float(prices[below - 1]), float(prices[below]), budget)
    spend = np.array([curve.spend_at(np.array([price]))[0] for curve in curves])
    if spend.sum() <= 0:
        return SharedBudget(price, np.full(len(curves), budget / len(curves)))
    return SharedBudget(price, spend * (budget / spend.sum()))


def _price_between(curves: Sequence[SpendCurve], low: float, high: float, budget: float) -> float:
    """Return the price between two neighbouring prices of the curves at which they spend ``budget``."""
    # Between two neighbouring prices each curve is one power of the price, so its two ends describe it.
    ends = np.array([curve.spend_at(np.array([low, high])) - curve.fixed for curve in curves])
    fixed = sum(curve.fixed for curve in curves)
    left = np.maximum(ends[:, 0], _TINY)
    slope = np.log(np.maximum(ends[:, 1], _TINY) / left)
    least, most = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (least + most)
        spent = fixed + float(np.sum(left * np.exp(slope * middle)))
        least, most = (middle, most) if spent >= budget else (least, middle)
    return float(low * (high / low) ** least)
