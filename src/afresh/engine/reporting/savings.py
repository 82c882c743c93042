"""Estimates what the engine saves: how many times more requests uniform polling would need to be as fresh.

Item i has the weight w (all sum to 1), the cost c of a poll and the rate λₖ with probability p. F(λ, f) is
the freshness at rate λ and f polls per second. With polls every τᵢ seconds, the freshness of all items is
E = Σ w·Σₖ p·F(λₖ, 1/τᵢ) and the cost Σ c/τᵢ. Uniform polling with frequency f for all items has the freshness
U(f) = Σ w·Σₖ p·F(λₖ, f) and the cost f·Σ c. The factor is f·Σ c divided by Σ c/τᵢ, with f such that U(f) = E.
These are long-run means, so that an engine that has just copied all items claims no savings. Gains from
families and seasons are left out. The confidence interval covers the factor for 95 % of the distributions of
rates that agree with the polls (``policy.rate_populations``), and allows for chance in the rates of items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.engine.reporting.plan_sample import RatePosteriors
from afresh.engine.scheduler.forecast import LEVEL, Forecast
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.policy.rate_populations import RatePopulations
from afresh.values.arrays import Float64s

_ROWS = 256  # the largest sample of rows
_SEED = 0  # fixed, so that the confidence interval changes only if the beliefs change
_FACTORS: Float64s = 2.0 ** np.arange(-4.0, 8.01, 0.125)  # factors tried; interpolated linearly in ln f


@dataclass(frozen=True, slots=True)
class FactorEstimate:
    """A factor with its confidence interval, which contains it with probability ``level``; NaN if unknown."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    level: float = LEVEL


def uniform_needs(policy: RowPolicy, forecast: Forecast) -> FactorEstimate:
    """Return how many times more requests uniform polling would need to be as fresh as this plan."""
    item_rows = policy.item_rows
    ranked = (item_rows.ranked_weight(slice(None)) > 0) & ~np.isnan(item_rows.polled_s)
    rows = np.flatnonzero(ranked & ~policy.is_observed())
    if rows.size == 0 or policy.shadow_price <= 0:
        return FactorEstimate()
    if policy.name == "uniform":
        return FactorEstimate(1.0, 1.0, 1.0)
    sample = rows[:: math.ceil(rows.size / _ROWS)]
    interval_s, cost = policy.intervals_s(sample), item_rows.cost[sample]
    if not interval_s.min() > 0:
        return FactorEstimate()
    weight = item_rows.weight[sample] / item_rows.weight[sample].max()  # the sum of huge weights overflows
    beliefs, share = RatePosteriors(*forecast.rate_distribution(sample)), weight / weight.sum()
    return compare_with_uniform(beliefs, share, cost, 1.0 / interval_s, rows.size / sample.size)


def compare_with_uniform(
    beliefs: RatePosteriors, share: Float64s, cost: Float64s, frequency: Float64s, items_per_row: float = 1.0
) -> FactorEstimate:
    """Return the factor for items with these shares of the weight, costs of a poll and polls per second. Each
    item represents ``items_per_row`` items. The pages of Cho & Garcia-Molina 2000, Table 6, with known rates
    and one poll per page and month, have a freshness of 0.616 with the best plan and 0.573 with uniform
    polling, which needs 1.49 times the requests for 0.616.

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
    curve = np.array([share @ np.sum(beliefs.mass * by_rate, axis=1) for by_rate in uniform])
    value = _factor(curve, float(share @ np.sum(beliefs.mass * planned, axis=1)))
    rng = np.random.default_rng(_SEED)
    populations = RatePopulations.draw(beliefs.likelihoods(), rng, items_per_row)
    curves = np.stack([populations.means(by_rate, share) for by_rate in uniform], axis=1)
    # Each item has one rate and not its mean: what it gains over uniform polling varies by chance.
    gain = planned - beliefs.freshness_by_rate(np.full(frequency.size, value * spent))
    spread = np.sum(beliefs.mass * gain**2, axis=1) - np.sum(beliefs.mass * gain, axis=1) ** 2
    luck = math.sqrt(float(share**2 @ np.maximum(spread, 0.0))) * populations.chance
    scores = populations.means(planned, share) + luck
    drawn = [_factor(each, score) for each, score in zip(curves, scores.tolist(), strict=True)]
    low, high = np.quantile(drawn, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)).tolist()
    return FactorEstimate(value, min(low, value), max(high, value))


def _factor(curve: Float64s, score: float) -> float:
    """Return the factor at which ``curve``, the freshness for each of ``_FACTORS``, reaches ``score``.

    >>> round(_factor(_FACTORS / (1.0 + _FACTORS), 2.0 / 3.0), 2)
    2.0
    """
    return float(np.exp(np.interp(score, curve, np.log(_FACTORS))))
