"""The Gamma filter: a belief Gamma(a, b) about each rate, carried through the polls in O(1) per poll.

Unchanged for t: the posterior is Gamma(a, b+t), exactly. Found changed after t: the posterior is not Gamma;
it is replaced by the Gamma of the same mean and variance. With q = b/(b+t), p = q^a:

    mean      m  = (a/b)·(1−p·q)/(1−p)
    shape     a' = a / (1 − D),   D = (a+1)·p·(1−q)² / (1−p·q)²,   0 ≤ D ≤ 1/(a+1)
    rate      b' = a'/m

which is a' = m²/(m₂−m²) rewritten without cancellation. The moments of one step are exact; over many the
answer depends a little on the order, and it is overconfident where λt ≳ 3: there use the grid posterior.

Exact evidence is added exactly: k events in a time x add (k, x).
With a finite horizon H evidence fades: before each poll a ← a₀+(a−a₀)e^{−t/H}, b likewise.
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

FEW = 12  # below so many items at once plain floats are faster than arrays


@dataclass(frozen=True, slots=True)
class GammaState:
    """The belief Gamma(shape, rate) about every item, and the prior it fades to."""

    prior: GammaPrior
    shape: Float64s
    rate: Float64s


@dataclass(frozen=True, slots=True)
class GammaFilter:
    """Gamma belief from one bit per poll, or from stronger evidence where polls have it.

    After X credible stamps it is Gamma(a+X, b+Σx), x = min(time since modification, t); after N counted
    changes in a time Σt it is Gamma(a+N, b+Σt).

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
    evidence: Callable[[PollTable], PollEvidence] = bit_evidence  # what it looks at in the polls
    horizon: float = math.inf

    def start(self, prior: GammaPrior, items: int) -> GammaState:
        rows = prior.for_items(items)
        return GammaState(rows, rows.shape, rows.rate)

    def update(self, state: GammaState, polls: PollTable) -> GammaState:
        """Carry the belief through the polls, in order within each item."""
        return carry_through_polls(state, polls, self.evidence(polls), self.horizon)

    def rate(self, state: GammaState) -> Float64s:
        """Posterior mean a/b."""
        return state.shape / state.rate

    def interval(self, state: GammaState, level: float) -> tuple[Float64s, Float64s]:
        return gamma_interval(state.shape, state.rate, level)


def belief_after_change(shape: Float64s, rate: Float64s, elapsed: Float64s) -> tuple[Float64s, Float64s]:
    """Gamma(a', b') of the same mean and variance as the posterior after a change found within ``elapsed``.

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
    """Carry many beliefs through their polls at once.

    Polls are gathered into steps of "add what is exact, then perhaps one bit"; the k-th steps of all items
    are done together. Items with far more steps than the others are finished one by one.
    """
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
    """Polls gathered: exact evidence summed up to the next bit; ``rank`` counts within an item."""

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
        # With fading every poll is a step of its own, for the evidence before it fades first.
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
    """The steps of rank ``rank`` and later, in plain floats, written into ``shape`` and ``rate``."""
    for k in np.flatnonzero(steps.rank >= rank).tolist():
        i = int(steps.item[k])
        a, b = float(shape[i]), float(rate[i])
        if math.isfinite(horizon):
            keep = math.exp(-float(steps.elapsed[k]) / horizon)
            a = float(prior.shape[i]) * (1.0 - keep) + a * keep
            b = float(prior.rate[i]) * (1.0 - keep) + b * keep
        a, b = a + float(steps.events[k]), b + float(steps.exposure[k])
        if steps.bit[k]:
            # ``belief_after_change`` for one item.
            ell = math.log1p(max(float(steps.bit_elapsed[k]) / b, 1e-300))
            none, more = math.expm1(-a * ell), math.expm1(-(a + 1.0) * ell)
            ratio = math.expm1(-ell) / more
            shaped = a / (1.0 - (a + 1.0) * math.exp(-a * ell) * ratio * ratio)
            a, b = shaped, shaped * b / a * (none / more)
        shape[i], rate[i] = a, b
