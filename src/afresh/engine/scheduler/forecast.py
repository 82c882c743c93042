"""What is believed of the copies now: which are right, the freshness with its interval, ages, rates.

The interval of the freshness has two parts. One is the luck of the copies, each right or wrong on its own,
which evens out over many. The other is what all copies have in common: how rates are spread, which an engine
hardly knows before it has polled most items twice. So the freshness is computed under many populations of
rates that the polls allow (``policy.rate_populations``), and the interval holds 95 % of the results, luck
included; it is never narrower than luck alone makes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from afresh.engine.scheduler.audits import Z95, ShareEstimate
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.rate_populations import RatePopulations
from afresh.values.arrays import Bools, Float64s
from afresh.values.stored import Ids

LEVEL = 0.95
SAMPLE_ROWS = 65_536  # rows that stand for all
_POPULATION_ROWS = 256  # rows that tell how rates are spread
_SEED = 0  # the same for all: an interval must not change without a reason
_BLOCK = 65_536


class Forecast:
    """Reads the beliefs of a policy; changes nothing but that new items are taken in first."""

    def __init__(self, policy: RowPolicy) -> None:
        self._policy, self._rows = policy, policy.item_rows

    @property
    def _adaptive(self) -> Adaptive:
        self._policy.ranking.grow()
        return self._policy.ranking.adaptive

    def _time(self, now_s: float) -> float:
        return now_s + self._policy.ranking.shift_s

    def sample_rows(self) -> Ids:
        """Return all rows or, of very many, some that are spread evenly over the order of registration."""
        return np.arange(0, self._rows.size, max(-(-self._rows.size // SAMPLE_ROWS), 1))

    def fresh(self, now_s: float, rows: Ids | None = None) -> Float64s:
        """Return the probability that the copy of each row is right now; 0 without a copy. ``rows`` are all
        by default, and must be in ascending order."""
        every = np.arange(self._rows.size) if rows is None else rows
        found = np.where(np.isnan(self._rows.polled_s[every]), 0.0, self._believed_fresh(now_s, every))
        staleness = self._policy.staleness
        if staleness is not None and every.size:
            seen, fresh = staleness.rows[staleness.known], staleness.fresh[staleness.known]
            at = np.minimum(np.searchsorted(every, seen), every.size - 1)
            wanted = every[at] == seen
            found[at[wanted]] = fresh[wanted]
        return found

    def _believed_fresh(self, now_s: float, rows: Ids) -> Float64s:
        policy = self._adaptive
        return _blockwise(rows, lambda some: policy.fresh(some, self._time(now_s)))

    def mean_freshness(self, now_s: float) -> tuple[float, float]:
        """Return the estimate of Σw·fresh/Σw over active items now, and its standard error. Each copy is
        fresh or not, independently, with the probability that it survived. Of very many a sample of n of N is
        used: Var = Σw²[(n/N)·p(1−p) + (1−n/N)·(p−p̄)²]/(Σw)² over the sample."""
        rows = self.sample_rows()
        alive = self.fresh(now_s, rows)
        weight = self._relative_weights()[rows]
        total = float(weight.sum())
        if total <= 0:
            return 1.0, 0.0
        value, part = float(np.sum(weight * alive)) / total, rows.size / self._rows.size
        luck = part * alive * (1.0 - alive) + (1.0 - part) * (alive - value) ** 2
        return value, math.sqrt(float(np.sum(weight**2 * luck))) / total

    def _relative_weights(self) -> Float64s:
        """Return the weights of the rows, 0 where inactive, in units of the largest: none overflows."""
        weight = np.where(self._rows.is_active, self._rows.weight, 0.0)
        largest = float(weight.max(initial=0.0))
        return weight / largest if largest > 0 else weight

    def freshness(self, now_s: float) -> ShareEstimate:
        """Return the freshness with its 95 % interval, which is wide while little is known of the rates."""
        value, error = self.mean_freshness(now_s)
        low, high = value - Z95 * error, value + Z95 * error
        weight = self._relative_weights()
        guessed = np.flatnonzero((weight > 0) & ~np.isnan(self._rows.polled_s) & ~self._policy.is_observed())
        if guessed.size:
            rows = guessed[:: -(-guessed.size // _POPULATION_ROWS)]
            share = weight[rows] * (weight[guessed].sum() / weight[rows].sum() / weight.sum())
            # By each rate of the grid: its evidence, at most 1, and whether the copies are right.
            evidence = self._adaptive.belief.posteriors(rows) / self._adaptive.belief.prior
            evidence /= np.maximum(evidence.max(axis=1, keepdims=True), 1e-300)
            fresh = np.exp(-self._adaptive.forecast(rows, self._time(now_s))[1])
            populations = RatePopulations.draw(
                evidence, np.random.default_rng(_SEED), guessed.size / rows.size
            )
            # What is observed, and what the sample leaves out, is added unchanged.
            rest = value - float(share @ self._believed_fresh(now_s, rows))
            drawn = populations.means(fresh, share) + rest + error * populations.chance
            least, most = np.quantile(drawn, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)).tolist()
            low, high = min(low, least), max(high, most)
        return ShareEstimate(value, max(low, 0.0), min(high, 1.0), int(self._rows.is_active.sum()))

    def mean_age_s(self, now_s: float) -> float:
        """Return the weighted mean of the expected ages of the copies; 0 where there are none."""
        rows = self.sample_rows()
        rows = rows[self._rows.is_active[rows] & ~np.isnan(self._rows.polled_s[rows])]
        weight, policy = self._relative_weights()[rows], self._adaptive
        if weight.sum() <= 0:
            return 0.0
        ages_s = _blockwise(rows, lambda some: policy.ages(some, self._time(now_s)))
        return float(weight @ ages_s / weight.sum())

    def covered_share(self) -> float:
        """Return the share of the active items' weight that has a copy."""
        weight = self._relative_weights()
        total = float(weight.sum())
        return float(weight[~np.isnan(self._rows.polled_s)].sum()) / total if total > 0 else 0.0

    def dropped_rows(self) -> Bools:
        """Return which active items with a copy would never be worth another poll at this budget. Futile
        items, which are not worth one at any budget, do not count."""
        rows, policy = self._rows, self._policy
        found = rows.is_active & ~np.isnan(rows.polled_s) & (rows.weight > 0) & ~policy.is_observed()
        which = np.flatnonzero(found)
        found[which] = np.isinf(policy.intervals_s(which)) & ~policy.is_futile(which)
        return found

    def rates(self) -> Float64s:
        return self._adaptive.rates()

    def rate_range(self, rows: Ids, level: float) -> tuple[Float64s, Float64s, Float64s]:
        """Return the median of each row's believed rate, and the interval that holds it at ``level``.
        Quantiles on the grid, even in ln λ between its rates; what the families add comes on top. Plans use
        it; people are shown ``item_snapshot.own_rates``."""
        policy = self._adaptive
        belief = policy.belief
        mass = belief.posteriors(rows)
        mass = np.cumsum(mass / mass.sum(axis=1, keepdims=True), axis=1)
        octave = np.log(belief.rates[1] / belief.rates[0])
        edges = np.log(belief.rates[0]) + octave * (np.arange(belief.rates.size + 1) - 0.5)
        ends = (0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level)
        found = np.exp([np.interp(ends, np.r_[0.0, each], edges) for each in mass]).reshape(-1, 3)
        found += (policy.rates()[rows] - belief.mean(rows))[:, None]
        return found[:, 0], found[:, 1], found[:, 2]

    def rate_distribution(self, rows: Ids) -> tuple[Float64s, Float64s, Float64s, Float64s]:
        """Return the grid of rates, the probability of each for an item that was never polled, those of each
        row's rates, and these rates with what its families add."""
        policy = self._adaptive
        rates = policy.calibration.factors(rows)[:, None] * policy.belief.rates
        if policy.shocks is not None:
            rates = rates + policy.shocks.rate(rows)[:, None]
        mass = policy.belief.posteriors(rows)
        mass = mass / mass.sum(axis=1, keepdims=True)
        return policy.belief.rates, policy.belief.prior, mass, rates

    def course(self, row: int, after_s: Float64s) -> tuple[Float64s, Float64s]:
        """Return the probability that a copy is right and the poll value, so long after its last poll."""
        policy, rows = self._adaptive, np.array([row])
        times_s = (float(policy.items.last_poll[row]) + after_s).tolist()
        fresh = np.array([policy.fresh(rows, time_s)[0] for time_s in times_s])
        return fresh, np.array([policy.poll_values(rows, time_s)[0] for time_s in times_s])


def _blockwise(rows: Ids, work: Callable[[Ids], Float64s]) -> Float64s:
    parts = [work(rows[begin : begin + _BLOCK]) for begin in range(0, rows.size, _BLOCK)]
    return np.concatenate(parts) if parts else np.empty(0)
