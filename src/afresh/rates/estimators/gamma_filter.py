"""The Gamma filter: a belief Gamma(a, b) about each rate, updated in O(1) per poll.

a is the shape and b the rate parameter, a time. If a poll finds no change after a time t, the posterior is
exactly Gamma(a, b+t). If it finds a change, the posterior is not a Gamma distribution. It is replaced by the
Gamma distribution of the same mean and variance. With q = b/(b+t) and p = q^a:

    mean      m  = (a/b)·(1−p·q)/(1−p)
    shape     a' = a / (1 − D),   D = (a+1)·p·(1−q)² / (1−p·q)²,   0 ≤ D ≤ 1/(a+1)
    rate      b' = a'/m

This is a' = m²/(m₂−m²), with m₂ the second moment, rewritten so that no digits cancel. The moments of one
poll are exact. Over many polls the result depends a little on their sequence, and it is overconfident if
λt ≳ 3, where the grid posterior should be used.

Exact evidence is added exactly: k changes in a time x add k to a and x to b. With a finite horizon H the
belief fades towards the prior (a₀, b₀): before each poll a ← a₀+(a−a₀)e^{−t/H}, and b in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from afresh.rates.likelihood import PollEvidence, bit_evidence
from afresh.rates.poll_table import PollTable
from afresh.rates.priors.gamma_prior import GammaPrior, gamma_interval
from afresh.rates.segments import rank_within, rounds, run_starts
from afresh.values.arrays import Bools, Float64s, Ints

FEW = 12  # for fewer items at a time, plain floats are faster than arrays


@dataclass(frozen=True, slots=True)
class GammaState:
    """The belief Gamma(``shape``, ``rate``) about the rate of every item, and the prior to which it fades."""

    prior: GammaPrior
    shape: Float64s
    rate: Float64s


@dataclass(frozen=True, slots=True)
class GammaFilter:
    """An estimator with a Gamma belief about each item's rate.
    ``evidence`` says what it uses of each poll: one bit, a stamp (modification time) or a count. From the
    prior Gamma(a, b), X credible stamps give Gamma(a+X, b+Σx), where x = min(time since modification, polling
    interval); N counted changes in a time Σt give Gamma(a+N, b+Σt).

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> gamma = GammaFilter()
    >>> state = gamma.update(gamma.start(GammaPrior.of(1.0, 1.0), 1), polls_from_intervals(1.0, False))
    >>> gamma.rate(state).tolist()                # Gamma(1, 2)
    [0.5]
    >>> state = gamma.update(state, polls_from_intervals(2.0, True))
    >>> gamma.rate(state).round(12).tolist()       # (1/2)·(1−1/4)/(1−1/2)
    [0.75]
    >>> from afresh.rates.likelihood import count_evidence
    >>> counts = GammaFilter("counts", count_evidence)
    >>> polls = polls_from_intervals([10.0, 10.0], [True, False], item=[0, 0], count=[4, 0])
    >>> counts.rate(counts.update(counts.start(GammaPrior.of(1.0, 5.0), 1), polls)).tolist()
    [0.2]
    """

    name: str = "gamma"
    evidence: Callable[[PollTable], PollEvidence] = bit_evidence
    horizon: float = math.inf

    def start(self, prior: GammaPrior, items: int) -> GammaState:
        rows = prior.for_items(items)
        return GammaState(rows, rows.shape, rows.rate)

    def update(self, state: GammaState, polls: PollTable) -> GammaState:
        """Return the belief after the polls; the polls of each item are used one after the other, by time."""
        return carry_through_polls(state, polls, self.evidence(polls), self.horizon)

    def rate(self, state: GammaState) -> Float64s:
        """Return the posterior mean, shape/rate."""
        return state.shape / state.rate

    def interval(self, state: GammaState, level: float) -> tuple[Float64s, Float64s]:
        return gamma_interval(state.shape, state.rate, level)


def belief_after_change(shape: Float64s, rate: Float64s, elapsed: Float64s) -> tuple[Float64s, Float64s]:
    """Return a tuple (shape, rate) of the Gamma belief after a poll that found a change.
    The belief before was Gamma(``shape``, ``rate``), and ``elapsed`` is the time since the previous poll. The
    result has the mean and the variance of the exact posterior.

    >>> [x.round(6).tolist() for x in belief_after_change(np.array([1.0]), np.array([2.0]), np.array([2.0]))]
    [[1.8], [2.4]]
    """
    ell = np.log1p(np.maximum(elapsed / rate, 1e-300))
    p = np.exp(-shape * ell)
    none, more = np.expm1(-shape * ell), np.expm1(-(shape + 1.0) * ell)
    ratio = np.expm1(-ell) / more
    new_shape = shape / (1.0 - (shape + 1.0) * p * ratio * ratio)
    mean = shape / rate * (more / none)
    return new_shape, new_shape / mean


def carry_through_polls(
    state: GammaState, polls: PollTable, evidence: PollEvidence, horizon: float = math.inf
) -> GammaState:
    """Return the beliefs of all items after their polls.
    The polls of an item are gathered into steps. A step adds exact evidence and then at most one bit (a
    change without stamp or count). The k-th steps of all items are computed together, as long as at least
    ``FEW`` items have a k-th step. The remaining steps are computed one by one."""
    if polls.size == 0:
        return state
    steps = _Steps.of(polls, evidence, fading=math.isfinite(horizon))
    shape, rate = state.shape.copy(), state.rate.copy()
    shape0, rate0 = state.prior.shape, state.prior.rate
    for these in rounds(steps.rank):
        if these.size < FEW:
            break
        rows = steps.item[these]
        a, b = shape[rows], rate[rows]
        if math.isfinite(horizon):
            keep = np.exp(-steps.elapsed[these] / horizon)
            a, b = shape0[rows] + (a - shape0[rows]) * keep, rate0[rows] + (b - rate0[rows]) * keep
        a, b = a + steps.events[these], b + steps.exposure[these]
        bit = steps.bit[these]
        a[bit], b[bit] = belief_after_change(a[bit], b[bit], steps.bit_elapsed[these][bit])
        shape[rows], rate[rows] = a, b
    else:
        return replace(state, shape=shape, rate=rate)
    _finish_one_by_one(steps, int(steps.rank[these[0]]), shape, rate, state.prior, horizon)
    return replace(state, shape=shape, rate=rate)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Polls gathered into steps: exact evidence up to the next bit, and this bit.
    ``rank`` is the number of the step within its item. ``elapsed`` is the time that the step covers,
    ``bit_elapsed`` the polling interval of its last poll."""

    item: Ints
    rank: Ints
    events: Float64s
    exposure: Float64s
    elapsed: Float64s
    bit: Bools
    bit_elapsed: Float64s

    @classmethod
    def of(cls, polls: PollTable, evidence: PollEvidence, *, fading: bool) -> _Steps:
        new_item = run_starts(polls.item)
        begins = new_item.copy()
        # With fading every poll is a separate step, because the earlier evidence must fade before it.
        begins[1:] |= True if fading else evidence.bit[:-1]
        starts = np.flatnonzero(begins)
        lasts = np.append(starts[1:], polls.size) - 1
        return cls(
            polls.item[starts],
            rank_within(new_item[starts]),
            np.add.reduceat(evidence.events, starts),
            np.add.reduceat(evidence.exposure, starts),
            np.add.reduceat(polls.elapsed, starts),
            evidence.bit[lasts],
            polls.elapsed[lasts],
        )


def _finish_one_by_one(
    steps: _Steps, rank: int, shape: Float64s, rate: Float64s, prior: GammaPrior, horizon: float
) -> None:
    """Apply the steps from number ``rank`` on with plain floats; change ``shape`` and ``rate`` in place."""
    for k in np.flatnonzero(steps.rank >= rank).tolist():
        i = int(steps.item[k])
        a, b = float(shape[i]), float(rate[i])
        if math.isfinite(horizon):
            keep = math.exp(-float(steps.elapsed[k]) / horizon)
            a = float(prior.shape[i]) * (1.0 - keep) + a * keep
            b = float(prior.rate[i]) * (1.0 - keep) + b * keep
        a, b = a + float(steps.events[k]), b + float(steps.exposure[k])
        if steps.bit[k]:
            # The formulas of ``belief_after_change``, for one item.
            ell = math.log1p(max(float(steps.bit_elapsed[k]) / b, 1e-300))
            none, more = math.expm1(-a * ell), math.expm1(-(a + 1.0) * ell)
            ratio = math.expm1(-ell) / more
            shaped = a / (1.0 - (a + 1.0) * math.exp(-a * ell) * ratio * ratio)
            a, b = shaped, shaped * b / a * (none / more)
        shape[i], rate[i] = a, b
