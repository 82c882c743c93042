"""Which stale views must be refreshed now to stay within their target lags, and which refreshes may wait.

To refresh the view with the earliest deadline first, always, is wrong: a refresh that comes early has to be
repeated early, and the work that this creates breaks other deadlines. So a view takes precedence only when
its slack is used up. Until then views compete by what a refresh gains, but no refresh starts that would use
up the budget for so long that a deadline breaks.

A refresh of p paid-off seconds (its duration divided by the budget) occupies the budget for p. The slack at a
time F is F minus all p that must be spent before it: those of stale views that must be paid off until F, and
those of the refreshes that will be due again until then, one in every L + 1/λ seconds for a view with the
target lag L and λ changes per second. The smallest slack is how long the budget is free for other views.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Bools, Float64s

_CAUTION = 1.25  # a refresh may take so many times its mean duration


@dataclass(frozen=True, slots=True)
class DueRefreshes:
    """The views with target lags, one entry each. ``left_s`` is the time until the lag of a stale view
    reaches its target, infinite for a fresh one. ``cost_s`` is the duration of its refresh with that of the
    stale views below it; ``paid_s`` is for how long its own refresh occupies the budget. ``target_s`` is the
    target without the time until a change is seen, and ``fresh_s`` the mean time until the next change."""

    left_s: Float64s
    cost_s: Float64s
    paid_s: Float64s
    target_s: Float64s
    fresh_s: Float64s

    @property
    def latest_start_s(self) -> Float64s:
        """In how many seconds the refresh of each view must start; infinite for a fresh view."""
        return np.asarray(self.left_s - _CAUTION * self.cost_s)


@dataclass(frozen=True, slots=True)
class Precedence:
    """``urgent`` marks the views to refresh before all others, those with the earliest ``latest_start_s``
    first. ``times_s`` and ``slack_s`` are the times at which budget must be paid off, and the slack there."""

    urgent: Bools
    due: DueRefreshes
    times_s: Float64s
    slack_s: Float64s

    def may_start(self, paid_s: Float64s) -> Bools:
        """Return which refreshes of other views, each of ``paid_s`` seconds of the budget, break no deadline.

        >>> due = DueRefreshes(*(np.array([each]) for each in (10.0, 1.0, 4.0, 60.0, 0.0)))
        >>> find_precedence(due).may_start(np.array([2.0, 9.0])).tolist()
        [True, False]
        """
        return np.asarray(paid_s <= self.slack_s.min(initial=np.inf))

    def may_start_early(self) -> Bools:
        """Return which views with targets may be refreshed before their slack is used up."""
        due, starts_s = self.due, self.due.latest_start_s
        own_s = starts_s + due.paid_s
        before = self.times_s[None, :] < own_s[:, None]
        # After its own time the refresh is counted already, but the next one comes sooner than planned.
        sooner = _count_again(due, np.zeros(starts_s.size), self.times_s)
        planned = _count_again(due, np.where(np.isfinite(starts_s), starts_s, 0.0), self.times_s)
        more_s = np.where(before, due.paid_s[:, None], due.paid_s[:, None] * (sooner - planned))
        return np.asarray(np.all(more_s <= self.slack_s[None, :], axis=1))


def find_precedence(due: DueRefreshes, margin_s: float = 0.0) -> Precedence:
    """Return what must be refreshed now, in the view of all deadlines; ``margin_s`` is kept as a reserve.

    >>> due = DueRefreshes(*(np.array(each) for each in ([9.0, 99.0], [1.0, 2.0], [2.0, 4.0], [10.0, 100.0],
    ...                                                 [0.0, 0.0])))
    >>> find_precedence(due).urgent.tolist(), find_precedence(due, margin_s=8.0).urgent.tolist()
    ([False, False], [True, False])
    """
    starts_s = due.latest_start_s
    pending = np.isfinite(starts_s)
    own_s = starts_s + due.paid_s
    times_s = np.sort(own_s[pending])
    first = np.where(pending, starts_s, 0.0)
    spent_s = np.where(own_s[:, None] <= times_s[None, :], due.paid_s[:, None], 0.0).sum(axis=0)
    spent_s = spent_s + (_count_again(due, first, times_s) * due.paid_s[:, None]).sum(axis=0)
    slack_s = times_s - spent_s - margin_s
    urgent = np.zeros(starts_s.size, dtype=bool)
    tight = np.flatnonzero(slack_s <= 0)
    if tight.size:
        urgent = pending & (own_s <= times_s[tight[0]])
    return Precedence(urgent, due, times_s, slack_s)


def _count_again(due: DueRefreshes, start_s: Float64s, times_s: Float64s) -> Float64s:
    """Return how often each view (row) must be refreshed again until each time (column), if its next refresh
    starts at ``start_s``: after ``fresh_s`` it is stale, and it must be refreshed within its target."""
    again_s = start_s + due.fresh_s + due.target_s - _CAUTION * due.cost_s + due.paid_s
    period_s = np.maximum(due.fresh_s + due.target_s, 1e-9)
    with np.errstate(invalid="ignore"):
        counted = np.floor((times_s[None, :] - again_s[:, None]) / period_s[:, None]) + 1.0
    return np.asarray(np.maximum(np.nan_to_num(counted, nan=0.0, neginf=0.0), 0.0))
