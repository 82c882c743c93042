"""Items whose rate is known more closely than the grid is spaced: their log-likelihood at closer points.

A cubic through the grid's points errs by a share of the log-likelihood, which grows with every poll, while
its top narrows: after some thousand polls the error is a standard deviation. There the log-likelihood is
computed again at ``POINTS`` rates from −``REACH`` to ``REACH`` standard deviations around its top, where it
is nearly a parabola. In u = ln λ, x = λt and with N exact events in the time T, its slope and curvature are

    N − λT + Σ x/(eˣ−1)    and    −λT + Σ [x/(eˣ−1) − x²eˣ/(eˣ−1)²]    (sums over the changes seen as bits).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.poll_evidence import PollEvidence, best_evidence
from afresh.rates.poll_table import PollTable
from afresh.rates.segments import Segments
from afresh.values.arrays import Float64s, Ints

POINTS = 8
REACH = 6.0
CLOSELY = 0.1  # of the grid's spacing: a standard deviation below it is sharp
NEWTON_STEPS = 8


@dataclass(frozen=True, slots=True)
class SharpItems:
    """The sharp items in order: for each the ln λ of its first point, the spacing, and the values there."""

    item: Ints
    low: Float64s
    step: Float64s
    log_likelihood: Float64s

    def between(self, first: int, end: int) -> SharpItems:
        """Those of the items from ``first`` up to ``end``."""
        these = slice(*np.searchsorted(self.item, (first, end)))
        return SharpItems(self.item[these], self.low[these], self.step[these], self.log_likelihood[these])


def find_sharp_items(polls: PollTable, table: Float64s, rates: Float64s) -> SharpItems | None:
    """The items whose polls determine the rate more closely than the grid ``rates`` is spaced, or None.

    ``table`` holds the log-likelihood of the same polls on the grid.

    >>> from afresh.rates.likelihood import log_likelihood
    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> item = np.zeros(4000, dtype=np.int64)
    >>> polls = polls_from_intervals(np.ones(4000), np.arange(4000) % 4 == 0, item=item)
    >>> grid = np.exp2(np.arange(-6.0, 3.0))
    >>> found = find_sharp_items(polls, log_likelihood(polls, grid), grid)
    >>> top = found.low[0] + found.step[0] * (POINTS - 1) / 2
    >>> bool(np.isclose(top, np.log(-np.log(1 - 0.25))))
    True
    """
    closely = CLOSELY * float(np.log(rates[1] / rates[0]))
    evidence = best_evidence(polls)
    # An event contributes 1 to the information on ln λ, a change seen as a bit x²eˣ/(eˣ−1)² < 1.
    bits = evidence.bit if polls.weight is None else np.where(evidence.bit, polls.weight, 0.0)
    information = np.bincount(polls.item, evidence.events + bits, minlength=polls.items)
    maybe = np.flatnonzero(information > closely**-2)
    if maybe.size == 0:
        return None
    known = _Known.of(polls, evidence, maybe)
    start = np.log(rates[table[maybe].argmax(axis=1)])
    top, deviation = known.top(start)
    sharp = (deviation < closely) & (np.abs(top - start) < closely / CLOSELY)
    if not np.any(sharp):
        return None
    low, step = top - REACH * deviation, deviation * (2.0 * REACH / (POINTS - 1))
    # The others are evaluated near their start, because their maxima may be at infinity.
    low, step = np.where(sharp, low, start), np.where(sharp, step, 0.0)
    values = np.stack([known.log_likelihood(low + k * step) for k in range(POINTS)], axis=1)
    return SharpItems(maybe[sharp], low[sharp], step[sharp], values[sharp])


@dataclass(frozen=True, slots=True)
class _Known:
    """The evidence of some items: exact events and time, and the intervals of changes seen as bits."""

    events: Float64s
    exposure: Float64s
    bits: Segments
    of_bits: Ints
    weight: Float64s | float

    @classmethod
    def of(cls, polls: PollTable, evidence: PollEvidence, items: Ints) -> _Known:
        place = np.full(polls.items, -1)
        place[items] = np.arange(items.size)
        row = place[polls.item]
        chosen = row >= 0
        events, exposure = np.zeros(items.size), np.zeros(items.size)
        events += np.bincount(row[chosen], evidence.events[chosen], minlength=items.size)
        exposure += np.bincount(row[chosen], evidence.exposure[chosen], minlength=items.size)
        seen = chosen & evidence.bit
        bits, of_bits = Segments.of(row[seen], polls.elapsed[seen])
        return cls(events, exposure, bits, of_bits, 1.0 if polls.weight is None else polls.weight[seen])

    def top(self, start: Float64s) -> tuple[Float64s, Float64s]:
        """ln λ at the top and the standard deviation there, by Newton's steps of at most ½."""
        top, curved = start.copy(), np.zeros(start.size)
        for _ in range(NEWTON_STEPS):
            slope, curved = self._slope_and_curvature(top)
            newton = np.where(curved < 0, -slope / np.where(curved < 0, curved, 1.0), np.sign(slope))
            top = top + np.clip(newton, -0.5, 0.5)
        return top, np.where(curved < 0, 1.0 / np.sqrt(np.where(curved < 0, -curved, 1.0)), np.inf)

    def _slope_and_curvature(self, log_rate: Float64s) -> tuple[Float64s, Float64s]:
        passed = np.exp(log_rate) * self.exposure
        slope, curvature = self.events - passed, -passed
        if self.of_bits.size:
            x = np.minimum(self._expected(log_rate), 700.0)  # beyond, both terms are 0
            grown = np.expm1(x)
            hazard = x / grown
            slope[self.of_bits] += self.bits.sums(self.weight * hazard)
            curvature[self.of_bits] += self.bits.sums(
                self.weight * (hazard - hazard * hazard * (grown + 1.0))
            )
        return slope, curvature

    def log_likelihood(self, log_rate: Float64s) -> Float64s:
        """N·ln λ − λT + Σ ln(1−e^{−λt})."""
        value = self.events * log_rate - np.exp(log_rate) * self.exposure
        if self.of_bits.size:
            logs = np.log(-np.expm1(-self._expected(log_rate)))
            value[self.of_bits] += self.bits.sums(self.weight * logs)
        return value

    def _expected(self, log_rate: Float64s) -> Float64s:
        return self.bits.spread(np.exp(log_rate[self.of_bits])) * self.bits.values
