"""Estimates from the beliefs which copies are fresh now, the freshness of all copies, ages and rates.

The confidence interval of the freshness has two causes. The first is chance: each copy is fresh or stale
independently of the others, which averages out over many copies. The second is common to all copies: how the
rates are distributed, which an engine hardly knows before it has polled most items twice. Therefore the
freshness is computed for many distributions of rates that agree with the polls
(``policy.rate_populations``). The interval contains 95 % of the results, with chance included, and is never
narrower than that of chance alone.
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
SAMPLE_ROWS = 65_536  # the largest sample of rows for numbers about all rows
_POPULATION_ROWS = 256  # rows from which the distribution of the rates is inferred
_SEED = 0  # fixed, so that the confidence interval changes only if the beliefs change
_BLOCK = 65_536


class Forecast:
    """Estimates from the beliefs of a policy. It changes nothing, except that it adds newly loaded items."""

    def __init__(self, policy: RowPolicy) -> None:
        self._policy, self._rows = policy, policy.item_rows

    @property
    def _adaptive(self) -> Adaptive:
        self._policy.ranking.grow()
        return self._policy.ranking.adaptive

    def _time(self, now_s: float) -> float:
        return now_s + self._policy.ranking.shift_s

    def sample_rows(self) -> Ids:
        """Return all rows, or at most ``SAMPLE_ROWS`` at even distances if there are more."""
        return np.arange(0, self._rows.size, max(-(-self._rows.size // SAMPLE_ROWS), 1))

    def fresh(self, now_s: float, rows: Ids | None = None) -> Float64s:
        """Return for each of ``rows`` the probability that its copy is fresh at ``now_s``; 0 without a copy.
        ``rows`` must be in ascending order; the default is all rows."""
        every = np.arange(self._rows.size) if rows is None else rows
        has_copy = ~np.isnan(self._rows.polled_s[every])
        found = np.zeros(every.size)
        found[has_copy] = self._believed_fresh(now_s, every[has_copy])
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
        """Return a tuple (freshness, standard error). The freshness is Σw·fresh/Σw over the active items with
        weights w. Each copy is fresh independently of the others, with probability p and mean p̄. If only n
        of N rows are sampled, the variance is Σw²[(n/N)·p(1−p) + (1−n/N)·(p−p̄)²]/(Σw)² over the sample."""
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
        """Return the weights, 0 for inactive rows, divided by the largest so that sums do not overflow."""
        weight = np.where(self._rows.is_active, self._rows.weight, 0.0)
        largest = float(weight.max(initial=0.0))
        return weight / largest if largest > 0 else weight

    def freshness(self, now_s: float) -> ShareEstimate:
        """Return the freshness with its 95 % confidence interval, wide while few items were polled twice."""
        value, error = self.mean_freshness(now_s)
        low, high = value - Z95 * error, value + Z95 * error
        weight = self._relative_weights()
        guessed = np.flatnonzero((weight > 0) & ~np.isnan(self._rows.polled_s) & ~self._policy.is_observed())
        if guessed.size:
            rows = guessed[:: -(-guessed.size // _POPULATION_ROWS)]
            share = weight[rows] * (weight[guessed].sum() / weight[rows].sum() / weight.sum())
            # For each row and rate of the grid: the likelihood of the polls, scaled to at most 1, and the
            # probability that the copy is fresh.
            evidence = self._adaptive.belief.posteriors(rows) / self._adaptive.belief.prior
            evidence /= np.maximum(evidence.max(axis=1, keepdims=True), 1e-300)
            fresh = 1.0 - self._adaptive.forecast(rows, self._time(now_s)).change_chance
            populations = RatePopulations.draw(
                evidence, np.random.default_rng(_SEED), guessed.size / rows.size
            )
            # Observed rows, and rows that are not sampled, contribute the same to every draw.
            rest = value - float(share @ self._believed_fresh(now_s, rows))
            drawn = populations.means(fresh, share) + rest + error * populations.chance
            least, most = np.quantile(drawn, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)).tolist()
            low, high = min(low, least), max(high, most)
        return ShareEstimate(value, max(low, 0.0), min(high, 1.0), int(self._rows.is_active.sum()))

    def mean_age_s(self, now_s: float) -> float:
        """Return the weighted mean of the expected ages of the copies in seconds; 0 without copies. If the
        staleness of a copy is observed, its age is known: the time for which it has been stale."""
        rows = self.sample_rows()
        rows = rows[self._rows.is_active[rows] & ~np.isnan(self._rows.polled_s[rows])]
        weight, policy = self._relative_weights()[rows], self._adaptive
        if weight.sum() <= 0:
            return 0.0
        ages_s = _blockwise(rows, lambda some: policy.ages(some, self._time(now_s)))
        at, stale_s = self._known_staleness(rows, now_s)
        ages_s[at] = stale_s
        return float(weight @ ages_s / weight.sum())

    def _known_staleness(self, rows: Ids, now_s: float) -> tuple[Ids, Float64s]:
        """Return a tuple (positions in ``rows``, seconds): which of ``rows`` have observed staleness, and for
        how long each has been stale, 0 if it is fresh. ``rows`` are in ascending order."""
        staleness = self._policy.staleness
        if staleness is None or not rows.size:
            return np.empty(0, dtype=np.int64), np.empty(0)
        seen = staleness.rows[staleness.known]
        stale_s = np.maximum(now_s - staleness.stale_since_s[staleness.known], 0.0)
        at = np.minimum(np.searchsorted(rows, seen), rows.size - 1)
        is_wanted = rows[at] == seen
        return at[is_wanted], stale_s[is_wanted]

    def content_lag_s(self, now_s: float) -> float:
        """Return the expected content lag F(L;t) of the copies in seconds (Yang et al. 2010, Definition 1,
        who call it content freshness): the mean over the copies of weight·½λτ², where τ is the time since the
        last poll. A copy that is known to be stale for σ seconds has missed a change then: σ + ½λσ²."""
        rows = self.sample_rows()
        rows = rows[self._rows.is_active[rows] & ~np.isnan(self._rows.polled_s[rows])]
        if not rows.size:
            return 0.0
        rates, missed = self._adaptive.rates()[rows], np.zeros(rows.size)
        since_s = np.maximum(now_s - self._rows.polled_s[rows], 0.0)
        at, stale_s = self._known_staleness(rows, now_s)
        since_s[at] = missed[at] = stale_s
        lags_s = missed + 0.5 * rates * since_s**2
        return float(self._rows.weight[rows] @ lags_s / rows.size)

    def covered_share(self) -> float:
        """Return the share of the active items' weight that has a copy."""
        weight = self._relative_weights()
        total = float(weight.sum())
        return float(weight[~np.isnan(self._rows.polled_s)].sum()) / total if total > 0 else 0.0

    def dropped_rows(self) -> Bools:
        """Return for each row whether it is dropped: active, with a copy, and without a next poll at this
        budget. Futile items, which have no next poll at any budget, are not included."""
        rows, policy = self._rows, self._policy
        found = rows.is_active & ~np.isnan(rows.polled_s) & (rows.weight > 0) & ~policy.is_observed()
        which = np.flatnonzero(found)
        found[which] = np.isinf(policy.intervals_s(which)) & ~policy.is_futile(which)
        return found

    def median_rates(self, rows: Ids) -> Float64s:
        """Return the median of the rate λ of each row in changes per second. It is interpolated on the grid,
        linearly in ln λ; the rate of shocks of the row's families is added. Plans use this; people see
        ``item_snapshot.own_rates``."""
        policy = self._adaptive
        belief = policy.belief
        mass = belief.posteriors(rows)
        mass = np.cumsum(mass / mass.sum(axis=1, keepdims=True), axis=1)
        octave = np.log(belief.rates[1] / belief.rates[0])
        edges = np.log(belief.rates[0]) + octave * (np.arange(belief.rates.size + 1) - 0.5)
        medians = np.exp([np.interp(0.5, np.r_[0.0, each], edges) for each in mass])
        return np.asarray(medians + policy.rates()[rows] - belief.mean(rows))

    def rate_distribution(self, rows: Ids) -> tuple[Float64s, Float64s, Float64s, Float64s]:
        """Return a tuple of arrays: the grid of rates, the prior probability of each, the posterior
        probabilities of each row, and the rates of each row, calibrated, with the shocks of its families."""
        policy = self._adaptive
        mass = policy.belief.posteriors(rows)
        mass = mass / mass.sum(axis=1, keepdims=True)
        rates = self._policy.ranking.possible_rates(rows)
        return policy.belief.rates, policy.belief.prior, mass, rates

    def course(self, row: int, after_s: Float64s) -> tuple[Float64s, Float64s]:
        """Return two arrays over ``after_s``, seconds after the last poll of ``row``: the probability that
        the copy is fresh, and the poll value."""
        policy, rows = self._adaptive, np.array([row])
        times_s = (float(policy.items.last_poll[row]) + after_s).tolist()
        fresh = np.array([policy.fresh(rows, time_s)[0] for time_s in times_s])
        return fresh, np.array([policy.poll_values(rows, time_s)[0] for time_s in times_s])


def _blockwise(rows: Ids, work: Callable[[Ids], Float64s]) -> Float64s:
    parts = [work(rows[begin : begin + _BLOCK]) for begin in range(0, rows.size, _BLOCK)]
    return np.concatenate(parts) if parts else np.empty(0)
