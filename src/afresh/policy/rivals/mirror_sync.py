"""MirrorSync: improves polling frequencies by mirror descent, without a model of how items change.

Kolobov, Bubeck & Zimmert 2020, "Online learning for active cache synchronization" (ICML), in the practical,
asynchronous form (AsyncMirrorSync). The paper calls polling frequencies rates r. An item is polled every 1/r;
the time between is a cycle. In a share ε of the cycles the item gets one more poll, the probe, at u/r after
the start, with u uniform in (0, 1). Let s(t) be the probability that a copy is stale at time t after a poll.
Then an item is stale for the share C(r) = r·∫₀^{1/r} s(t)dt of the time, whose derivative by r is
(E[s(u/r)] − s(1/r))/r. So

    g = (stale at the probe − stale at the end of the cycle)/(ε·r), 0 in cycles without a probe

is an unbiased estimate of the derivative; "stale" is 1 or 0. The mean of g over the cycles of an item moves
its rate from r₀ to r by mirror descent with the barrier −ln r. The new rates minimise the sum of η·g·r + r/r₀
− ln(r/r₀) over all items that ended a cycle, at the same total cost, where η is the learning rate. So
1/r = 1/r₀ + η·g + μ·c within limits, with the item's cost c and one multiplier μ for all items.

Policies draw no random numbers. Weyl sequences decide instead which cycles are probed, and when.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.ranking_policy import IntervalPolicy
from afresh.values.arrays import Bools, Float64s, Ints

PROBED_SHARE = 0.1  # ε
LEARNING_RATE = (
    0.05  # η; a change between the probe and the end of an item's only cycle gives 1/r − η/(ε·r) = 1/(2r)
)
LEAST_RATE, MOST_RATE = 0.05, 20.0  # in units of the mean frequency
_WEYL = np.array([0.7548776662466927, 0.5698402909980532])  # irrational, so that no two draws are equal
_HALVINGS = 100


class MirrorSync(IntervalPolicy):
    """Polls each item at a frequency (``rates``) that mirror descent improves once in a round of all items.
    The time between two regular polls of an item is a cycle; a probe is an additional poll within a cycle.

    >>> policy = MirrorSync(PolicyInput.of(3, 1.1))
    >>> policy.rates.round(6).tolist()                    # a tenth of the budget is kept for probes
    [0.333333, 0.333333, 0.333333]
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        frequency = start.mean_frequency / (1.0 + PROBED_SHARE)
        self.rates: Float64s = np.full(start.items, frequency)
        self.cycle_start: Float64s = np.full(start.items, start.now)
        self.cycle: Ints = np.zeros(start.items, dtype=np.int64)
        self.awaits_probe: Bools = np.zeros(start.items, dtype=bool)
        self.was_probed: Bools = np.zeros(start.items, dtype=bool)
        self.probe_found: Bools = np.zeros(start.items, dtype=bool)
        self.gradient: Float64s = np.zeros(start.items)
        self.cycles_ended: Float64s = np.zeros(start.items)
        self.last_refit = start.now

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """Return due times: after a probe the end of the cycle, otherwise the next poll of a new cycle."""
        is_probe = self.awaits_probe[items]
        probed, ended = items[is_probe], items[~is_probe]
        self.awaits_probe[probed] = False
        self.was_probed[probed], self.probe_found[probed] = True, changed[is_probe]
        self._end_cycles(ended, now[~is_probe], changed[~is_probe])
        if now.size and now.max() - self.last_refit > self.round:
            self.refit(float(now.max()))
        return self._due(items)

    def _end_cycles(self, items: Ints, now: Float64s, changed: Bools) -> None:
        """Add to the estimates of the derivative of the stale time, and begin the next cycle of each item."""
        stale = self.probe_found[items] | changed
        cost = self.probe_found[items].astype(np.float64) - stale
        estimate = np.where(self.was_probed[items], cost / (PROBED_SHARE * self.rates[items]), 0.0)
        self.gradient[items] += self.items.weight[items] * estimate
        self.cycles_ended[items] += self.cycle[items] > 0  # the first one is never probed
        self.cycle[items] += 1
        self.cycle_start[items] = now
        self.was_probed[items] = self.probe_found[items] = False
        self.awaits_probe[items] = self.draws(items)[:, 0] < PROBED_SHARE

    def draws(self, items: Ints) -> Float64s:
        """Return two numbers in [0, 1) for the present cycle of each item (row), instead of random ones."""
        return np.asarray((items[:, None] * _WEYL[::-1] + self.cycle[items][:, None] * _WEYL) % 1.0)

    def _due(self, items: Ints) -> Float64s:
        part = np.where(self.awaits_probe[items], self.draws(items)[:, 1], 1.0)
        self.interval[items] = 1.0 / self.rates[items]
        return np.asarray(self.cycle_start[items] + part * self.interval[items])

    def refit(self, now: float) -> None:
        """Make one step of mirror descent for the items that ended a cycle since the last step."""
        which = np.flatnonzero(self.cycles_ended > 0)
        self.last_refit = now
        if which.size == 0:
            return
        # Weights are divided by their mean, because only the ratios between weights may matter.
        scale = float(self.items.weight.mean()) or 1.0
        slope = self.gradient[which] / (self.cycles_ended[which] * scale)
        before, cost = self.rates[which], self.items.cost[which]
        limits = (LEAST_RATE * self.items.mean_frequency, MOST_RATE * self.items.mean_frequency)
        self.rates[which] = mirror_step(before, slope, cost, limits)
        self.gradient[which] = self.cycles_ended[which] = 0.0
        self.due = self._due(np.arange(self.items.size))


def mirror_step(rates: Float64s, slope: Float64s, cost: Float64s, limits: tuple[float, float]) -> Float64s:
    """Return new rates r with 1/r = 1/r₀ + η·slope + μ·cost within ``limits``, r₀ being the old ``rates``.
    η is ``LEARNING_RATE``. The multiplier μ is the one with which Σ cost·r stays the same.

    >>> after = mirror_step(np.ones(2), np.array([-10.0, 0.0]), np.ones(2), (0.1, 10.0))
    >>> after.round(3).tolist(), round(float(after.sum()), 9)             # 1/r differ by 1/2
    ([1.236, 0.764], 2.0)
    """
    total = float(cost @ rates)
    inverse = 1.0 / rates + LEARNING_RATE * slope

    def at(price: float) -> Float64s:
        wanted = inverse + price * cost
        return np.clip(np.where(wanted > 0, 1.0 / np.maximum(wanted, 1e-300), np.inf), *limits)

    # With μ = ±reach every rate is at one of its limits, so the total cost is between the two.
    reach = float(np.abs(inverse).max() + 1.0 / limits[0]) / float(cost.min())
    low, high = -reach, reach
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(cost @ at(middle)) > total else (low, middle)
    return at(high)
