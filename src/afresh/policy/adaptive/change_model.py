"""What the adaptive policy has learned about how its items change.

    belief        how often each item changes            ``rate_belief``
    shocks        which items change together            ``shocks``
    notices       what outsiders announce                ``notice_model``
    clock         which hours of the week are busy       ``season_clock``
    calibration   where the model errs                   ``calibration``

A poll teaches all of them; together they say how many changes to expect of an item since its last poll.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.adaptive.calibration import Calibration
from afresh.policy.adaptive.notice_model import NoticeModel
from afresh.policy.adaptive.rate_belief import Posteriors, RateBelief
from afresh.policy.adaptive.season_clock import SeasonClock
from afresh.policy.adaptive.shocks import Shocks
from afresh.policy.policy import PolicyInput, PolicyItems
from afresh.values.arrays import Bools, Float64s, Ints


class ChangeModel:
    """The items and all that was learned about them; the policy built on it decides what to poll.

    >>> model = ChangeModel(PolicyInput.of(2, 0.2))
    >>> for day in range(10, 300, 10):
    ...     _ = model.learn(np.arange(2), np.full(2, float(day)), np.array([True, False]))
    >>> quiet, busy = model.fresh(np.array([1, 0]), 295.0)
    >>> bool(quiet > 0.9), bool(busy < 0.3)
    (True, True)
    """

    def __init__(self, start: PolicyInput) -> None:
        frequency = start.mean_frequency
        self.items = PolicyItems(start)
        self.belief = RateBelief(start.items, frequency, start.slowest)
        self.calibration = Calibration(start.items, frequency)
        self.notices = NoticeModel(start.items, frequency)
        if start.hosts is not None:
            self.notices.set_hosts(np.arange(start.items), start.hosts)
        self.clock = SeasonClock(start.hour)
        families = np.zeros((start.items, 0), dtype=np.int64) if start.families is None else start.families
        self.shocks = Shocks(families, 1.0 / frequency, start.now) if families.size else None

    def grow(self, items: int, families: Ints | None) -> None:
        """Add new items, of which only what all items have in common is known."""
        self.belief.grow(items)
        self.calibration.grow(items)
        self.notices.grow(items)
        if self.shocks is not None:
            self.shocks.grow(np.full((items, self.shocks.share.size), -1) if families is None else families)

    def relearn(self) -> None:
        """Learn the prior, the season and the common part of the shocks again from all items."""
        self.belief.refit(self.items.alive)
        self.clock.refit(self.rates())
        if self.shocks is not None:
            self.shocks.refit()

    def rates(self) -> Float64s:
        """The posterior mean of each item's rate, shocks included."""
        every = np.arange(self.items.size)
        mean = self.belief.mean(every)
        return mean if self.shocks is None else mean + self.shocks.trust * self.shocks.rate(every)

    def own_factors(self, items: Ints) -> Float64s:
        """What the own rate of each item is multiplied by, by the calibration."""
        if self.shocks is None:
            return self.calibration.factors(items)
        trust = self.shocks.trust
        beside, alone = self.calibration.factors(items), self.calibration.factors_alone(items)
        return np.asarray(trust * beside + (1.0 - trust) * alone)

    def fresh(self, items: Ints, now: float) -> Float64s:
        """The probability that each of these copies is still right: Σ p·e^{−E}, p as of the last poll.

        Not p as of now: that a busy item may have become quiet makes no copy right again.
        """
        posterior, expected = self.belief.posterior[items], self.forecast(items, now)[1]
        return np.asarray(np.minimum(np.einsum("ij,ij->i", posterior, np.exp(-expected)), 1.0))

    def ages(self, items: Ints, now: float) -> Float64s:
        """The expected age of each of these copies: τ·Σ p·(1 − (1−e^{−E})/E), p as of the last poll."""
        posterior, expected = self.belief.posterior[items], self.forecast(items, now)[1]
        far = 1.0 + np.expm1(-expected) / np.maximum(expected, 1e-300)
        stale = np.where(expected < 1e-4, expected * (0.5 - expected / 6.0), far)
        elapsed = np.maximum(now - self.items.last_poll[items], 0.0)
        return np.asarray(elapsed * np.einsum("ij,ij->i", posterior, stale))

    def forecast(self, items: Ints, now: float) -> tuple[Posteriors, Float64s, Float64s]:
        """Each item's posterior, the changes expected since its last poll at each rate, and these rates."""
        since, until = self.items.last_poll[items], np.full(items.size, now)
        elapsed = np.maximum(self.clock.read(until) - self.clock.read(since), 0.0)
        factor = self.own_factors(items)
        expected = self.belief.expected(elapsed * factor)
        rate = factor[:, None] * self.belief.rates
        if self.notices.is_relevant(items):
            evidence = self.notices.evidence(items, self.belief.rates)
            expected = (1.0 - evidence.recall) * expected + evidence.announced
        if self.shocks is not None:
            expected += self.shocks.exposure(items, since, until).total(self.shocks.trust)[:, None]
            rate += self.shocks.trust * self.shocks.rate(items)[:, None]
        return self.belief.posteriors_after(items, elapsed), expected, rate

    def learn(self, items: Ints, now: Float64s, changed: Bools) -> Ints:
        """Learn from polls; returns the items whose families now expect more changes than before."""
        since = np.minimum(self.items.last_poll[items], now)
        self.clock.record(items, now, now - since, changed)
        elapsed = np.maximum(self.clock.read(now) - self.clock.read(since), 0.0)
        own = self.belief.observable(elapsed)
        unchanged = np.einsum("ij,ij->i", self.belief.posteriors(items), np.exp(-own))
        unchanged = np.clip(unchanged, 1e-300, 1.0)  # rows sum to 1 but for the rounding of float32
        alone = -np.log(unchanged)
        risen, shocked = np.zeros(0, dtype=np.int64), np.zeros(items.size)
        if self.shocks is not None:
            exposure, count = self.shocks.exposure(items, since, now), self.items.alive_count
            beside = alone * self.calibration.factors(items)
            without = alone * self.calibration.factors_alone(items)
            self.shocks.compare(beside + exposure.total(), without, changed, count)
            risen = self.shocks.learn(exposure, since, now, changed, beside)
            risen, shocked = risen[self.items.alive[risen]], self.shocks.exposure(items, since, now).total()
        # The own rate learns from every change, also from those of shocks. If shocks explained changes away,
        # the rates without them would be too low, and families would seem to be needed to predict.
        total = own.copy()
        notice_evidence: Float64s | float = 0.0
        if self.notices.is_relevant(items):
            told = self.notices.evidence(items, self.belief.rates)
            total += told.announced - told.recall * own
            # Notices are counted, a poll is one bit: that none came may tell more than ln 1/ε.
            unannounced = told.recall * self.belief.expected(elapsed)
            notice_evidence = told.evidence_share * told.announced - unannounced
        self.belief.learn(items, elapsed, changed, total, notice_evidence)
        rate = self.belief.mean(items)
        self.notices.learn(items, elapsed, changed, rate)
        share = alone / np.maximum(alone + shocked, 1e-300)
        self.calibration.record(items, 1.0 - unchanged, changed, share, self.items.alive_count)
        self.calibration.classify(items, rate, changed)
        self.items.last_poll[items] = now
        return risen
