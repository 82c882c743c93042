"""What the adaptive policy has learned about how its items change.

    belief        how often each item changes                            ``rate_belief``
    shocks        which items change together                            ``shocks``
    notices       how reliable notices of changes are                    ``notice_model``
    clock         in which hours of the week changes are frequent        ``season_clock``
    calibration   corrections where the model expects too much or little ``calibration``

All five learn from every poll. Together they give E, the changes that are expected since an item's last poll.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.policy.adaptive.calibration import Calibration
from afresh.policy.adaptive.notice_model import NoticeModel
from afresh.policy.adaptive.rate_belief import Posteriors, RateBelief
from afresh.policy.adaptive.season_clock import SeasonClock
from afresh.policy.adaptive.shocks import Shocks, with_general_family
from afresh.policy.adaptive.stated_changes import StatedChanges
from afresh.policy.policy import PolicyInput, PolicyItems
from afresh.values.arrays import Bools, Float64s, Ints


@dataclass(frozen=True, slots=True)
class ChangeForecast:
    """What is expected of some items at one time: arrays with a row per item and a column per grid rate.

    ``posterior``      the belief at this time.
    ``expected``       E, the number of changes expected since the last poll.
    ``change_chance``  1−e^{−E}, the probability that the item has changed since then.
    ``rate``           the rate of the grid after calibration and with shocks.
    """

    posterior: Posteriors
    expected: Float64s
    change_chance: Float64s
    rate: Float64s


class ChangeModel:
    """The items of a policy and everything it learned about them. Its subclasses decide what to poll.

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
        self.shocks: Shocks | None = None
        if start.families is not None and start.families.size:
            families = with_general_family(start.families, start.items)
            self.shocks = Shocks(families, 1.0 / frequency, start.now, is_last_general=True)

    def grow(self, items: int, families: Ints | None) -> None:
        """Add new items, of which only the parameters that all items share are known."""
        self.belief.grow(items)
        self.calibration.grow(items)
        self.notices.grow(items)
        if self.shocks is not None:
            no_names = np.full((items, self.shocks.share.size - 1), -1)
            narrow = no_names if families is None else families
            self.shocks.grow(with_general_family(narrow, self.items.size))
            self.pass_own_rates(np.arange(self.items.size - items, self.items.size))

    def relearn(self) -> None:
        """Fit the prior, the season and the shared parameters of the shocks again to all items."""
        self.belief.refit(self.items.alive)
        self.clock.refit(self.rates())
        if self.shocks is not None:
            self.shocks.refit()
            every = np.arange(self.items.size)
            if self.items.alive_count:
                self.shocks.mean_own_rate = float(self.belief.mean(every)[self.items.alive].mean())
            self.pass_own_rates(every)

    def pass_own_rates(self, items: Ints) -> None:
        """Tell the shocks the own rates of these items, after the belief about them has changed."""
        if self.shocks is not None:
            self.shocks.set_own_rates(items, self.belief.mean(items))

    def rates(self) -> Float64s:
        """Return the posterior mean of each item's rate, including its changes by shocks."""
        every = np.arange(self.items.size)
        mean = self.belief.mean(every)
        return mean if self.shocks is None else mean + self.shocks.trust * self.shocks.rate(every)

    def own_factors(self, items: Ints) -> Float64s:
        """Return the calibration's factor for each item's own rate, which is its rate without shocks."""
        if self.shocks is None:
            return self.calibration.factors(items)
        return self.calibration.mean_factors(items, self.shocks.trust)

    def fresh(self, items: Ints, now: float) -> Float64s:
        """Return the probability that each of these copies is still right: Σ p·e^{−E} over the rates.
        E is the number of changes expected since the last poll at each rate. p is the belief just after the
        last poll. The belief of now must not be used: an item that may have become slow since then does not
        make its old copy right again."""
        is_right = 1.0 - self.forecast(items, now).change_chance
        return np.asarray(np.minimum((self.belief.posteriors(items) * is_right).sum(axis=1), 1.0))

    def ages(self, items: Ints, now: float) -> Float64s:
        """Return the expected age of each of these copies: τ·Σ p·(1 − (1−e^{−E})/E) over the rates.
        τ is the time since the last poll; p and E are those of ``fresh``."""
        forecast = self.forecast(items, now)
        expected = forecast.expected
        far = 1.0 - forecast.change_chance / np.maximum(expected, 1e-300)
        stale = np.where(expected < 1e-4, expected * (0.5 - expected / 6.0), far)
        elapsed = np.maximum(now - self.items.last_poll[items], 0.0)
        return np.asarray(elapsed * (self.belief.posteriors(items) * stale).sum(axis=1))

    def forecast(self, items: Ints, now: float) -> ChangeForecast:
        """Return what is expected of these items at time ``now``."""
        since, until = self.items.last_poll[items], np.full(items.size, now)
        elapsed = np.maximum(self.clock.read(until) - self.clock.read(since), 0.0)
        factor = self.own_factors(items)
        expected, chance = self.belief.expected(elapsed * factor), self.belief.change_chance(elapsed * factor)
        rate = self.belief.expected(factor)
        if self.notices.is_relevant(items):
            evidence = self.notices.evidence(items, self.belief.rates)
            expected = (1.0 - evidence.recall) * expected + evidence.announced
            chance = -np.expm1(-expected)
        if self.shocks is not None:
            by_shocks = self.shocks.exposure(items, since, until).total(self.shocks.trust)[:, None]
            expected += by_shocks
            chance -= np.expm1(-by_shocks) * (1.0 - chance)
            rate += self.shocks.trust * self.shocks.rate(items)[:, None]
        return ChangeForecast(self.belief.posteriors_after(items, elapsed), expected, chance, rate)

    def learn(self, items: Ints, now: Float64s, changed: Bools, stated: StatedChanges | None = None) -> Ints:
        """Learn from polls, and from what their sources ``stated`` with them; return the items whose families
        now expect clearly more changes than before."""
        since = np.minimum(self.items.last_poll[items], now)
        self.clock.record(items, now, now - since, changed)
        elapsed = np.maximum(self.clock.read(now) - self.clock.read(since), 0.0)
        finding = self.belief.finding(elapsed)
        unchanged = (self.belief.posteriors(items) * (1.0 - finding)).sum(axis=1)
        # Rows sum to 1 but for the rounding of float32.
        unchanged = np.minimum(np.maximum(unchanged, 1e-300), 1.0)
        alone = -np.log(unchanged)
        risen, shocked = np.zeros(0, dtype=np.int64), np.zeros(items.size)
        if self.shocks is not None:
            exposure, count = self.shocks.exposure(items, since, now), self.items.alive_count
            beside, without = alone * self.calibration.both_factors(items)
            self.shocks.compare(beside + exposure.total(), without, changed, count)
            risen = self.shocks.learn(exposure, since, now, changed, beside)
            risen, shocked = risen[self.items.alive[risen]], self.shocks.exposure_now(exposure).total()
        # The own rate learns from every change, even if a shock may have caused it. Otherwise the own rates
        # alone would be too low, and the comparison above would wrongly favour the model with families.
        other_evidence: Float64s | float = 0.0
        if self.notices.is_relevant(items):
            told = self.notices.evidence(items, self.belief.rates)
            # A poll can find −ln(1 − finding) changes: a share of them is not announced, and those announced
            # are added.
            finding = -np.expm1((1.0 - told.recall) * np.log1p(-finding) - told.announced)
            # The limit 1−ε of ``finding`` is for the one bit of a poll. Notices are counted, and that none
            # came may tell more, so the unlimited λτ is used here.
            unannounced = told.recall * self.belief.expected(elapsed)
            other_evidence = told.evidence_share * told.announced - unannounced
        if stated is not None:
            # The season's clock stretches busy hours; the stated time is stretched as the whole interval.
            stretch = elapsed / np.maximum(now - since, 1e-300)
            in_season = StatedChanges(stated.since * stretch, stated.count)
            other_evidence += in_season.evidence(
                elapsed, changed, finding, self.belief.rates, 1.0 - unchanged
            )
        self.belief.learn(items, elapsed, changed, finding, other_evidence)
        rate = self.belief.mean(items)
        self.notices.learn(items, elapsed, changed, rate)
        if self.shocks is not None:
            self.shocks.set_own_rates(items, rate)
        share = alone / np.maximum(alone + shocked, 1e-300)
        self.calibration.record(items, 1.0 - unchanged, changed, share, self.items.alive_count)
        self.calibration.classify(items, rate, changed)
        self.items.last_poll[items] = now
        return risen
