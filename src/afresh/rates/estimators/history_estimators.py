"""Estimators for irregular polls that store all polls of an item: maximum likelihood and moment matching.

The maximum-likelihood rate (Cho & Garcia-Molina 2003) is the root λ of

    Σ_changed t/(e^{λt}−1) = Σ_unchanged t

The sums are over the polls that found a change or none, and t is the polling interval that ends at the poll.
The root is between ln(1+S_c/S_u)/t_max and ln(1+S_c/S_u)/t_min, where S_c and S_u are the sums of t over the
polls with and without a change. It is 0 if no poll found a change and infinite if every poll did. Such rates
are correct estimates but make useless plans. The estimator needs about 20 polls or more per item.

Moment matching takes the rate at which the expected number of polls that find a change is X, the number of
those that did: Σ(1−e^{−λt}) = X over all polls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from afresh.rates.estimators.tally_estimators import StateWithPrior
from afresh.rates.log_ratio import change_probability_interval, check_level
from afresh.rates.poll_table import PollTable
from afresh.rates.priors.gamma_prior import GammaPrior
from afresh.rates.segments import Segments, find_roots
from afresh.values.arrays import Bools, Float64s, Ints


@dataclass(frozen=True, slots=True)
class HistoryState(StateWithPrior):
    """All polls so far, for estimators that have no shorter summary of irregular intervals."""

    polls: PollTable

    def has_polls(self) -> Bools:
        return np.asarray(self.polls.polls_per_item() > 0)


class HistoryEstimator:
    """Base class of the estimators with a ``HistoryState``; an update takes O(polls so far)."""

    def start(self, prior: GammaPrior, items: int) -> HistoryState:
        empty = PollTable(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool), items)
        return HistoryState(prior.for_items(items), empty)

    def update(self, state: HistoryState, polls: PollTable) -> HistoryState:
        """Append the polls; the state stores only their intervals and whether each found a change."""
        before = state.polls
        item = np.concatenate((before.item, polls.item))
        order = slice(None) if before.size == 0 else np.argsort(item, kind="stable")
        elapsed = np.concatenate((before.elapsed, polls.elapsed))[order]
        changed = np.concatenate((before.changed, polls.changed))[order]
        return HistoryState(state.prior, PollTable(item[order], elapsed, changed, polls.items))


class MaximumLikelihood(HistoryEstimator):
    """Estimates the rate of maximum likelihood for each item.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> mle = MaximumLikelihood()
    >>> polls = polls_from_intervals([1.0] * 4, [True, False, True, False], item=[0] * 4)
    >>> mle.rate(mle.update(mle.start(GammaPrior.of(1, 1), 1), polls)).round(12).tolist()    # ln 2
    [0.69314718056]
    """

    name = "mle"

    def rate(self, state: HistoryState) -> Float64s:
        """Return the rate of ``most_likely``; the prior's mean for items without polls."""
        return state.rate_or_prior(most_likely(state.polls))

    def interval(self, state: HistoryState, level: float) -> tuple[Float64s, Float64s]:
        """Return the confidence interval of ``likelihood_interval``; the prior's for items without polls."""
        return state.interval_or_prior(*likelihood_interval(state.polls, level), level)


def most_likely(polls: PollTable) -> Float64s:
    """Return the maximum-likelihood rate of every item: 0 if no poll found a change, ∞ if every poll did.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> most_likely(polls_from_intervals([1.0, 1.0], [True, False])).tolist()
    [inf, 0.0]
    """
    inner = _Inner.of(polls)
    rate = np.where(polls.changes_per_item() > 0, np.inf, 0.0)
    if inner.items.size:
        rate[inner.items] = inner.most_likely()
    return rate


def likelihood_interval(polls: PollTable, level: float) -> tuple[Float64s, Float64s]:
    """Return a tuple (low, high): the confidence interval of every item by the likelihood ratio.
    It contains the rates λ with 2(ℓ(λ̂)−ℓ(λ)) ≤ χ²₁(level). ℓ is the log-likelihood, λ̂ its maximum, and
    χ²₁(level) the quantile of the χ² distribution with one degree of freedom."""
    from scipy.special import ndtri

    drop = 0.5 * float(ndtri(0.5 + 0.5 * check_level(level))) ** 2  # of the log-likelihood
    unchanged = np.bincount(polls.item[~polls.changed], polls.elapsed[~polls.changed], minlength=polls.items)
    with np.errstate(divide="ignore"):
        low, high = np.zeros(polls.items), drop / unchanged  # correct for items without a change
    high[polls.changes_per_item() > 0] = np.inf  # correct for items that every poll found changed
    inner = _Inner.of(polls)
    if inner.items.size:
        low[inner.items], high[inner.items] = inner.interval(drop)
    always = (polls.changes_per_item() > 0) & (unchanged == 0)
    if np.any(always):
        low[always] = _low_when_always_changed(polls.of_items(always), drop)
    return low, high


class _Inner:
    """The items that some polls found changed and others not, so that their most likely rate is finite and
    above 0. ``changed`` holds the polling intervals with a change, ``unchanged`` is the sum of the others."""

    def __init__(self, changed: Segments, items: Ints, unchanged_time: Float64s) -> None:
        self.changed, self.items, self.unchanged = changed, items, unchanged_time

    @classmethod
    def of(cls, polls: PollTable) -> _Inner:
        quiet = ~polls.changed
        unchanged = np.bincount(polls.item[quiet], polls.elapsed[quiet], minlength=polls.items)
        keep = polls.changed & (unchanged > 0)[polls.item]
        segments, items = Segments.of(polls.item[keep], polls.elapsed[keep])
        return cls(segments, items, np.asarray(unchanged[items], dtype=np.float64))

    def most_likely(self) -> Float64s:
        shortest, longest = self.changed.range()
        changed_time = self.changed.sums(self.changed.values)
        step = np.log1p(changed_time / self.unchanged)
        start = step * self.changed.lengths() / changed_time
        # The bracket is a little wider than in theory, so that the root stays inside in spite of rounding.
        low, high = step / longest * (1 - 1e-12), step / shortest * (1 + 1e-12)
        return find_roots(self.changed, self._score, low, high, start)

    def _score(self, runs: Segments, which: Ints, rate: Float64s) -> tuple[Float64s, Float64s]:
        """Return a tuple: ln Σ t/(e^{λt}−1) − ln S_u at λ = ``rate``, and its slope in ln λ. The sum is over
        the polling intervals t with a change, S_u is the sum of those without."""
        steps = runs.spread(rate) * runs.values
        # e^{−s}/(1−e^{−s}) is used instead of 1/(e^s−1), which overflows for long intervals.
        rest = -np.expm1(-steps)
        term = runs.values * np.exp(-steps) / rest
        total = np.maximum(runs.sums(term), np.finfo(float).tiny)
        slope = -runs.sums(term * steps / rest) / total
        return np.log(total / self.unchanged[which]), slope

    def interval(self, drop: float) -> tuple[Float64s, Float64s]:
        """Return a tuple (low, high): the rates at which the log-likelihood is ``drop`` below its maximum."""
        best = self.most_likely()
        top, _, bend = self._log_likelihood(self.changed, self.unchanged, best)
        target = top - drop
        logs, count = self.changed.sums(np.log(self.changed.values)), self.changed.lengths()
        with np.errstate(over="ignore"):
            reach = np.exp(np.minimum(np.sqrt(2 * drop / np.maximum(bend, 1e-9)), 3.0))
        # ℓ ≤ Σ ln(λt) bounds the lower root from below, ℓ ≤ −λS_u the upper root from above.
        floor = np.exp((target - logs) / count) * (1 - 1e-12)
        ceiling = np.maximum(-target / self.unchanged, best) * (1 + 1e-12)

        def above(runs: Segments, which: Ints, rate: Float64s, sign: float) -> tuple[Float64s, Float64s]:
            value, slope, _ = self._log_likelihood(runs, self.unchanged[which], rate)
            return sign * (value - target[which]), sign * slope

        # ℓ rises up to its maximum, so its sign is changed there: ``find_roots`` needs a function that falls.
        rising, falling = partial(above, sign=-1.0), partial(above, sign=1.0)
        low = find_roots(self.changed, rising, np.minimum(floor, best), best, best / reach)
        return low, find_roots(self.changed, falling, best, ceiling, best * reach)

    @staticmethod
    def _log_likelihood(
        runs: Segments, unchanged: Float64s, rate: Float64s
    ) -> tuple[Float64s, Float64s, Float64s]:
        """Return the log-likelihood ℓ, its slope in ln λ, and minus its second derivative in ln λ.
        ℓ = Σ ln(1−e^{−λt}) − λS_u, with t and S_u as in ``_score``."""
        steps = runs.spread(rate) * runs.values
        rest = -np.expm1(-steps)
        pull = steps * np.exp(-steps) / rest
        value = runs.sums(np.log(rest)) - rate * unchanged
        slope = runs.sums(pull) - rate * unchanged
        bend = runs.sums(pull * (steps / rest - 1.0)) + rate * unchanged
        return value, slope, bend


def _low_when_always_changed(polls: PollTable, drop: float) -> Float64s:
    """Return the low end of the interval if every poll found a change: the λ with Σ ln(1−e^{−λt}) = −drop."""
    runs, _ = Segments.of(polls.item, polls.elapsed)
    shortest, _ = runs.range()
    floor = np.exp(-drop / runs.lengths() - runs.sums(np.log(runs.values)) / runs.lengths()) * (1 - 1e-12)
    ceiling = -np.log(-np.expm1(-drop / runs.lengths())) / shortest * (1 + 1e-12)

    def short_of(part: Segments, _which: Ints, rate: Float64s) -> tuple[Float64s, Float64s]:
        steps = part.spread(rate) * part.values
        rest = -np.expm1(-steps)
        return -drop - part.sums(np.log(rest)), -part.sums(steps * np.exp(-steps) / rest)

    return find_roots(runs, short_of, floor, np.maximum(ceiling, floor), np.sqrt(floor) * np.sqrt(ceiling))


class MomentMatching(HistoryEstimator):
    """Estimates the rate at which the expected number of polls that find a change is the observed number.
    It is 0 if no poll found a change, ∞ if every poll did.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> moment = MomentMatching()
    >>> polls = polls_from_intervals([1.0] * 4, [True, False, True, False], item=[0] * 4)
    >>> moment.rate(moment.update(moment.start(GammaPrior.of(1, 1), 1), polls)).round(12).tolist()    # ln 2
    [0.69314718056]
    """

    name = "moment"

    def rate(self, state: HistoryState) -> Float64s:
        """Return the matching rate; the prior's mean for items without polls."""
        share = state.polls.changes_per_item() / np.maximum(state.polls.polls_per_item(), 1)
        return state.rate_or_prior(matching_rate(state.polls, share))

    def interval(self, state: HistoryState, level: float) -> tuple[Float64s, Float64s]:
        """Return the rates that match the ends of the Clopper–Pearson confidence interval of X/n.
        X of the item's n polls found a change. The result is also wide enough for unequal polling intervals,
        because X varies less if the probabilities of a change differ between polls."""
        changes, polls = state.polls.changes_per_item(), state.polls.polls_per_item()
        ends = change_probability_interval(changes.astype(np.float64), polls.astype(np.float64), level)
        low, high = (matching_rate(state.polls, end) for end in ends)
        return state.interval_or_prior(low, high, level)


def matching_rate(polls: PollTable, share: Float64s) -> Float64s:
    """Return the rate λ of every item at which the mean of 1−e^{−λt} over its polls is ``share``.
    t is the polling interval that ends at the poll.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> matching_rate(polls_from_intervals([2.0], [True]), np.array([1 - np.exp(-3.0)])).round(12).tolist()
    [1.5]
    """
    rate = np.where(share > 0, np.inf, 0.0)
    inner = (share > 0) & (share < 1)
    keep = inner[polls.item]
    if not np.any(keep):
        return rate
    runs, items = Segments.of(polls.item[keep], polls.elapsed[keep])
    wanted, lengths = share[items], runs.lengths()
    shortest, longest = runs.range()
    step = -np.log1p(-wanted)

    def missing(part: Segments, which: Ints, at: Float64s) -> tuple[Float64s, Float64s]:
        steps = part.spread(at) * part.values
        chance = -np.expm1(-steps)
        quiet = 1.0 - chance
        pull, found = part.sums(steps * quiet), part.sums(chance)
        unfound = np.maximum(part.sums(quiet), np.finfo(float).tiny)
        share_now, n = wanted[which], lengths[which]
        # Compare the smaller of the two sums (changed, unchanged polls), so that it is not lost in rounding.
        few = share_now < 0.5
        value = np.where(few, np.log(share_now * n / found), np.log(unfound / ((1.0 - share_now) * n)))
        return value, -pull / np.where(few, found, unfound)

    start = step * lengths / runs.sums(runs.values)
    low, high = step / longest * (1 - 1e-12), step / shortest * (1 + 1e-12)
    rate[items] = find_roots(runs, missing, low, high, start)
    return rate
