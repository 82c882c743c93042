"""Poisson changes of items that may be refreshed only at some hours of the week: windows.

The windows repeat with a period P, in which they are open for the time O. An item is refreshed at even
distances S of *open* time, at any hour of it. So the mean time between two refreshes is T = S·P/O, but the
real time G between two of them depends on where in the week they are: it is S plus the closed times between
them. The averages over the open hour u of the first one are

    N(T) = E_u[(1−e^{−λG})/λ]    the time in which the copy is right, and
    M(T) = E_u[∫₀ᴳ a(v)dv]       the sum of its ages, with a(v) = v − (1−e^{−λv})/λ,

so that the freshness is N(T)/T and the mean age M(T)/T. These have the form of a decay function: N is the
integral of its survival z = N'(T), which never rises, and M that of its loss. Its z(0) is below 1: with ever
more refreshes the freshness approaches z(0), because copies still age while the windows are closed. For
given S, G is constant between the hours at which the first or the second refresh meets the end of a window.
So the averages are exact sums over 2k pieces for k windows, and the derivatives have a term for each end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.model.curves import age_curve
from afresh.model.decays.parameters import Size, as_times, check_parameter, divide_by_rate, sample_shape
from afresh.model.decays.rate_decays import Exponential
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import InputError

_BLOCK = 8192  # items at a time, so that temporary arrays stay in the cache
_FAR = 1e100  # a time that stands for infinity
_STEPS = 60  # of bisection
_PER_OCTAVE, _MOST_RATES, _TIMES = 16, 1000, 512  # of the table from which times are read
_JUMPS, _EDGE = 256, 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class OpenHours:
    """Windows that repeat with a ``period``. ``ends`` has, for each closed time, how much of the open time of
    a period comes before it; ``closed`` has its length. All times are in the unit of the rates.

    >>> OpenHours.of([0.0, 24.0], [6.0, 30.0], period=48.0)     # the same window every day
    OpenHours(period=24.0, ends=array([6.]), closed=array([18.]))
    """

    period: float
    ends: Float64s
    closed: Float64s

    @classmethod
    def of(cls, opens: ArrayLike, closes: ArrayLike, period: float) -> OpenHours:
        """Build from the times within a period at which windows open and close, sorted."""
        begin, end = as_times(opens), as_times(closes)
        after = np.append(begin[1:], begin[0] + period) if begin.size else begin
        if begin.size == 0 or not (np.all(begin < end) and np.all(end <= after)):
            raise InputError("windows must close after they open, follow each other and fit into the period")
        lengths, closed = end - begin, after - end
        if np.ptp(lengths) == 0 and np.ptp(closed) == 0:  # the period is shorter than it was said to be
            lengths, closed, period = lengths[:1], closed[:1], period / begin.size
        return cls(float(period), np.cumsum(lengths), closed)

    @property
    def open_time(self) -> float:
        """The time of a period in which windows are open."""
        return float(self.ends[-1])

    def gaps(self, apart: Float64s) -> tuple[Float64s, Float64s]:
        """Return a tuple (share, gap), arrays with a column per piece of the open time: what share of the
        refreshes falls into it, and the real time until the next one, if refreshes are ``apart`` in open
        time."""
        total = self.open_time
        rounds, rest = np.divmod(apart, total)
        starts = np.concatenate(
            [np.broadcast_to(self.ends % total, (*apart.shape, self.ends.size)), self._starts(rest)], axis=-1
        )
        starts.sort(axis=-1)
        widths = np.diff(starts, axis=-1, append=starts[..., :1] + total)
        middle = starts + widths / 2
        gap = apart[..., None] + np.repeat(rounds[..., None] * self.closed.sum(), middle.shape[-1], axis=-1)
        for end, length in zip(self.ends, self.closed, strict=True):
            gap += length * ((end - middle) % total < rest[..., None])
        return widths / total, gap

    def gaps_before_ends(self, apart: Float64s) -> Float64s:
        """Return the real time between two refreshes if the second comes at the end of a window, with a
        column for each window; the closed time after it is not included."""
        total = self.open_time
        rounds, rest = np.divmod(apart, total)
        gap = apart[..., None] + np.repeat(rounds[..., None] * self.closed.sum(), self.ends.size, axis=-1)
        for at, length in enumerate(self.closed):
            before = (self.ends - self.ends[at]) % total
            gap += length * ((before > 0) & (before < rest[..., None]))
        return np.asarray(gap)

    def jumps(self, most: int) -> Float64s:
        """Return the first distances in open time, about ``most``, at which the gaps change suddenly: those
        between the ends of two windows."""
        apart = np.unique((self.ends[:, None] - self.ends) % self.open_time)
        rounds = np.arange(max(most // apart.size, 1))
        found = (apart + rounds[:, None] * self.open_time).ravel()
        return np.asarray(found[found > 0])

    def _starts(self, rest: Float64s) -> Float64s:
        """Return the open hours of first refreshes whose second one comes at the end of a window."""
        return np.asarray((self.ends - rest[..., None]) % self.open_time)


Average = Callable[["Windowed", Exponential, Float64s], Float64s]


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Windowed:
    """The decay of items with Poisson changes of ``rate`` that are refreshed in the open ``hours`` only.
    Times t are the mean times between refreshes, over open and closed hours.

    >>> nights = OpenHours.of([0.0], [8.0], period=24.0)
    >>> hourly = Windowed(1 / 24, nights).integral(1.0)      # refreshed once an hour on average: in the night
    >>> round(float(hourly), 3), round(float(Exponential(1 / 24).integral(1.0)), 3)
    (0.811, 0.979)
    """

    rate: Float64s
    hours: OpenHours
    _tables: dict[bool, _GainTable]

    def __init__(self, rate: ArrayLike, hours: OpenHours) -> None:
        object.__setattr__(self, "rate", check_parameter("rate", rate))
        object.__setattr__(self, "hours", hours)
        object.__setattr__(self, "_tables", {})

    def __getitem__(self, part: slice) -> Windowed:
        """Return the decay of some of the items."""
        return Windowed(self.rate[part], self.hours)

    def survival(self, t: ArrayLike) -> Float64s:
        """Return z(t) = N'(t), by which the time in which a copy is right grows with t."""
        return np.where(self._never(t), self.plateau(), self._in_blocks(Windowed._survival, t))

    def integral(self, t: ArrayLike) -> Float64s:
        """Return N(t), the expected time in which a copy is right, between two refreshes."""
        return np.where(self._never(t), self.total(), self._in_blocks(Windowed._integral, t))

    def gain(self, t: ArrayLike) -> Float64s:
        """Return N(t) − t·N'(t), the freshness that one more refresh per time gains."""
        inner = np.minimum(as_times(t), _FAR)
        found = np.maximum(self.integral(inner) - inner * self.survival(inner), 0.0)
        return np.where(self.rate > 0, np.where(self._never(t), self.total(), found), 0.0)

    def loss(self, t: ArrayLike) -> Float64s:
        """Return M'(t), by which the sum of a copy's ages between two refreshes grows with t."""
        found = self._in_blocks(Windowed._loss, t)
        return np.where(self._never(t), np.where(self.rate > 0, np.inf, 0.0), found)

    def age_gain(self, t: ArrayLike) -> Float64s:
        """Return t·M'(t) − M(t), the mean age that one more refresh per time saves."""
        inner = np.minimum(as_times(t), _FAR)
        found = np.maximum(inner * self.loss(inner) - self._in_blocks(Windowed._ages, inner), 0.0)
        return np.where(self._never(t), np.where(self.rate > 0, np.inf, 0.0), found)

    def interval_at(self, price: Float64s, of_age: bool) -> Float64s:
        """Return the mean time t between refreshes at which one more refresh per time gains ``price``, which
        has an entry for each item and is below the largest possible gain. ``of_age`` says whether the gain is
        ``age_gain(t)`` or ``gain(t)``.

        It is read from a table for sixteen rates per octave and 512 times, and interpolated, because a search
        for each item and price takes minutes. The spend of a plan is computed from the times found."""
        table = self._tables.get(of_age)
        if table is None:
            table = self._tables[of_age] = _make_table(self.rate, self.hours, of_age)
        with np.errstate(divide="ignore"):
            found = np.exp(table.read(np.broadcast_to(self.rate, price.shape), np.log(price)))
        return np.where(self.rate > 0, found, np.inf)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Draw times t with P(time > t) = z(t), found by bisection."""
        wanted = rng.random(sample_shape(size, self.rate))
        low, high = np.zeros_like(wanted), np.broadcast_to(divide_by_rate(1e4, self.rate), wanted.shape)
        for _ in range(_STEPS):
            middle = np.where(np.isinf(high), np.inf, low + (high - low) / 2)
            later = self.survival(middle) > wanted
            low, high = np.where(later, middle, low), np.where(later, high, middle)
        return high

    def total(self) -> Float64s:
        """Return 1/λ, the expected time for which a copy that is never refreshed again stays right."""
        return divide_by_rate(1.0, self.rate)

    def plateau(self) -> Float64s:
        """Return z(∞): 0, or 1 for items of rate 0."""
        return np.where(self.rate > 0, 0.0, 1.0)

    def _never(self, t: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.isinf(as_times(t)) | np.zeros(self.rate.shape, dtype=bool)

    def _in_blocks(self, average: Average, t: ArrayLike) -> Float64s:
        """Return ``average`` for mean times t between refreshes; an infinite t counts as very long."""
        times = np.minimum(as_times(t), _FAR)
        shape = np.broadcast_shapes(times.shape, self.rate.shape)
        apart = np.broadcast_to(times * (self.hours.open_time / self.hours.period), shape).ravel()
        rate = np.broadcast_to(self.rate, shape).ravel()
        found = np.empty(apart.size)
        for begin in range(0, apart.size, _BLOCK):
            some = slice(begin, begin + _BLOCK)
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                found[some] = average(self, Exponential(rate[some, None]), apart[some])
        return found.reshape(shape)

    def _integral(self, poisson: Exponential, apart: Float64s) -> Float64s:
        share, gap = self.hours.gaps(apart)
        return np.asarray((share * poisson.integral(gap)).sum(axis=-1))

    def _survival(self, poisson: Exponential, apart: Float64s) -> Float64s:
        share, gap = self.hours.gaps(apart)
        before = self.hours.gaps_before_ends(apart)
        ends = poisson.survival(before) * poisson.integral(self.hours.closed)
        open_time = self.hours.open_time
        found = open_time * (share * poisson.survival(gap)).sum(axis=-1) + ends.sum(axis=-1)
        return np.asarray(found / self.hours.period)

    def _ages(self, poisson: Exponential, apart: Float64s) -> Float64s:
        share, gap = self.hours.gaps(apart)
        return np.asarray((share * _sum_of_ages(poisson, gap)).sum(axis=-1))

    def _loss(self, poisson: Exponential, apart: Float64s) -> Float64s:
        share, gap = self.hours.gaps(apart)
        before = self.hours.gaps_before_ends(apart)
        ends = _sum_of_ages(poisson, before + self.hours.closed) - _sum_of_ages(poisson, before)
        found = self.hours.open_time * (share * poisson.loss(gap)).sum(axis=-1) + ends.sum(axis=-1)
        return np.asarray(found / self.hours.period)


def _sum_of_ages(poisson: Exponential, gap: Float64s) -> Float64s:
    """Return ∫₀ᴳ a(v)dv for the time G between two refreshes; a(v) is the expected age v after the first."""
    return np.asarray(gap * gap * age_curve(poisson.rate * gap))


@dataclass(frozen=True, slots=True, eq=False)
class _GainTable:
    """The gain of one more refresh per time, for some rates (a row each) and times between refreshes."""

    log_rates: Float64s
    log_times: Float64s
    log_gains: Float64s

    def read(self, rate: Float64s, wanted: Float64s) -> Float64s:
        """Return ln t for items of these rates and the logarithms ``wanted`` of their gains."""
        last = self.log_rates.size - 1
        with np.errstate(divide="ignore"):
            place = np.interp(np.log(rate), self.log_rates, np.arange(last + 1.0))
        below = np.clip(place.astype(np.int64), 0, max(last - 1, 0))
        found = np.empty(rate.shape)
        for at in np.unique(below).tolist():
            own = below == at
            low, high = (self._read_row(each, wanted[own]) for each in (at, min(at + 1, last)))
            found[own] = low + (place[own] - at) * (high - low)
        return found

    def _read_row(self, row: int, wanted: Float64s) -> Float64s:
        """Return ln t for one rate. At times below those of the table, gains are in proportion to t²."""
        gains, times = self.log_gains[row], self.log_times[row]
        below = times[0] + (wanted - gains[0]) / 2
        return np.asarray(np.where(wanted < gains[0], below, np.interp(wanted, gains, times)))


def _make_table(rate: Float64s, hours: OpenHours, of_age: bool) -> _GainTable:
    changing = rate[rate > 0] if np.any(rate > 0) else np.ones(1)
    slowest, fastest = float(changing.min()), float(changing.max())
    steps = int(np.clip(np.ceil(np.log2(fastest / slowest) * _PER_OCTAVE), 0, _MOST_RATES))
    rates = np.geomspace(slowest, fastest, steps + 1)
    shortest, longest = 1e-6 * np.minimum(1 / rates, hours.period), 60 / rates + 2 * hours.period
    times = np.geomspace(shortest, longest, _TIMES, axis=1)
    # The gain jumps where G does: just below and above these times, in the same columns for all rates.
    jumps = hours.jumps(_JUMPS) * (hours.period / hours.open_time)
    edges = np.concatenate([jumps * (1 - _EDGE), jumps * (1 + _EDGE)])
    times = np.sort(np.concatenate([times, np.broadcast_to(edges, (rates.size, edges.size))], axis=1), axis=1)
    decay = Windowed(rates[:, None], hours)
    gains = decay.age_gain(times) if of_age else decay.gain(times)
    gains = np.maximum(np.maximum.accumulate(gains, axis=1), 1e-300)
    return _GainTable(np.log(rates), np.log(times), np.log(gains))
