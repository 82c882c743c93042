"""Policies that estimate each item's rate and set its polling interval from the estimate.

``Proportional`` polls each item in proportion to its rate. ``LambdaCrawl`` plans as if the estimates were the
true rates. ``PosteriorInterval`` lets every copy be stale for the same share of the time.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.policy.policy import PolicyInput
from afresh.policy.ranking_policy import IntervalPolicy
from afresh.rates.estimators.gamma_filter import belief_after_change
from afresh.values.arrays import Bools, Float64s, Ints


class Proportional(IntervalPolicy):
    """Sets polling intervals in proportion to 1/rate, and scales them to the budget at every refit.

    >>> policy = Proportional(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False])
    >>> policy.refit(2.0); bool(policy.due[0] < policy.due[1])
    True
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.first_poll: Float64s = self.items.last_poll.copy()
        self.polled: Float64s = np.zeros(start.items)
        self.changed: Float64s = np.zeros(start.items)
        self.last_refit = start.now

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        self.polled[items] += 1
        self.changed[items] += changed
        self.items.last_poll[items] = now
        if now.size and now.max() - self.last_refit > self.round:
            self.refit(float(now.max()))
        return np.asarray(now + self.interval[items])

    def rates(self) -> Float64s:
        """Return Cho's estimate of each rate; a new item counts as polled once, a round later, unchanged."""
        polled = np.maximum(self.polled, 1.0)
        time = np.where(self.polled > 0, self.items.last_poll - self.first_poll, self.round)
        ratio = (polled - self.changed + 0.5) / (polled + 0.5)
        # Without a found change the rate would be ln 1 = 0 and no poll would follow. So half a change counts.
        per_poll = np.maximum(-np.log(ratio), 0.5 / polled)
        return np.asarray(per_poll * polled / np.maximum(time, 1e-6 * self.round))

    def refit(self, now: float) -> None:
        """Set the polling intervals 1/f from all rates so that Σ cost·f is the budget."""
        rate = self.rates()
        scale = self.items.budget / max(float(self.items.cost @ rate), np.finfo(float).tiny)
        self.interval = 1.0 / np.maximum(rate * scale, 1e-3 / self.round)
        self.due = self.items.last_poll + self.interval
        self.last_refit = now


PLANS_PER_ROUND = 20
SPREAD, POINTS = 1e4, 60  # the grid has POINTS rates, from mean frequency/SPREAD to mean frequency·SPREAD


class LambdaCrawl(IntervalPolicy):
    """Plans the best frequencies for the estimated rates, as if these were the true rates.
    The rates are maximum likelihood estimates; each item starts with one poll with a change and one without.
    Kolobov et al. 2019 call the method LambdaCrawl.

    >>> policy = LambdaCrawl(PolicyInput.of(2, 1.0))
    >>> policy.rates().round(1).tolist()                 # one change, one none in a time of 2: ln 2 / 2
    [0.3, 0.3]
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.is_harmonic = start.objective == "harmonic"
        self.log_rates: Float64s = np.linspace(-1.0, 1.0, POINTS) * np.log(SPREAD) - np.log(self.round)
        self.likelihood = self._initial_likelihood(start.items)
        self.last_plan = start.now

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """Learn from the polls, and return due times one polling interval of the current plan later."""
        elapsed = np.maximum(now - self.items.last_poll[items], 0.0)
        self.likelihood[items] += _log_likelihood(elapsed, changed, self.log_rates)
        self.items.last_poll[items] = now
        if now.size and now.max() - self.last_plan > self.round / PLANS_PER_ROUND:
            self.refit(float(now.max()))
        return np.asarray(now + self.interval[items])

    def rates(self) -> Float64s:
        """Return the rate at the maximum of each item's likelihood.
        It is the top of the parabola through the highest point of the grid and its two neighbours."""
        peak = np.clip(self.likelihood.argmax(axis=1), 1, POINTS - 2)
        rows = np.arange(len(peak))
        left, top, right = (self.likelihood[rows, peak + step].astype(np.float64) for step in (-1, 0, 1))
        bend = left - 2.0 * top + right
        shift = np.where(bend < 0, 0.5 * (left - right) / np.minimum(bend, -1e-300), 0.0)
        step = self.log_rates[1] - self.log_rates[0]
        return np.asarray(np.exp(self.log_rates[peak] + np.clip(shift, -1.0, 1.0) * step))

    def refit(self, now: float) -> None:
        """Plan for the present estimates of the rates, with refreshes at random (memoryless) times."""
        objective = "harmonic" if self.is_harmonic else "freshness"
        weights, rates = self.items.weight, self.rates()
        costs, budget = self.items.cost, self.items.budget
        plan = allocate(rates, budget, weights=weights, costs=costs, objective=objective, order="memoryless")
        self.interval = 1.0 / np.maximum(np.asarray(plan.frequency, dtype=np.float64), 1e-6 / self.round)
        self.due = self.items.last_poll + self.interval
        self.last_plan = now

    def _initial_likelihood(self, items: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        both = _log_likelihood(np.full(2, self.round), np.array([True, False]), self.log_rates).sum(axis=0)
        return np.tile(both.astype(np.float32), (items, 1))


def _log_likelihood(elapsed: Float64s, changed: Bools, log_rates: Float64s) -> Float64s:
    """Return ln(1 − e^{−λt}) if a poll found a change and −λt if not, for each poll (row) and rate λ."""
    expected = elapsed[:, None] * np.exp(log_rates)
    found = np.log(-np.expm1(-np.maximum(expected, 1e-300)))
    return np.asarray(np.where(changed[:, None], found, -expected))


STALE_SHARE = (
    0.2  # the share of time for which a copy may be stale, before intervals are scaled to the budget
)
PRIOR_CHANGES = 0.5  # shape of the prior of each item; its rate parameter is one round


class PosteriorInterval(IntervalPolicy):
    """Sets the polling interval at which a copy is expected to be stale for a given share of the time.
    Monitoring programs work like this. Each item has its own belief Gamma(a, b) about its rate, learned from
    its own polls alone (``GammaFilter``). A copy is right at time t after a poll with probability
    (1 + t/b)^(−a). So in a polling interval of length x·b it is right for the share
    ((1 + x)^(1−a) − 1)/((1 − a)·x) of the time, and x depends on a alone. Such a program has no budget. Here
    all intervals 1/f are multiplied by one factor, once in a round, so that Σ cost·f is the budget.

    >>> policy = PosteriorInterval(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False])
    >>> policy.refit(2.0)
    >>> bool(policy.interval[0] < policy.interval[1]), round(float((1 / policy.interval).sum()), 9)
    (True, 1.0)
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.shape: Float64s = np.full(start.items, PRIOR_CHANGES)
        self.rate: Float64s = np.full(start.items, self.round)
        self.factor = 1.0
        self.last_refit = start.now

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        elapsed = np.maximum(now - self.items.last_poll[items], 0.0)
        found = changed & (elapsed > 0)
        which, quiet = items[found], items[~changed]
        self.shape[which], self.rate[which] = belief_after_change(
            self.shape[which], self.rate[which], elapsed[found]
        )
        self.rate[quiet] += elapsed[~changed]
        self.items.last_poll[items] = now
        if now.size and now.max() - self.last_refit > self.round:
            self.refit(float(now.max()))
        self.interval[items] = self.factor * stale_interval(self.shape[items], self.rate[items])
        return np.asarray(now + self.interval[items])

    def refit(self, now: float) -> None:
        """Scale all polling intervals 1/f so that Σ cost·f is the budget."""
        wanted = stale_interval(self.shape, self.rate)
        self.factor = float(np.sum(self.items.cost / wanted)) / self.items.budget
        self.interval = np.maximum(self.factor, np.finfo(float).tiny) * wanted
        self.due = self.items.last_poll + self.interval
        self.last_refit = now


def stale_interval(shape: Float64s, rate: Float64s) -> Float64s:
    """Return the polling interval in which a copy is stale for ``STALE_SHARE`` of the time.
    The belief about the item's rate is Gamma(``shape``, ``rate``).

    >>> stale_interval(np.array([1e6]), np.array([1e6])).round(3).tolist()        # λ = 1: (1−e^{−r})/r = 0.8
    [0.464]
    """
    return np.asarray(rate * np.exp(np.interp(np.log(shape), _LOG_SHAPES, _LOG_INTERVALS)))


def _solve_intervals(shape: Float64s) -> Float64s:
    """Return ln x for each shape a of a Gamma belief, where x is the polling interval in units of its rate.
    x solves ((1+x)^(1−a) − 1)/((1−a)·x) = 1 − STALE_SHARE, by bisection."""
    low, high = np.full(shape.size, -40.0), np.full(shape.size, 40.0)
    power = np.where(np.abs(1.0 - shape) < 1e-9, 1e-9, 1.0 - shape)
    for _ in range(80):
        middle = 0.5 * (low + high)
        x = np.exp(middle)
        is_fresh = np.expm1(power * np.log1p(x)) / (power * x) > 1.0 - STALE_SHARE
        low, high = np.where(is_fresh, middle, low), np.where(is_fresh, high, middle)
    return np.asarray(0.5 * (low + high))


# A table of shapes for interpolation. A shape never falls below that of the prior.
_LOG_SHAPES: Float64s = np.linspace(np.log(PRIOR_CHANGES), np.log(1e7), 256)
_LOG_INTERVALS = _solve_intervals(np.exp(_LOG_SHAPES))
