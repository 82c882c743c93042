"""Seasons: one hour-of-week profile s with mean 1 for all items, which turns clock time t into Λ(t) = ∫₀ᵗ s.

In this operational time Λ a busy hour is long and a quiet hour is short. Changes are a Poisson process again,
so every estimator can use operational times. The profile is fitted by EM to the intervals between polls in
which changes were found. Given the rate λ and at least one change, an interval of operational length Λ has
λΛ/(1−e^{−λΛ}) expected changes, which are distributed over its hours in proportion to the profile. The new
profile is expected changes divided by expected exposure (rate · time), after ``PSEUDO`` changes of a flat
profile are added to each hour.

The profile is used only if it predicts better than a flat one; otherwise the flat profile is returned. It is
fitted to the even weeks and scored on the odd weeks, and the other way round. The log score of both together
must rise by ``MARGIN`` standard errors over the items. Weeks and not items are left out, because an event
that changes all items once is not a season. For the score, the profile is scaled so that each item is
expected to change as often as with the flat profile. So it gains only by predicting when changes happen, and
not by correcting the rates of items that are polled only at certain hours.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from afresh.rates.poll_table import PollTable
from afresh.values.arrays import ArrayLike, Bools, Float64s, Floats, Ints
from afresh.values.errors import InputError

HOURS = 168
PSEUDO = 3.0
ROUNDS = 30
MARGIN = 2.5
_NO_CLOCK = "a season needs the times of the polls, not only the intervals"


@dataclass(frozen=True, slots=True)
class Season:
    """The relative rate in each hour of the week (``profile``, of mean 1); hour 0 begins at time 0.
    With Unix times hour 0 is Thursday, 00:00 UTC. ``hour`` is the length of an hour in the unit of the times.
    ``gain`` is the mean gain in log-likelihood per poll over a flat profile, in weeks left out of the fit.

    >>> flat = Season(np.ones(168), hour=3600.0)
    >>> flat.operational([0.0, 7200.0, 1e9]).round(6).tolist(), flat.is_supported
    ([0.0, 7200.0, 1000000000.0], False)
    """

    profile: Float64s
    hour: float
    gain: float = 0.0
    # Whether the profile is not flat, and the operational hours since the week began at each of its hours.
    # Both are computed once, because the policy reads the clock many times at every poll.
    is_supported: bool = field(init=False, repr=False, compare=False)
    _before: Float64s = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_supported", bool(np.any(self.profile != 1.0)))
        object.__setattr__(self, "_before", np.concatenate(([0.0], np.cumsum(self.profile))))

    @property
    def strength(self) -> float:
        """The standard deviation of the profile around its mean of 1.

        >>> Season(np.repeat([0.5, 1.5], 84), 1.0).strength
        0.5
        """
        return float(self.profile.std())

    def apply_to(self, polls: PollTable) -> PollTable:
        """Return the same polls in operational time; raise ``InputError`` if they have no ``end``."""
        if polls.end is None:
            raise InputError(_NO_CLOCK)
        end = self.operational(polls.end)
        elapsed = end - self.operational(polls.end - polls.elapsed)
        # In hours without any change operational time nearly stands still, but an interval must be above 0.
        elapsed = np.maximum(elapsed, 1e-9 * polls.elapsed)
        since = polls.since
        if since is not None:
            known = ~np.isnan(since)
            since = since.copy()
            passed = end[known] - self.operational(polls.end[known] - since[known])
            since[known] = np.minimum(passed, np.where(polls.changed, elapsed, np.inf)[known])
        return replace(polls, elapsed=elapsed, since=since, end=end)

    def operational(self, times: ArrayLike) -> Float64s:
        """Return the operational time Λ(t), which equals t at the end of every full week."""
        hours = np.asarray(times, dtype=np.float64) / self.hour
        week = np.floor(hours / HOURS) * HOURS
        rest = hours - week
        hour = np.minimum(rest.astype(np.int64), HOURS - 1)  # rounding may give a rest of a full week
        passed = self._before[hour]
        passed += (self._before[hour + 1] - passed) * (rest - hour)
        return np.asarray(self.hour * (week + passed))


def fit_season(polls: PollTable, rates: Floats, *, hour: float = 3600.0, always: bool = False) -> Season:
    """Return the hour-of-week profile of these polls, or the flat profile if it does not predict better.
    ``rates`` are the items' estimated rates in clock time; ``polls`` must have their ``end``. With ``always``
    the profile is returned even if it does not predict better."""
    if polls.end is None:
        raise InputError(_NO_CLOCK)
    intervals = PollIntervals.of(polls, polls.end, rates, hour)
    if always:
        return Season(_fit(intervals), hour)
    even = np.floor(intervals.end / HOURS) % 2 == 0
    gains = np.zeros(polls.items)
    for half in (even, ~even):
        profile, other = _fit(intervals.take(half)), intervals.take(~half)
        item = polls.item[~half]
        gains += np.bincount(item, other.gain(profile, item), minlength=polls.items)
    telling = gains[polls.changes_per_item() > 0]
    error = float(telling.std(ddof=1)) * np.sqrt(telling.size) if telling.size > 1 else np.inf
    gain = float(gains.sum())
    if not gain > MARGIN * error:
        return Season(np.ones(HOURS), hour)
    return Season(_fit(intervals), hour, gain / polls.size)


@dataclass(frozen=True, slots=True)
class PollIntervals:
    """The intervals between polls: begin and end in hours since the beginning of a week, the item's changes
    per hour, and whether the poll at the end found a change."""

    begin: Float64s
    end: Float64s
    rate: Float64s
    changed: Bools

    @classmethod
    def of(cls, polls: PollTable, end: Float64s, rates: Floats, hour: float) -> PollIntervals:
        first = float((end - polls.elapsed).min()) if end.size else 0.0
        origin = np.floor(first / (hour * HOURS)) * HOURS
        last = end / hour - origin
        # A static item (rate 0) gives no information about seasons; a tiny rate avoids ln 0 for it.
        own = np.maximum(rates[polls.item] * hour, 1e-300)
        return cls(last - polls.elapsed / hour, last, own, polls.changed)

    def take(self, which: Bools) -> PollIntervals:
        return PollIntervals(self.begin[which], self.end[which], self.rate[which], self.changed[which])

    def expected(self, profile: Float64s) -> Float64s:
        """Return the expected changes in each interval under this profile: rate · operational length."""
        season = Season(profile, 1.0)
        length = season.operational(self.end) - season.operational(self.begin)
        return self.rate * np.maximum(length, 1e-12 * (self.end - self.begin))

    def gain(self, profile: Float64s, item: Ints) -> Float64s:
        """Return how much the log score of each poll is higher with this profile than with a flat one.
        ``profile`` is scaled so that each ``item`` has the same expected changes as with the flat profile."""
        with_profile, flat = self.expected(profile), self.rate * (self.end - self.begin)
        scale = np.bincount(item, flat) / np.maximum(np.bincount(item, with_profile), 1e-300)
        with_profile = with_profile * scale[item]
        found = np.log(np.expm1(-with_profile) / np.expm1(-flat))
        return np.where(self.changed, found, flat - with_profile)

    def changes_by_hour(self, profile: Float64s) -> Float64s:
        """Return the changes that are expected in each hour of the week under this profile, given which polls
        found one. The intervals must be those in which one was found."""
        per_operational_hour = self.rate / -np.expm1(-self.expected(profile))
        return np.asarray(profile * self.exposure(per_operational_hour))

    def exposure(self, weight: Float64s) -> Float64s:
        """Return Σ weight·time over the intervals, for the time that they have in each hour of the week."""
        return _spent(self.end, weight) - _spent(self.begin, weight)


def _spent(until: Float64s, weight: Float64s) -> Float64s:
    """Return Σ weight·time in each hour of the week, over the times from 0 to ``until``."""
    weeks, rest = np.divmod(until, HOURS)
    cell = np.minimum(rest.astype(np.int64), HOURS - 1)
    whole = np.bincount(cell, weight, minlength=HOURS)
    part = np.bincount(cell, weight * (rest - cell), minlength=HOURS)
    later = whole.sum() - np.cumsum(whole)  # times that end in a later hour include all of this hour
    return np.asarray(float(weight @ weeks) + later + part)


def _fit(intervals: PollIntervals) -> Float64s:
    profile = np.ones(HOURS)
    if intervals.begin.size == 0:
        return profile
    exposure = intervals.exposure(intervals.rate)
    found = intervals.take(intervals.changed)
    for _ in range(ROUNDS):
        profile = profile_of(found.changes_by_hour(profile), exposure)
    return profile


def profile_of(changes: Float64s, exposure: Float64s) -> Float64s:
    """Return the profile by the changes and the exposure in each hour of the week (the last axis)."""
    profile = (changes + PSEUDO) / (exposure + PSEUDO)
    return np.asarray(profile / profile.mean(axis=-1, keepdims=True))
