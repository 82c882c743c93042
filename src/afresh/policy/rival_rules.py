"""The rivals of the adaptive policy: rules of crawlers in use, and policies of the literature."""

from __future__ import annotations

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.policy.policy import PolicyInput
from afresh.policy.ranking_policy import IntervalPolicy
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints

# Nutch: limits of the interval in rounds. By default they are a minute and a year, to a first interval of 30
# days.
NUTCH_DECREASE, NUTCH_INCREASE, NUTCH_SYNC = 0.8, 1.4, 0.3
NUTCH_LEAST, NUTCH_MOST = 2.3e-5, 12.2
# StormCrawler: an hour and two weeks, to a first interval of a day.
STORM_INCREASE = 1.5
STORM_LEAST, STORM_MOST = 1 / 24, 14.0


class Nutch(IntervalPolicy):
    """Nutch's adaptive rule without sync: the interval × 0.8 after a change, × 1.4 otherwise.

    With sync: where δ, the time since the last change seen, exceeds the interval I, then I = δ, and the next
    poll is at now − 0.3δ + I.

    >>> policy = Nutch(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False]); policy.interval.round(6).tolist()
    [1.6, 2.8]
    """

    has_sync = False

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.last_change: Float64s = np.full(start.items, start.now)

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        interval = self.interval[items] * np.where(changed, NUTCH_DECREASE, NUTCH_INCREASE)
        interval = np.clip(interval, NUTCH_LEAST * self.round, NUTCH_MOST * self.round)
        self.last_change[items] = np.where(changed, now, self.last_change[items])
        reference = now
        if self.has_sync:
            delta = now - self.last_change[items]
            interval = np.maximum(interval, delta)
            reference = now - NUTCH_SYNC * delta
        # I = δ has no upper limit: with one, an item long unchanged would be due in the past, for ever.
        self.interval[items] = interval
        return np.asarray(reference + self.interval[items])

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        numbers = super().add(weights, costs, now, families)
        self.last_change = np.concatenate([self.last_change, np.full(numbers.size, now)])
        return numbers


class NutchSync(Nutch):
    """Nutch's adaptive rule with sync."""

    has_sync = True


class StormCrawler(IntervalPolicy):
    """StormCrawler's rule: after a change (I + min)/2, otherwise 1.5·I up to a maximum.

    >>> policy = StormCrawler(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False]); policy.interval.round(6).tolist()
    [1.041667, 3.0]
    """

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        interval = self.interval[items]
        longer = np.minimum(STORM_INCREASE * interval, STORM_MOST * self.round)
        self.interval[items] = np.where(changed, (interval + STORM_LEAST * self.round) / 2.0, longer)
        return np.asarray(now + self.interval[items])


class Proportional(IntervalPolicy):
    """Intervals ∝ 1/rate; re-scaled to the budget at every refit.

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
        """Cho's estimate of each rate; before any poll, what one round without a change would give."""
        polled = np.maximum(self.polled, 1.0)
        time = np.where(self.polled > 0, self.items.last_poll - self.first_poll, self.round)
        ratio = (polled - self.changed + 0.5) / (polled + 0.5)
        # Polls that found nothing give a rate of ln 1 = 0: half a change over all its time, or it would
        # starve.
        per_poll = np.maximum(-np.log(ratio), 0.5 / polled)
        return np.asarray(per_poll * polled / np.maximum(time, 1e-6 * self.round))

    def refit(self, now: float) -> None:
        """Set the intervals from all rates such that Σ c·f is the budget."""
        rate = np.where(self.items.alive, self.rates(), 0.0)
        scale = self.items.budget / max(float(self.items.cost @ rate), np.finfo(float).tiny)
        self.interval = 1.0 / np.maximum(rate * scale, 1e-3 / self.round)
        self.due = self.items.last_poll + self.interval
        self.last_refit = now

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        numbers = super().add(weights, costs, now, families)
        self.first_poll = np.concatenate([self.first_poll, np.full(numbers.size, now)])
        self.polled = np.concatenate([self.polled, np.zeros(numbers.size)])
        self.changed = np.concatenate([self.changed, np.zeros(numbers.size)])
        return numbers

    def set_budget(self, budget: float, now: float) -> None:
        """Set another budget and re-scale the intervals to it."""
        super().set_budget(budget, now)
        self.refit(now)


PLANS_PER_ROUND = 20
SPREAD, POINTS = 1e4, 60  # the likelihood is kept on a grid of rates this far around the mean frequency


class LambdaCrawl(IntervalPolicy):
    """Plans for estimated rates as if they were known.

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
        """One interval later, by the current plan."""
        elapsed = np.maximum(now - self.items.last_poll[items], 0.0)
        self.likelihood[items] += _log_likelihood(elapsed, changed, self.log_rates)
        self.items.last_poll[items] = now
        if now.size and now.max() - self.last_plan > self.round / PLANS_PER_ROUND:
            self.refit(float(now.max()))
        return np.asarray(now + self.interval[items])

    def rates(self) -> Float64s:
        """The maximum of each likelihood, by the parabola through the highest point and its neighbours."""
        peak = np.clip(self.likelihood.argmax(axis=1), 1, POINTS - 2)
        rows = np.arange(len(peak))
        left, top, right = (self.likelihood[rows, peak + step].astype(np.float64) for step in (-1, 0, 1))
        bend = left - 2.0 * top + right
        shift = np.where(bend < 0, 0.5 * (left - right) / np.minimum(bend, -1e-300), 0.0)
        step = self.log_rates[1] - self.log_rates[0]
        return np.asarray(np.exp(self.log_rates[peak] + np.clip(shift, -1.0, 1.0) * step))

    def refit(self, now: float) -> None:
        """Plan the memoryless optimum for the rates as they are estimated now."""
        objective = "harmonic" if self.is_harmonic else "freshness"
        weight = np.where(self.items.alive, self.items.weight, 0.0)
        rates, costs, budget = self.rates(), self.items.cost, self.items.budget
        plan = allocate(rates, budget, weights=weight, costs=costs, objective=objective, order="random")
        self.interval = 1.0 / np.maximum(np.asarray(plan.frequency, dtype=np.float64), 1e-6 / self.round)
        self.due = self.items.last_poll + self.interval
        self.last_plan = now

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        numbers = super().add(weights, costs, now, families)
        self.likelihood = np.concatenate([self.likelihood, self._initial_likelihood(numbers.size)])
        return numbers

    def set_budget(self, budget: float, now: float) -> None:
        """Set another budget and plan for it."""
        super().set_budget(budget, now)
        self.refit(now)

    def _initial_likelihood(self, items: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        both = _log_likelihood(np.full(2, self.round), np.array([True, False]), self.log_rates).sum(axis=0)
        return np.tile(both.astype(np.float32), (items, 1))


def _log_likelihood(elapsed: Float64s, changed: Bools, log_rates: Float64s) -> Float64s:
    """ln(1 − e^{−λt}) or −λt, a row per poll."""
    expected = elapsed[:, None] * np.exp(log_rates)
    found = np.log(-np.expm1(-np.maximum(expected, 1e-300)))
    return np.asarray(np.where(changed[:, None], found, -expected))
