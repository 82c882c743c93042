"""The adaptive policy: learns rates as it goes and polls whatever gains most. The default.

    knowledge     what to expect of each item            ``knowledge``
    worth         what a poll now would gain             ``worth``
    curiosity     what it would teach                    ``curiosity``

Every item has a moment at which it deserves a look: when, by its rate alone, its worth reaches a little less
than the level the budget pays. Only items whose moment has come are valued exactly, and the best are polled.
Where the level has moved far, all items are re-keyed in one vectorised pass.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.adaptive.change_model import ChangeModel
from afresh.policy.adaptive.exploration import Exploration
from afresh.policy.adaptive.poll_value import PollValue
from afresh.policy.adaptive.rate_belief import Rows
from afresh.policy.adaptive.saved_state import (
    Arrays,
    Stored,
    copied_fields,
    field,
    put_fields,
    put_rows,
    put_shared,
    rows_of,
    shared_of,
)
from afresh.policy.policy import PolicyInput, as_poll_arrays, largest
from afresh.values.arrays import ArrayLike, Float64s, Ints
from afresh.values.errors import InputError

SHARED = ("learned_for", "bound", "since_rekey", "since_refit", "refit_gap")
MARGIN = 0.93  # of the level at which a look is deserved
TOO_MANY = 4  # candidates for each item polled: the level has risen
AT_ONCE = 8192  # items keyed at a time, so that their rows stay in the cache
# Of the time since its last poll an item waits to be looked at again, at least and at most; many small finds
# raise a family's shocks unannounced, and at a most of 0.3 half of what families bring was lost.
AGAIN_AFTER = 0.01, 0.05
NEAR = 3.0  # batches before it can reach the level an item that was looked at in vain is looked at again
LONGEST = 10.0  # mean intervals until an item is looked at, whatever is believed of it
SAMPLED = 32  # of the items to be looked at next that tell where the others are
SAMPLE = 4096  # items that tell what the budget pays
REKEY_POLLS = 0.1  # of all items must be polled between two re-keyings
LEARNING = 20.0  # mean intervals for which a bit is of use, at most; at first as long as there were polls
REFIT_AFTER, REFIT_GROWTH = 1.0, 1.3  # rounds of all items until the first refit, and the growth of the gap


class Adaptive(ChangeModel):
    """One setting for all sources.

    >>> policy = Adaptive(PolicyInput.of(3, 0.3))
    >>> for day in range(200):
    ...     items = policy.next(10.0 * day, 3)
    ...     policy.observe(items, 10.0 * day, items == 1)
    >>> policy.rates().round(2).argmax()
    np.int64(1)
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        frequency = start.mean_frequency
        self.worth = PollValue(start.objective, self.belief.rates)
        self.curiosity = Exploration(self.worth.objective, self.belief.rates, frequency)
        self.spared: Float64s = np.full(start.items, np.inf)  # B(τ*), infinite where nobody is curious
        self.learned_for, self._now = 0.0, start.now
        self.look: Float64s = np.full(start.items, start.now)
        self.since_rekey = -start.items
        self.since_refit, self.refit_gap = 0, REFIT_AFTER
        typical = self.belief.expected(np.array([0.7 / frequency]))
        self.bound = float(self.worth.of(self.belief.prior[None], typical, self.belief.rates[None])[0])
        # Of items all alike, one after the other: a first round within the time that a round takes.
        self.look += (np.arange(start.items) + 1.0) / (max(start.items, 1) * frequency)

    def next(self, now: float, k: int) -> Ints:
        """The k items worth most."""
        return self.items.pick(now, k, lambda n: self._most_urgent(now, n))

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """Learn from polls, and key the items anew."""
        which, when, found = as_poll_arrays(items, now, changed)
        if which.size == 0:
            return
        latest = float(when.max())
        self.learned_for, self._now = self.learned_for + max(latest - self._now, 0.0), max(latest, self._now)
        self.belief.watched(self.learned_for)
        risen = self.learn(which, when, found)
        self.look[risen] = np.minimum(self.look[risen], self.clock.read(when.max(keepdims=True)))
        self._key(which, when)
        self.since_rekey += which.size
        self.since_refit += which.size
        if self.since_refit >= self.refit_gap * self.items.number:
            self.refit(latest)

    def notice(self, items: ArrayLike, now: ArrayLike, source: str = "") -> None:
        """A hint makes an item worth a look; what hints of a source are worth is learned for each."""
        which = self.items.known(items)
        there = self.items.alive[which]
        when = np.broadcast_to(np.asarray(now, dtype=np.float64), which.shape)[there]
        self.notices.hear(which[there], source)
        np.minimum.at(self.look, which[there], self.clock.read(when))

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """New items; of their rates the prior is believed."""
        numbers = self.items.add(weights, costs, now)
        more = numbers.size
        self.grow(more, families)
        self.look = np.concatenate([self.look, np.full(more, now)])
        self.spared = np.concatenate([self.spared, np.full(more, np.inf)])
        self._key(numbers, np.full(more, now))
        return numbers

    def remove(self, items: ArrayLike) -> None:
        """Never polled again."""
        which = self.items.known(items)
        self.items.remove(which)
        self.look[which] = np.inf

    def reweigh(self, items: ArrayLike, weights: ArrayLike, costs: ArrayLike) -> None:
        """Another importance and cost."""
        which = self.items.known(items)
        self.items.reweigh(which, weights, costs)
        self._key(which, self.items.last[which])

    def set_budget(self, budget: float, now: float) -> None:
        """The level follows by itself; all items are re-keyed for where it will settle."""
        ratio = budget / self.items.budget
        self.items.set_budget(budget)
        self.bound = self._level_at(1.0 / ratio)
        self.rekey(now)

    def _level_at(self, longer: float) -> float:
        """Where the level will settle if intervals grow so: the index is ∝ τ^{p+1} while changes are few."""
        return float(self.bound * longer ** (self.worth.objective.power + 1))

    def refit(self, now: float) -> None:
        """Learn the prior, the season and the shocks' common part anew."""
        self.relearn()
        self.since_refit, self.refit_gap = 0, self.refit_gap * REFIT_GROWTH
        self._rekey_to(self._paid(now), now)

    def rekey(self, now: float) -> None:
        """When each item deserves a look, for all items at once."""
        del now
        for begin in range(0, self.items.size, AT_ONCE):
            some = np.arange(begin, min(begin + AT_ONCE, self.items.size))
            self._key(some, self.items.last[some])
        self.since_rekey = 0

    def values(self, items: Ints, now: float) -> Float64s:
        """What a poll of each of these items now would gain per cost."""
        posterior, expected, rate = self.outlook(items, now)
        worth = self.worth.of(posterior, expected, rate)
        curious = np.flatnonzero(np.isfinite(self.spared[items]))
        if curious.size:
            worth[curious] += self._lesson(items[curious], posterior[curious], now)
        return np.asarray(worth * self.items.weight[items] / self.items.cost[items])

    def _lesson(self, items: Ints, posterior: Rows, now: float) -> Float64s:
        """What the bit of a poll now is worth beyond that of the poll which is due anyway."""
        elapsed = np.maximum(self.clock.read(np.array(now)) - self.clock.read(self.items.last[items]), 0.0)
        bit = self.curiosity.bit(posterior, elapsed, self._price(items))
        return self._use() * np.maximum(bit - self.spared[items], 0.0)

    def _use(self) -> float:
        """For how long what is learned now will be of use: as long as there was something to learn."""
        return min(self.learned_for, LEARNING / self.items.mean_frequency)

    def _price(self, items: Ints) -> Float64s:
        return self.bound / MARGIN * self.items.cost[items] / np.maximum(self.items.weight[items], 1e-300)

    def due(self, items: Ints, level: ArrayLike) -> Float64s:
        """How long after a poll the worth of each item reaches ``level``, its shocks taken at their mean.

        Infinite where it stays below.
        """
        worth_of_one = self.items.weight[items] / self.items.cost[items]
        factor = self.calibration.of(items)
        rows = self.belief.rows[items]
        if self.shocks is not None:
            rate = rows @ self.belief.rates.astype(np.float32)
            factor = factor + self.shocks.rate(items) / np.maximum(rate, 1e-300)
        # E = s·λτ has the index of λ at s·τ, divided by s^p.
        power = self.worth.objective.power
        goal = np.asarray(level) * factor**power / np.maximum(worth_of_one, 1e-270)
        return self.worth.due(rows, goal) / factor

    def shared(self) -> Arrays:
        """What was learned of all items together; ``restore`` takes it (see ``learned``)."""
        own = copied_fields(self, SHARED) | {"budget": np.array(self.items.budget)}
        return shared_of(self) | own

    def rows(self, items: ArrayLike) -> Arrays:
        """What is known of each of these items, a row per item in every array; ``restore`` takes it."""
        which = self.items.known(items)
        return rows_of(self, which) | {"look": self.look[which], "spared": self.spared[which]}

    def restore(self, shared: Stored | None, items: ArrayLike = (), rows: Stored | None = None) -> None:
        """Go on from what another process learned: of all together, and of ``items``, one row each.

        Either may be missing. To be called before anything else is learned; weights, costs and the budget
        are those of today.
        """
        which = self.items.known(items)
        if shared is not None:
            put_shared(self, shared, every=which.size == self.items.size)
            put_fields(self, SHARED, shared, "")
            self.worth = PollValue(self.worth.name, self.belief.rates)
            self.curiosity = Exploration(self.worth.objective, self.belief.rates, self.items.mean_frequency)
            self.bound = self._level_at(float(field(shared, "budget", ())) / self.items.budget)
            self._key(np.arange(self.items.size), self.items.last)
        if rows is not None:
            put_rows(self, which, rows)
            self.spared[which] = field(rows, "spared", (which.size,))
            self.look[which] = field(rows, "look", (which.size,))
            self.look[~self.items.alive] = np.inf
            self._now = max(self._now, float(self.items.last.max(initial=-np.inf)))

    def recall(self, items: ArrayLike, shape: ArrayLike, rate: ArrayLike, last: ArrayLike) -> None:
        """Start from Gamma(shape, rate) summaries of these items' rates, last polled at ``last``."""
        which = self.items.known(items)
        a, b = (
            np.broadcast_to(np.asarray(one, dtype=np.float64), which.shape)[:, None] for one in (shape, rate)
        )
        if not (np.all(a > 0) and np.all(b > 0) and np.all(np.isfinite(a + b))):
            raise InputError("a summary needs a shape and a rate above 0")
        # The Gamma's density per step of the ladder, which is even in ln λ: λ^a·e^{−bλ}.
        log = a * np.log(self.belief.rates) - b * self.belief.rates
        density = np.exp(log - log.max(axis=1, keepdims=True))
        self.belief.rows[which] = density / density.sum(axis=1, keepdims=True)
        self.belief.polled[which] = True
        self.copied(which, last)

    def copied(self, items: ArrayLike, now: ArrayLike) -> None:
        """These items were copied at ``now``, here or elsewhere; of changes nothing is said or learned."""
        which = self.items.known(items)
        when = np.broadcast_to(np.asarray(now, dtype=np.float64), which.shape)
        self.items.last[which] = when
        self.notices.number[which] = 0.0
        self._key(which, when)

    def _most_urgent(self, now: float, n: int) -> Ints:
        n = min(n, self.items.number)
        if n == 0:
            return np.zeros(0, dtype=np.int64)
        if self.shocks is not None:
            self.shocks.advance(now)
        come = np.flatnonzero(self.look <= self.clock.read(np.array(now)))
        value = self._valued(come, now)
        # What has not come is worth less than the bound, but perhaps more than what has come.
        short = int(np.count_nonzero(value >= self.bound)) < n
        if short:
            more = np.setdiff1d(self._soonest(come.size + TOO_MANY * n), come, assume_unique=True)
            if come.size + more.size < n:
                more = np.setdiff1d(np.flatnonzero(self.items.alive), come, assume_unique=True)
            come = np.concatenate([come, more])
            value = np.concatenate([value, self._valued(more, now)])
        chosen = largest(value, n)
        level = float(value[chosen[-1]])
        self._put_back(come, value, now, level * max(1.0 - NEAR * n / self.items.number, 0.9))
        self._settle(level, short, come.size > TOO_MANY * n + 64, now)
        return come[chosen]

    def _valued(self, items: Ints, now: float) -> Float64s:
        """``values``, a part at a time: all of millions would take more memory than there is, and longer."""
        parts = [self.values(items[begin : begin + AT_ONCE], now) for begin in range(0, items.size, AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _soonest(self, wanted: int) -> Ints:
        """About so many items, those to be looked at next: up to a moment that a sample of them tells."""
        sample = self.look[:: max(wanted // SAMPLED, 1)]
        among = min(-(-wanted * sample.size // self.items.size), sample.size) - 1
        moment = np.partition(sample, among)[among]
        return np.flatnonzero(self.look <= min(moment, np.finfo(float).max))

    def _put_back(self, come: Ints, value: Float64s, now: float, level: float) -> None:
        """When what was looked at deserves another look, should it not be polled: near ``level``."""
        read = self.clock.read(np.array(now))
        elapsed = read - self.clock.read(self.items.last[come])
        # Worth grows no faster than τ^{p+1} but for shocks, which is why nobody waits long.
        power = 1.0 / (self.worth.objective.power + 1)
        reach = np.maximum(level / np.maximum(value, max(1e-30 * level, 1e-300)), 1.0) ** power
        again = read + elapsed * np.clip(reach - 1.0, *AGAIN_AFTER)
        # Who was looked at before the time keeps it: else who was just polled would always be soonest.
        self.look[come] = np.maximum(self.look[come], again)

    def _settle(self, level: float, short: bool, many: bool, now: float) -> None:
        """Re-key all items where the level that the budget pays has moved far."""
        if self.since_rekey < REKEY_POLLS * self.items.size or level <= 0:
            return
        if (many and MARGIN * level > 1.05 * self.bound) or (short and level < self.bound):
            self._rekey_to(self._paid(now), now)

    def _rekey_to(self, level: float, now: float) -> None:
        if level > 0:
            self.bound = MARGIN * level
        self.rekey(now)

    def _paid(self, now: float) -> float:
        """The level until the next re-keying: all that will have reached it by then can be polled by then.

        Told by a sample of all items. What is being polled now tells less: after a refit few have come, and
        the best of few is worth anything or nothing.
        """
        alive = np.flatnonzero(self.items.alive)
        some = alive[:: max(-(-alive.size // SAMPLE), 1)]
        value = self._valued(some, now + REKEY_POLLS / self.items.mean_frequency)
        order = np.argsort(-value)
        spent = np.cumsum(self.items.cost[some[order]])
        return float(value[order[np.searchsorted(spent, REKEY_POLLS * spent[-1])]]) if some.size else 0.0

    def _key(self, items: Ints, last: Float64s) -> None:
        """The moment at which each item's worth reaches the bound."""
        due = self.due(items, self.bound)
        due = np.minimum(self._sooner(items, due), LONGEST / self.items.mean_frequency)
        self.look[items] = np.where(self.items.alive[items], self.clock.read(last) + due, np.inf)

    def _sooner(self, items: Ints, due: Float64s) -> Float64s:
        """When each item deserves a look, where a poll before it is due would teach enough."""
        self.spared[items] = np.inf
        rows = self.belief.rows[items]
        unsure = np.flatnonzero(self.curiosity.unsure(rows, due) & (self.items.weight[items] > 0))
        # Where no item is ever dropped (age, lag, …) the best frequency hardly depends on how fast is fast.
        if unsure.size == 0 or self.learned_for <= 0 or np.isinf(self.worth.objective.top):
            return due
        rows, which = rows[unsure], items[unsure]
        price = self._price(which)
        spared = self.curiosity.bit(rows, np.minimum(due[unsure], 1e6 * self.curiosity.times[-1]), price)
        self.spared[which] = spared
        goal = MARGIN * price
        sooner, use = due[unsure], self._use()
        for time in self.curiosity.times[::-1]:
            every = np.full(1, time)
            worth = self.worth.of(rows, self.belief.expected(every), self.belief.rates[None])
            worth += use * np.maximum(self.curiosity.bit(rows, every, price) - spared, 0.0)
            sooner = np.where(worth >= goal, np.minimum(0.75 * time, sooner), sooner)
        due = due.copy()
        due[unsure] = sooner
        return due
