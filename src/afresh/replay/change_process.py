"""How often the items of a simulated world change, and how the changes of one item follow each other.

The rates of items are drawn from a Gamma distribution, a power law or Cho's mix. A rate may drift over time:
its logarithm is then an Ornstein–Uhlenbeck process with standard deviation σ, whose autocorrelation falls to
1/e after a horizon H. The rate is constant over steps of H/4 (longer if there would be more than 4096 steps),
and its mean over time is the item's own rate.

The times between the changes of an item (gaps) have the distribution Gamma(k)/k, with mean 1 in units of
1/rate: k = 1 is a Poisson process, k > 1 is more regular (k → ∞ a clock), k < 1 is bursty. The process is
stationary: it starts at a random moment. A longer gap is more likely to contain this moment, so the length
of the first gap is Gamma(k+1)/k, and the moment is uniform within it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import UsageError

# Cho & Garcia-Molina 2000, Table 6: the share of each class of pages, and the days between its changes.
CHO_SHARES = (0.23, 0.15, 0.16, 0.16, 0.30)
CHO_INTERVALS_D = (1.0, 7.0, 30.0, 120.0, 365.0)


def gamma_rates(items: int, rng: Generator, *, mean: float, cv: float) -> Float64s:
    """Draw rates from a Gamma distribution; ``cv`` is standard deviation/mean, δ in Cho's Table 3.

    >>> rates = gamma_rates(100_000, np.random.default_rng(1), mean=0.2, cv=1.5)
    >>> round(float(rates.mean()), 2), round(float(rates.std() / rates.mean()), 1)
    (0.2, 1.5)
    """
    _check_rate("mean", mean, mean > 0)
    _check_rate("cv", cv, cv >= 0)
    if cv == 0:
        return np.full(items, mean)
    return rng.gamma(1 / cv**2, mean * cv**2, items)


def power_law_rates(items: int, rng: Generator, *, low: float, high: float, exponent: float) -> Float64s:
    """Draw rates λ with density ∝ λ^−exponent from ``low`` to ``high``; exponent 1 is uniform in ln λ.

    >>> rates = power_law_rates(100_000, np.random.default_rng(1), low=0.01, high=1.0, exponent=1.0)
    >>> round(float(np.exp(np.log(rates).mean())), 2), bool(rates.min() >= 0.01), bool(rates.max() <= 1)
    (0.1, True, True)
    """
    _check_rate("low", low, low > 0)
    _check_rate("high", high, high >= low)
    share = rng.random(items)
    width, power = np.log(high / low), 1 - exponent
    # The inverse of the distribution function: ln(λ/low) = ln(1+share·(e^{power·width}−1))/power, and
    # share·width if power is 0.
    if abs(power * width) < 1e-8:
        return np.asarray(np.minimum(low * np.exp(share * width), high))
    return np.asarray(np.clip(low * np.exp(np.log1p(share * np.expm1(power * width)) / power), low, high))


def cho_rates(items: int, rng: Generator) -> Float64s:
    """Draw rates of web pages per day from Cho's Table 6: a change every 1, 7, 30, 120 or 365 days.

    >>> rates = cho_rates(100_000, np.random.default_rng(1))
    >>> round(float(np.mean(rates == 1.0)), 2)
    0.23
    """
    return 1 / rng.choice(CHO_INTERVALS_D, size=items, p=CHO_SHARES)


def _check_rate(name: str, given: float, right: bool) -> None:
    if not right or not np.isfinite(given):
        limits = {"mean": "above 0", "cv": "0 or more", "low": "above 0", "high": "at least as large as low"}
        raise UsageError(f"{name} is {given:g}: must be {limits[name]}, and finite")


_STEPS_PER_HORIZON = 4
_MOST_STEPS = 4096


@dataclass(frozen=True, slots=True)
class RateDrift:
    """How rates drift: ``sd`` is the standard deviation of the logarithm of a rate, and ``horizon_s`` the
    seconds after which its autocorrelation is 1/e."""

    sd: float
    horizon_s: float

    def __post_init__(self) -> None:
        if not (self.sd >= 0 and np.isfinite(self.sd)):
            raise UsageError(f"drift: sd is {self.sd:g}: must be 0 or more")
        if not (self.horizon_s > 0 and np.isfinite(self.horizon_s)):
            raise UsageError(f"drift: horizon is {self.horizon_s:g} s: must be above 0")

    def steps(self, span_s: float) -> int:
        """Return the number of steps of constant rate into which ``span_s`` seconds are divided."""
        return int(min(max(np.ceil(_STEPS_PER_HORIZON * span_s / self.horizon_s), 1), _MOST_STEPS))

    def factors(self, items: int, span_s: float, rng: Generator) -> Float64s:
        """Return the factor of each item's rate (row) in each step (column); the factors have mean 1.

        >>> factors = RateDrift(0.5, 10.0).factors(100_000, 25.0, np.random.default_rng(1))
        >>> factors.shape, round(float(factors.mean()), 2), round(float(np.log(factors).std()), 2)
        ((100000, 10), 1.0, 0.5)
        """
        steps = self.steps(span_s)
        correlation = np.exp(-span_s / steps / self.horizon_s)
        logs = rng.normal(0.0, self.sd, (items, steps))
        innovation = np.sqrt(-np.expm1(2 * np.log(correlation))) if correlation > 0 else 1.0
        for step in range(1, steps):
            logs[:, step] = correlation * logs[:, step - 1] + innovation * logs[:, step]
        return np.asarray(np.exp(logs - self.sd**2 / 2))


def time_of_progress(amount: Float64s, owner: Ints, reached: Float64s) -> Float64s:
    """Return the share of the time span after which each process ``owner`` has reached ``amount``.
    ``reached`` has a row per process and one column more than there are steps: ``reached[i, j]`` is what
    process i has reached at the start of step j. Within a step it grows linearly.

    >>> time_of_progress(np.array([1.0, 3.0]), np.array([0, 0]), np.array([[0.0, 2.0, 4.0]])).tolist()
    [0.25, 0.75]
    """
    steps = reached.shape[1] - 1
    low = np.zeros(owner.size, dtype=np.int64)
    high = np.full(owner.size, steps, dtype=np.int64)
    for _ in range(int(steps).bit_length()):
        middle = (low + high) // 2
        beyond = reached[owner, middle] <= amount
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    low = np.minimum(low, steps - 1)
    begin, end = reached[owner, low], reached[owner, low + 1]
    part = (amount - begin) / np.where(end > begin, end - begin, 1.0)
    return np.asarray((low + np.clip(part, 0.0, 1.0)) / steps)


def renewal_events(lengths: Float64s, shape: float, rng: Generator) -> tuple[Ints, Float64s]:
    """Draw the events of processes of rate 1 with gaps Gamma(shape)/shape, one process for each length.
    Return a tuple (owner, place) of arrays: the process of each event, and its place in [0, lengths[owner]).

    >>> owner, place = renewal_events(np.array([0.0, 1e5]), 4.0, np.random.default_rng(1))
    >>> gaps = np.diff(place)
    >>> set(owner.tolist()), round(float(gaps.mean()), 2), round(float(gaps.std()), 1)   # sd = 1/√k
    ({1}, 1.0, 0.5)
    """
    if not (shape > 0 and np.isfinite(shape)):
        raise UsageError(f"shape of the gaps is {shape:g}: must be above 0, and finite (1 is Poisson)")
    reached = rng.gamma(shape + 1, 1 / shape, lengths.size) * rng.random(lengths.size)
    active = np.flatnonzero(reached < lengths)
    owners, places = [active], [reached[active]]
    while active.size:
        segment, place = _next_events(reached[active], lengths[active], shape, rng)
        owner = active[segment]
        inside = place < lengths[owner]
        owners.append(owner[inside])
        places.append(place[inside])
        last = np.flatnonzero(np.append(segment[1:] != segment[:-1], True))
        reached[owner[last]] = place[last]
        active = active[reached[active] < lengths[active]]
    owner, place = np.concatenate(owners), np.concatenate(places)
    order = np.argsort(owner, kind="stable")  # places ascend, because each pass continued the one before
    return owner[order], place[order]


def _next_events(begin: Float64s, end: Float64s, shape: float, rng: Generator) -> tuple[Ints, Float64s]:
    """Draw the next events of each process, probably enough to pass its end.
    Return a tuple (segment, place): the number of the process and the place of each event."""
    expected = end - begin
    counts = np.ceil(expected + 2 * np.sqrt(expected / shape) + 1).astype(np.int64)
    segment = np.repeat(np.arange(counts.size), counts)
    passed = np.cumsum(rng.gamma(shape, 1 / shape, segment.size))
    before = np.concatenate(([0.0], passed))[np.cumsum(counts) - counts]
    return segment, begin[segment] + (passed - before[segment])
