"""Moment matching for irregular polls: the rate at which one expects to find the X changes found.

The root of Σ(1−e^{−λt_i}) = X.
"""

from __future__ import annotations

import numpy as np

from afresh.rates.estimators.states import HistoryEstimator, HistoryState, change_probability_interval
from afresh.rates.poll_table import PollTable
from afresh.rates.segments import Segments, find_roots
from afresh.values.arrays import Float64s, Ints


class MomentMatching(HistoryEstimator):
    """The rate that makes the changes found the expected ones: 0 if X = 0, ∞ if X = n.

    >>> from afresh.rates.priors.gamma_prior import GammaPrior
    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> moment = MomentMatching()
    >>> polls = polls_from_intervals([1.0] * 4, [True, False, True, False], item=[0] * 4)
    >>> moment.rate(moment.update(moment.start(GammaPrior.of(1, 1), 1), polls)).round(12).tolist()    # ln 2
    [0.69314718056]
    """

    name = "moment"
    consistent = True

    def rate(self, state: HistoryState) -> Float64s:
        """The match; the prior's mean without polls."""
        share = state.polls.changes_per_item() / np.maximum(state.polls.polls_per_item(), 1)
        return state.rate_or_prior(matching_rate(state.polls, share))

    def interval(self, state: HistoryState, level: float) -> tuple[Float64s, Float64s]:
        """The matches of the Clopper–Pearson ends of X/n: unequal chances vary less than equal ones."""
        changes, polls = state.polls.changes_per_item(), state.polls.polls_per_item()
        ends = change_probability_interval(changes.astype(np.float64), polls.astype(np.float64), level)
        low, high = (matching_rate(state.polls, end) for end in ends)
        return state.interval_or_prior(low, high, level)


def matching_rate(polls: PollTable, share: Float64s) -> Float64s:
    """The rate of every item at which the mean of 1−e^{−λt} over its polls is ``share``.

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
        # Compare the smaller side, of changes or of quiet polls: neither rounds away.
        few = share_now < 0.5
        value = np.where(few, np.log(share_now * n / found), np.log(unfound / ((1.0 - share_now) * n)))
        return value, -pull / np.where(few, found, unfound)

    start = step * lengths / runs.sums(runs.values)
    rate[items] = find_roots(
        runs, missing, step / longest * (1 - 1e-12), step / shortest * (1 + 1e-12), start
    )
    return rate
