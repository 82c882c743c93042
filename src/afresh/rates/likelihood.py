"""The evidence of each poll about a rate, and the log-likelihood of every item's polls on a grid of rates.

There are three kinds of evidence, from the weakest to the strongest:

- One bit. A poll that finds no change shows that there was none in the time t since the previous poll. A poll
  that finds a change shows only that there was at least one.
- The modification time (stamp) stated by the source. With x = min(time since modification, t), the poll shows
  one change, then none for a time x. This is exact, and as informative as several polls if the rate is high.
  Wrong stamps are already removed (see ``poll_table``).
- A count. A version number, a counter, a log or a feed states how many changes there were in the time t.

A poll without a stamp or count is used as one bit. To the log-likelihood of a rate λ, a poll without a change
adds −λt, k counted changes add k·ln λ − λt, a credible stamp adds ln λ − λx, and a change known only as a bit
adds ln(1−e^{−λt}). The grid has a fixed number of points per octave, so that the last term can be computed by
doubling: 1−e^{−2λt} = (1−e^{−λt})·(2−(1−e^{−λt})). This needs no exponential per point and loses no digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.rates.log_ratio import log_ratio
from afresh.rates.poll_table import PollTable
from afresh.rates.segments import Segments
from afresh.values.arrays import Bools, Float64s


@dataclass(frozen=True, slots=True)
class PollEvidence:
    """The evidence of each poll: the number of changes ``events`` in a time ``exposure``.
    If ``bit`` is true, the poll shows only that there was at least one change."""

    events: Float64s
    exposure: Float64s
    bit: Bools


def bit_evidence(polls: PollTable) -> PollEvidence:
    """Return one bit per poll: no change since the previous poll, or at least one."""
    return PollEvidence(np.zeros(polls.size), np.where(polls.changed, 0.0, polls.elapsed), polls.changed)


def stamp_evidence(polls: PollTable) -> PollEvidence:
    """Return one change and the time since it for polls with a credible stamp, one bit for the others."""
    if polls.since is None:
        return bit_evidence(polls)
    known = ~np.isnan(polls.since)
    stamped = polls.changed & known
    exposure = np.where(polls.changed, 0.0, polls.elapsed)
    exposure[stamped] = polls.since[stamped]
    return PollEvidence(stamped.astype(np.float64), exposure, polls.changed & ~known)


def count_evidence(polls: PollTable) -> PollEvidence:
    """Return the counted changes since the previous poll for polls with a count, one bit for the others."""
    if polls.count is None:
        return bit_evidence(polls)
    known = ~np.isnan(polls.count)
    bit = polls.changed & ~known
    return PollEvidence(np.where(known, polls.count, 0.0), np.where(bit, 0.0, polls.elapsed), bit)


def best_evidence(polls: PollTable) -> PollEvidence:
    """Return the strongest evidence of each poll: a count, else a credible stamp, else the bit.

    ``events`` and ``exposure`` are already multiplied by the weight of the poll. Bits are not."""
    found = stamp_evidence(polls)
    if polls.count is not None:
        counted, known = count_evidence(polls), ~np.isnan(polls.count)
        found = PollEvidence(
            np.where(known, counted.events, found.events),
            np.where(known, counted.exposure, found.exposure),
            np.where(known, counted.bit, found.bit),
        )
    if polls.weight is None:
        return found
    return PollEvidence(found.events * polls.weight, found.exposure * polls.weight, found.bit)


MOST_POINTS = 48
LOWEST, HIGHEST = 0.02, 8.0
LEAST_PRODUCT = 1e-290  # a product of probabilities below it could underflow
CHUNK = 1 << 14  # polls at a time, so that the arrays being doubled stay in the cache


def rate_grid(polls: PollTable) -> Float64s:
    """Return log-spaced rates over the range that the polls can resolve: 3, 2 or 1 per octave, at most 48.
    At the lowest rate a fiftieth of a change is expected in the longest history of an item; a lower rate
    cannot be told from 0. The highest is eight times the highest estimate of any item from its own polls.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> grid = rate_grid(polls_from_intervals([1.0] * 10, [True] * 10, item=[0] * 10))
    >>> len(grid), (grid[3] / grid[0]).round(12).item(), grid[0].item()
    (43, 2.0, 0.002)
    """
    if polls.size == 0:
        return _log_spaced_grid(2.0**-8, 2.0**4)
    highest = float(estimate_singly(polls).max())
    return grid_for(highest, float(polls.time_per_item().max()), float(polls.elapsed.mean()))


def grid_for(highest: float, longest: float, mean_interval: float) -> Float64s:
    """Return the grid of ``rate_grid`` for polls whose ``highest`` estimate of an item from its own polls,
    whose ``longest`` history of an item and whose mean interval are known."""
    high = HIGHEST * (highest if highest > 0 else 1.0 / mean_interval)
    return _log_spaced_grid(min(LOWEST / longest, high / 2.0**8), high)


def estimate_singly(polls: PollTable) -> Float64s:
    """Return a rough rate of every item from its own polls: the larger of estimates by bits and by events."""
    evidence = best_evidence(polls)
    events = np.bincount(polls.item, evidence.events, minlength=polls.items)
    exposure = np.bincount(polls.item, evidence.exposure, minlength=polls.items)
    found = np.bincount(polls.item[polls.changed], minlength=polls.items)
    number = np.maximum(polls.polls_per_item(), 1)
    interval = np.where(found > 0, polls.time_per_item(), np.inf) / number
    # A sixteenth of a polling interval is added to keep the rate finite if the exposure of all events is 0.
    return np.maximum(log_ratio(found, number, 0.5) / interval, events / (exposure + interval / 16.0))


def points_per_octave(rates: Float64s) -> int:
    """Return how many points of the grid are in an octave, a factor of 2."""
    return round(1.0 / math.log2(float(rates[1] / rates[0])))


def _log_spaced_grid(low: float, high: float) -> Float64s:
    octaves = math.ceil(math.log2(high / low))
    per_octave = next((k for k in (3, 2) if octaves * k < MOST_POINTS), 1)
    exponents = np.arange(octaves * per_octave + 1)[-MOST_POINTS:] / per_octave
    return low * np.exp2(exponents)


def log_likelihood(polls: PollTable, rates: Float64s) -> Float64s:
    """Return ln P(polls | λ) up to a constant, with a row per item and a column per rate λ of the grid.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> polls = polls_from_intervals([1.0, 2.0], [True, False], item=[0, 0])
    >>> table = log_likelihood(polls, np.array([0.5, 1.0, 2.0]))
    >>> bool(np.allclose(table[0], np.log(1 - np.exp([-0.5, -1, -2])) - 2 * np.array([0.5, 1, 2])))
    True
    """
    evidence = best_evidence(polls)
    exposure = np.bincount(polls.item, evidence.exposure, minlength=polls.items)
    table = -exposure[:, None] * rates
    if np.any(evidence.events):
        events = np.bincount(polls.item, evidence.events, minlength=polls.items)
        table += events[:, None] * np.log(rates)
    item, elapsed = polls.item[evidence.bit], polls.elapsed[evidence.bit]
    weight = None if polls.weight is None else polls.weight[evidence.bit]
    for begin in range(0, item.size, CHUNK):
        part = slice(begin, begin + CHUNK)
        runs, rows = Segments.of(item[part], elapsed[part])
        table[rows] += _bit_log_likelihood(runs, rates, None if weight is None else weight[part]).T
    return table


def _bit_log_likelihood(runs: Segments, rates: Float64s, weight: Float64s | None) -> Float64s:
    """Return Σ w·ln(1−e^{−λt}) over the times t of each run (column) at each rate λ (row).
    w are the weights of the polls. Without weights the sum is computed as the logarithm of the product, if no
    product underflows, because that needs one logarithm per run instead of one per poll."""
    per_octave = points_per_octave(rates)
    sums = np.empty((rates.size, runs.starts.size))
    least = -np.expm1(-float(rates[0]) * float(runs.values.min()))
    product = weight is None and least ** int(runs.lengths().max()) > LEAST_PRODUCT
    for first in range(min(per_octave, rates.size)):
        found = -np.expm1(-rates[first] * runs.values)
        for point in range(first, rates.size, per_octave):
            if product:
                np.multiply.reduceat(found, runs.starts, out=sums[point])
            else:
                sums[point] = runs.sums(np.log(found) if weight is None else weight * np.log(found))
            found *= 2.0 - found
    return np.log(sums, out=sums) if product else sums


def scale_to_maximum(table: Float64s) -> Float64s:
    """Turn log-likelihoods into likelihoods, scaled so that the maximum of each row is 1."""
    return np.asarray(np.exp(table - table.max(axis=1, keepdims=True)))


def interpolate_table(table: Float64s, rates: Float64s, per_octave: int) -> tuple[Float64s, Float64s]:
    """Return a tuple (table, rates): the table interpolated at ``per_octave`` or more rates per octave.
    ``table`` has a column per rate of the grid. The interpolation is by cubics in ln λ.

    >>> grid = np.exp2(np.arange(-3.0, 3.0))
    >>> table, rates = interpolate_table(2 * np.log(grid)[None] - 0.5 * np.log(grid)[None] ** 3, grid, 8)
    >>> bool(np.allclose(table[0], 2 * np.log(rates) - 0.5 * np.log(rates) ** 3)), rates.size
    (True, 41)
    """
    times, points = -(-per_octave // points_per_octave(rates)), rates.size
    fine = np.empty((len(table), (points - 1) * times + 1))
    fine[:, ::times] = table
    for part in range(1, times):
        # The cubic of an inner cell uses two points on each side; that of the first and the last cell uses
        # the four points at the end of the grid.
        between = fine[:, part::times]
        between[:, 0] = table[:, :4] @ _lagrange(part / times)
        between[:, -1] = table[:, -4:] @ _lagrange(2.0 + part / times)
        weights, inner = _lagrange(1.0 + part / times), points - 3
        middle = weights[0] * table[:, :inner]
        for k in range(1, 4):
            middle += weights[k] * table[:, k : k + inner]
        between[:, 1:-1] = middle
    return fine, rates[0] * np.exp(np.log(rates[1] / rates[0]) * np.arange(fine.shape[1]) / times)


def _lagrange(x: float) -> Float64s:
    """Return the weights of the values at 0, 1, 2 and 3 in the value at ``x`` of the cubic through them."""
    return np.array([math.prod((x - j) / (k - j) for j in range(4) if j != k) for k in range(4)])
