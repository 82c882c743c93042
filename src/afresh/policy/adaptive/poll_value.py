"""What a poll of an item gains now, and what its result is worth for later polls of the same item.

The poll value is the mean over the belief about the item's rate; the formula is derived in docs/science.md.
For one rate λ and E changes expected since the last poll it is w·marginal(E)/(c·λ^k). Here w is the item's
weight, c the cost of a poll and k the power of the objective. For freshness (k = 1) this is
w·(1−(1+E)e^{−E})/(cλ); the other objectives are in ``allocation.objectives``. An item should be polled when
its poll value reaches the shadow price. The functions of this file assume w = c = 1.

The value of information: if an item's rate is known better, the budget is spent better. Let q be the belief:
the probability of each rate. The best fixed frequency f earns W(q) = max over f of Σ q·λ^{1−k}·value(λ/f) −
price·f per unit of time, where price = shadow price·c/w. A poll at time τ after the last one splits q into
q·e^{−λτ} (no change) and q·(1−e^{−λτ}) (a change). W is convex in q, so the result of the poll is worth

    B(τ) = W(q·e^{−λτ}) + W(q·(1−e^{−λτ})) − W(q) ≥ 0

per unit of time, for as long as the knowledge is used. This is the knowledge gradient (Frazier, Powell &
Dayanik 2008). The poll that is planned anyway, at τ*, brings B(τ*) at no extra cost, so an earlier poll gains
only B(τ) − B(τ*). For items that change more slowly than they are polled this is negative, because a later
poll tells more. It matters for items that every poll finds changed. Some of them change a little faster than
they are polled and should be polled more often. Others change far too fast and should not be polled at all.
Only polls at shorter intervals can tell which.
"""

from __future__ import annotations

import math

import numpy as np

from afresh.allocation.objectives import objective_for
from afresh.policy.adaptive.rate_belief import Posteriors
from afresh.policy.adaptive.row_products import row_products
from afresh.values.arrays import Bools, Float64s, Floats

MIDDLE = 9  # how many rates of the grid, counted from its top, are at or above about the mean frequency
OCTAVES = 22  # the number of times in the table of poll values; each is twice the one before
HALVINGS = 12  # steps of the bisection for the logarithm of a time
SMALL = 1e-4  # for smaller E, two terms of a series give the marginal value; they are right to 3e−9
_LIMITS = np.finfo(np.float32)


class PollValue:
    """Computes poll values for one objective on a grid of ``rates``, for items of weight 1 and cost 1.

    >>> poll_value = PollValue("freshness", np.array([1.0]))
    >>> poll_value.marginal(np.array([[1.0]])).round(4).tolist()
    [[0.2642]]
    """

    def __init__(self, objective: str, rates: Float64s) -> None:
        self.name, self.rates = objective, rates
        self.objective = objective_for(objective, "fixed")
        self.times: Float64s = np.exp2(np.arange(OCTAVES) - OCTAVES / 2) / rates[-MIDDLE:][0]
        self.table = self.values_at(self.times).astype(np.float32)

    def values_at(self, times: Float64s) -> Float64s:
        """Return the poll value of each rate (row) at each of the times after a poll (column)."""
        rates = self.rates[:, None]
        return np.asarray(self.marginal(rates * times) / rates**self.objective.power)

    def marginal(self, expected: Float64s, change_chance: Float64s | None = None) -> Float64s:
        """Return the objective's marginal value at each E; ``change_chance`` is 1−e^{−E}, if it is known."""
        if self.name != "freshness":
            return self.objective.marginal(expected)
        # This is curves.g with fewer passes over the array, because it is the innermost loop of the policy:
        # 1−(1+E)e^{−E} = c−E+cE where c is the chance of a change, and E²/2−E³/3 where E is small.
        chance = -np.expm1(-expected) if change_chance is None else change_chance
        gain = chance - expected
        gain += chance * expected
        small = expected < SMALL
        if small.any():
            few = expected[small]
            gain[small] = few * few * (0.5 - few / 3.0)
        return gain

    def mean(
        self, posterior: Floats, expected: Float64s, rate: Float64s, change_chance: Float64s | None = None
    ) -> Float64s:
        """Return the poll value of each item: Σ p·marginal(E)/rate^k over the rates, k the objective's power.
        p (``posterior``) is the probability of each rate, E (``expected``) the changes expected since the
        last poll, and ``rate`` the mean growth of E per unit of time. All have a row per item and a column
        per rate; ``expected`` and ``rate`` may have a single row, which then holds for all items.
        ``change_chance`` is 1−e^{−E}, if it is known."""
        gain = self.marginal(expected, change_chance)
        gain /= rate if self.objective.power == 1 else rate**self.objective.power
        return np.asarray((posterior * gain).sum(axis=1))

    def highest(self, rate: Float64s) -> Float64s:
        """Return the poll value of each rate after an infinite time."""
        return np.asarray(self.objective.top / rate**self.objective.power)

    def time_to_reach(self, posterior: Posteriors, value: Float64s) -> Float64s:
        """Return the time after a poll when the poll value of each row reaches ``value``; inf if never.

        The poll values of all rows at these times are one matrix product; between two of these times
        ln V is taken as linear in ln τ.
        """
        goal = np.minimum(np.maximum(value, _LIMITS.tiny), _LIMITS.max).astype(np.float32)
        reached = row_products(posterior, self.table)
        below = np.add.reduce((reached < goal[:, None]).view(np.int8), axis=1, dtype=np.int8)
        place = np.minimum(np.maximum(below, 1), OCTAVES - 1).astype(np.int64)
        flat = place + np.arange(0, reached.size, OCTAVES)
        left = np.maximum(reached.take(flat - 1), _LIMITS.tiny)
        right = np.maximum(reached.take(flat), _LIMITS.tiny)
        rise = np.maximum(np.log(right / left), np.float32(1e-7))
        with np.errstate(over="ignore"):  # an item of weight 0 never reaches its goal, which may be 1e38
            share = np.minimum(np.maximum(np.log(goal / left) / rise, 0.0), 1.0)
        return np.where(below == OCTAVES, np.inf, self.times[place - 1] * np.exp2(share))

    def exact_time_to_reach(
        self, posterior: Floats, rates: Float64s, value: Float64s, longest: float
    ) -> Float64s:
        """Return what ``time_to_reach`` returns, but to 1 % and with ``rates`` that differ between rows.
        Times above ``longest`` become infinite. The result is also infinite if the poll value of the median
        rate never reaches ``value``. Otherwise every item would be worth a poll in the end, because of the
        small probability that its rate is low.

        >>> poll_value = PollValue("freshness", np.array([1.0]))
        >>> one, goal = np.ones((2, 1)), np.array([0.2642, 1.1])
        >>> poll_value.exact_time_to_reach(one, one, goal, 1e9).round(1)
        array([ 1., inf])
        """
        low, high = np.full(value.size, 1e-3 * self.times[0]), np.full(value.size, longest)
        posterior, rates = np.asfortranarray(posterior), np.asfortranarray(rates)  # see ``RateBelief``
        half = 0.5 * posterior.sum(axis=1, keepdims=True)
        median = np.argmax(np.cumsum(posterior, axis=1) >= half, axis=1)
        typical = np.take_along_axis(rates, median[:, None], axis=1)[:, 0]
        never = self.mean(posterior, rates * high[:, None], rates) < value
        never |= self.highest(typical) < value
        for _ in range(HALVINGS):
            middle = np.sqrt(low * high)
            reached = self.mean(posterior, rates * middle[:, None], rates) >= value
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.where(never, np.inf, high)


# The frequencies f that W(q) compares: from six octaves below the mean frequency, in steps of 3/4 octave.
OCTAVES_BELOW, SETTLED_STEPS, SETTLED_PER_OCTAVE = 6, 16, 4 / 3
SATURATED = 0.25  # if P(no change) at τ* is above this, the planned poll tells enough
# Earlier polls are tried at TIMES times, from 2^−SOONEST mean polling intervals on, each twice the last.
SOONEST, TIMES = 5, 8


class Exploration:
    """Computes B(τ), the value of the information that a poll gives at time τ after the last one.
    The formula is in the docstring of this file. ``rates`` is the grid, ``frequency`` the mean frequency.

    >>> exploration = Exploration(PollValue("freshness", np.array([1 / 7, 1.0])), 1 / 30)
    >>> either = np.array([[0.5, 0.5]], dtype=np.float32)       # changes weekly or daily
    >>> soon, late = (exploration.information(either, np.array([t]), np.array([3.4]))[0] for t in (5.0, 30.0))
    >>> soon.round(3), late.round(3)                            # freshness, by a poll after 5 and 30 days
    (np.float64(0.028), np.float64(0.001))
    """

    def __init__(self, poll_value: PollValue, frequency: float) -> None:
        self.rates, objective = poll_value.rates, poll_value.objective
        octaves = np.arange(SETTLED_STEPS) / SETTLED_PER_OCTAVE - OCTAVES_BELOW
        self.settled = (frequency * np.exp2(octaves)).astype(np.float32)
        scale = self.rates[:, None] ** (1.0 - objective.power)
        self.earned = (scale * objective.value(self.rates[:, None] / self.settled)).astype(np.float32)
        # The times at which a poll may be made earlier, the poll values at them, and P(no change) until then.
        self.times = np.exp2(np.arange(TIMES) - SOONEST) / frequency
        self.values = poll_value.values_at(self.times)
        self.unchanged = np.exp(-self.times[:, None] * self.rates).astype(np.float32)

    def information(self, posterior: Posteriors, elapsed: Float64s, price: Float64s) -> Float64s:
        """Return the value of information B(τ) of each item, per unit of time and for weight 1.

        ``posterior`` is the belief (a row per item), ``elapsed`` τ, ``price`` shadow price·cost/weight.
        """
        unchanged = np.exp(-elapsed[:, None] * self.rates).astype(np.float32)
        return self._gain(posterior[:, None], unchanged[:, None], price)[:, 0]

    def information_at_times(self, posterior: Posteriors, price: Float64s) -> Float64s:
        """Return the value of information of each item (row) at each of the ``times`` (column)."""
        return self._gain(posterior[:, None], self.unchanged, price)

    def _gain(self, posterior: Posteriors, unchanged: Posteriors, price: Float64s) -> Float64s:
        cost = price.astype(np.float32)[:, None]
        if_unchanged = posterior * unchanged
        gain = self._best_income(if_unchanged, cost) + self._best_income(posterior - if_unchanged, cost)
        gain -= self._best_income(posterior, cost)
        return np.asarray(np.maximum(gain, 0.0).astype(np.float64))

    def _best_income(self, posterior: Posteriors, price: Posteriors) -> Posteriors:
        """Return W(q), what the best fixed frequency earns per unit of time, for each belief q.

        Beliefs are on the last axis; their probabilities need not sum to 1.
        """
        flat = row_products(posterior.reshape(-1, self.rates.size), self.earned)
        earned = flat.reshape(*posterior.shape[:2], -1)
        earned -= (posterior.sum(axis=2) * price)[:, :, None] * self.settled
        return np.asarray(earned.max(axis=2))

    def is_uninformative(self, posterior: Posteriors, due: Float64s) -> Bools:
        """Return for each item whether its poll at ``due`` tells little, because it likely finds a change."""
        late = np.minimum(due, 1e6 * self.times[-1])
        # By Jensen's inequality P(no change) ≥ e^{−mean rate·τ}. This cheap test decides for most items.
        found = row_products(posterior, self.rates.astype(np.float32)) * late >= -math.log(SATURATED)
        some = np.flatnonzero(found)
        if some.size:
            unchanged = np.exp(-late[some, None] * self.rates).astype(np.float32)
            found[some] = np.vecdot(posterior[some], unchanged) < SATURATED
        return np.asarray(found)
