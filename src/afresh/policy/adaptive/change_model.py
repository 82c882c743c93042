"""What an adaptive policy knows of its items: how often each changes, what changes together, who tells.

    belief        how often each item changes            ``belief``
    shocks        what changes together                  ``shocks``
    notices       what outsiders say                     ``notices``
    season        which hours of the week are busy       ``season_clock``
    calibration   where the model errs                   ``calibration``

A poll teaches all of them; together they say how many changes to expect of an item since its last poll.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.adaptive.calibration import Calibration
from afresh.policy.adaptive.notice_model import NoticeModel
from afresh.policy.adaptive.rate_belief import RateBelief, Rows
from afresh.policy.adaptive.season_clock import SeasonClock
from afresh.policy.adaptive.shocks import Shocks
from afresh.policy.policy import PolicyInput
from afresh.policy.policy_items import PolicyItems
from afresh.values.arrays import Bools, Float64s, Ints


class ChangeModel:
    """The items and all that was learned of them; what to do about it is the policy's.

    >>> known = ChangeModel(PolicyInput.of(2, 0.2))
    >>> for day in range(10, 300, 10):
    ...     _ = known.learn(np.arange(2), np.full(2, float(day)), np.array([True, False]))
    >>> sure, unsure = known.fresh(np.array([1, 0]), 295.0)
    >>> bool(sure > 0.9), bool(unsure < 0.3)
    (True, True)
    """

    def __init__(self, start: PolicyInput) -> None:
        frequency = start.mean_frequency
        self.items = PolicyItems(start)
        self.belief = RateBelief(start.items, frequency, start.slowest)
        self.calibration = Calibration(start.items, frequency)
        self.notices = NoticeModel(start.items, frequency)
        self.clock = SeasonClock(start.hour)
        families = np.zeros((start.items, 0), dtype=np.int64) if start.families is None else start.families
        self.shocks = Shocks(families, 1.0 / frequency, start.now) if families.size else None

    def grow(self, items: int, families: Ints | None) -> None:
        """New items, of which only what all have in common is known."""
        self.belief.grow(items)
        self.calibration.grow(items)
        self.notices.grow(items)
        if self.shocks is not None:
            self.shocks.grow(np.full((items, self.shocks.share.size), -1) if families is None else families)

    def relearn(self) -> None:
        """The prior, the season and the shocks' common part anew."""
        self.belief.refit(self.items.alive)
        self.clock.refit(self.rates())
        if self.shocks is not None:
            self.shocks.refit()

    def rates(self) -> Float64s:
        """What is believed of each item's rate, shocks included: posterior mean."""
        every = np.arange(self.items.size)
        return self.belief.mean(every) + self._shock_rate(every)

    def fresh(self, items: Ints, now: float) -> Float64s:
        """The probability that each of these copies is still right: Σ p·e^{−E}, p as of the last poll.

        Not as of now: that a busy item may have become quiet makes no copy right again.
        """
        posterior, expected = self.belief.rows[items], self.outlook(items, now)[1]
        return np.asarray(np.minimum(np.einsum("ij,ij->i", posterior, np.exp(-expected)), 1.0))

    def ages(self, items: Ints, now: float) -> Float64s:
        """The expected age of each of these copies: τ·Σ p·(1 − (1−e^{−E})/E), p as of the last poll."""
        posterior, expected = self.belief.rows[items], self.outlook(items, now)[1]
        far = 1.0 + np.expm1(-expected) / np.maximum(expected, 1e-300)
        stale = np.where(expected < 1e-4, expected * (0.5 - expected / 6.0), far)
        elapsed = np.maximum(now - self.items.last[items], 0.0)
        return np.asarray(elapsed * np.einsum("ij,ij->i", posterior, stale))

    def outlook(self, items: Ints, now: float) -> tuple[Rows, Float64s, Float64s]:
        """Each item's posterior, the changes expected since its last poll at each rate, and their rates."""
        since, until = self.items.last[items], np.full(items.size, now)
        elapsed = np.maximum(self.clock.read(until) - self.clock.read(since), 0.0)
        factor = self.calibration.of(items)
        expected = self.belief.expected(elapsed * factor)
        rate = factor[:, None] * self.belief.rates
        if self.notices.matter(items):
            told = self.notices.told(items, self.belief.rates)
            expected = (1.0 - told.recall) * expected + told.hints
        if self.shocks is not None:
            expected += self.shocks.felt(items, since, until).total()[:, None]
            rate += self.shocks.rate(items)[:, None]
        return self.belief.after(items, elapsed), expected, rate

    def learn(self, items: Ints, now: Float64s, changed: Bools) -> Ints:
        """Polls and what they found. Returns the items whose families now expect more changes than before."""
        since = np.minimum(self.items.last[items], now)
        self.clock.record(items, now, now - since, changed)
        elapsed = np.maximum(self.clock.read(now) - self.clock.read(since), 0.0)
        own = self.belief.telling(elapsed)
        quiet = np.einsum("ij,ij->i", self.belief.of(items), np.exp(-own))
        quiet = np.clip(quiet, 1e-300, 1.0)  # rows sum to 1 but for the rounding of float32
        alone = -np.log(quiet)
        risen, shocked = self._learn_shocks(items, since, now, changed, alone)
        total = own + shocked[:, None]
        evidence: Float64s | float = 0.0
        if self.notices.matter(items):
            told = self.notices.told(items, self.belief.rates)
            total += told.hints - told.recall * own
            # Notices are counted, not one bit: their silence is not bounded.
            evidence = told.once * told.hints - told.recall * self.belief.expected(elapsed)
        self.belief.learn(items, elapsed, changed, total, evidence)
        rate = self.belief.mean(items)
        self.notices.learn(items, elapsed, changed, rate)
        share = alone / np.maximum(alone + shocked, 1e-300)
        self.calibration.count(items, 1.0 - quiet, changed * share, self.items.number)
        self.calibration.classify(items, rate, changed)
        self.items.last[items] = now
        return risen

    def _learn_shocks(
        self, items: Ints, since: Float64s, now: Float64s, changed: Bools, alone: Float64s
    ) -> tuple[Ints, Float64s]:
        """Teach the shocks: whom they now hit harder, and what they have brought each item since its poll."""
        if self.shocks is None:
            return np.zeros(0, dtype=np.int64), np.zeros(items.size)
        risen = self.shocks.learn(self.shocks.felt(items, since, now), since, now, changed, alone)
        return risen[self.items.alive[risen]], self.shocks.felt(items, since, now).total()

    def _shock_rate(self, items: Ints) -> Float64s:
        return np.zeros(items.size) if self.shocks is None else self.shocks.rate(items)
