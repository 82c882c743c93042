"""What the engine saves: how many times its requests uniform polling would need to be as fresh, by the model.

By the beliefs p about the rates, polls every τᵢ keep the copies fresh for F = Σ w·Σₖ p·F(λₖ, 1/τᵢ) of the
time and spend Σ c/τᵢ; uniform polling with frequency f for all keeps them fresh for U(f) = Σ w·Σₖ p·F(λₖ, f)
and spends f·Σ c. The factor is f·Σ c over Σ c/τᵢ where U(f) = F. Both sides are of the long run, so that an
engine that has just copied everything claims nothing. What families and seasons gain beyond the rates is left
out. The interval holds the factor under 95 % of the populations of rates that the polls allow
(``policy.rate_populations``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.engine.reporting.plan_sample import RatePosteriors
from afresh.engine.scheduler.forecast import LEVEL
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.policy.rate_populations import RatePopulations
from afresh.values.arrays import Float64s

_ROWS = 256  # that stand for all
_SEED = 0  # the same for all: an interval must not change without a reason
_FACTORS: Float64s = 2.0 ** np.arange(-4.0, 8.01, 0.125)  # tried for uniform polling; between, even in ln f


@dataclass(frozen=True, slots=True)
class FactorEstimate:
    """A factor with the interval that holds it at ``level``; NaN where nothing can be said."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    level: float = LEVEL


def uniform_needs(scheduler: Scheduler) -> FactorEstimate:
    """Return how many times the requests uniform polling would need for the freshness of this plan."""
    item_rows, policy = scheduler.item_rows, scheduler.policy
    ranked = (item_rows.ranked_weight(slice(None)) > 0) & ~np.isnan(item_rows.polled_s)
    rows = np.flatnonzero(ranked & ~policy.is_observed())
    if rows.size == 0 or policy.shadow_price <= 0:
        return FactorEstimate()
    if policy.name == "uniform":
        return FactorEstimate(1.0, 1.0, 1.0)
    sample = rows[:: math.ceil(rows.size / _ROWS)]
    frequency, cost = 1.0 / policy.intervals_s(sample), item_rows.cost[sample]
    weight = item_rows.weight[sample] / item_rows.weight[sample].max()  # else a sum of huge ones overflows
    beliefs = RatePosteriors(*scheduler.forecast.rate_distribution(sample))
    return compare_with_uniform(beliefs, weight / weight.sum(), cost, frequency, rows.size / sample.size)


def compare_with_uniform(
    beliefs: RatePosteriors, share: Float64s, cost: Float64s, frequency: Float64s, items_per_row: float = 1.0
) -> FactorEstimate:
    """Return the factor for items of which ``share`` is the part of all weight, and ``cost`` that of a poll.

    With known rates, Cho's mix of pages at one poll a month (Table 6): .616 by the best plan, .573 by uniform
    polling, which needs half as many requests again for the same.

    >>> from afresh.allocation.allocate import allocate
    >>> rates, pages = 1 / np.array([1.0, 7.0, 30.0, 120.0, 365.0]), np.array([23.0, 15.0, 16.0, 16.0, 30.0])
    >>> known = RatePosteriors(np.ones(1), np.ones(1), np.ones((5, 1)), rates[:, None])
    >>> plan = allocate(rates, 100 / 30, weights=pages, costs=pages)
    >>> round(compare_with_uniform(known, pages / 100, pages, plan.frequency).value, 2)
    1.49
    """
    spent = float(cost @ frequency) / float(cost.sum())  # the frequency of uniform polling at the same cost
    if not spent > 0:
        return FactorEstimate()
    planned = beliefs.freshness_by_rate(frequency)
    uniform = [beliefs.freshness_by_rate(np.full(frequency.size, factor * spent)) for factor in _FACTORS]
    rng = np.random.default_rng(_SEED)
    populations = RatePopulations.draw(beliefs.likelihoods(), rng, items_per_row)
    curves = np.stack([populations.means(by_rate, share) for by_rate in uniform], axis=1)
    drawn = [
        _factor(curve, score) for curve, score in zip(curves, populations.means(planned, share), strict=True)
    ]
    curve = np.array([share @ np.sum(beliefs.mass * by_rate, axis=1) for by_rate in uniform])
    value = _factor(curve, float(share @ np.sum(beliefs.mass * planned, axis=1)))
    low, high = np.quantile(drawn, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)).tolist()
    return FactorEstimate(value, min(low, value), max(high, value))


def _factor(curve: Float64s, score: float) -> float:
    """Return the factor at which a rising ``curve`` over all factors reaches a score; an end if it does not.

    >>> round(_factor(_FACTORS / (1.0 + _FACTORS), 2.0 / 3.0), 2)
    2.0
    """
    return float(np.exp(np.interp(score, curve, np.log(_FACTORS))))
