"""The target lags of observed items: which fit the budget, and which items must be refreshed now for them.

The rules are in ``allocation.lag_targets`` and ``policy.lag_precedence``. Targets that do not fit the budget
give no precedence, because they would break the targets that fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.allocation.lag_targets import LagFeasibility, LagJobs, check_lags
from afresh.engine.scheduler.observed_staleness import ObservedStaleness
from afresh.policy.lag_precedence import DueRefreshes, find_precedence
from afresh.values.arrays import Bools, Float64s, Ints

MARGIN_S = 1.0
"""How many seconds before its latest start a refresh takes precedence: rows are ranked twice a second, and a
refresh waits for the readings of its source."""


@dataclass(frozen=True, slots=True)
class LagDecision:
    """``urgent`` are the rows to refresh before all others, ``start_s`` in how many seconds each must start
    at the latest. ``held`` are stale rows whose refresh now would break a deadline."""

    urgent: Ints
    start_s: Float64s
    held: Ints


class LagTargets:
    """The target lags of the observed items at a budget of ``share`` seconds of refreshing per second.
    ``paid_off_s`` has for each observed item the seconds for which its refresh occupies the budget."""

    def __init__(
        self, staleness: ObservedStaleness, weight: Float64s, paid_off_s: Float64s, share: float
    ) -> None:
        self._staleness, self._paid_off_s = staleness, paid_off_s
        self.jobs: LagJobs = staleness.lag_jobs(weight)
        self.share = share
        self.feasibility: LagFeasibility = check_lags(self.jobs, share)

    @property
    def has_targets(self) -> bool:
        return bool(np.isfinite(self.feasibility.target_s).any())

    def missing_s_per_hour(self, at: int) -> float:
        """Return the seconds of refreshing per hour that the budget lacks for the target of the observed item
        at position ``at``: 0 if it fits, infinite if not even refreshing all the time would do."""
        return self._per_hour(self.feasibility.missing[at])

    def missing_parts_s_per_hour(self, at: int) -> tuple[float, float]:
        """Return what the budget lacks for the demand of the targets together, and for the wait for
        the longest other refresh, in seconds of refreshing per hour."""
        found = self.feasibility
        return self._per_hour(found.demand_missing[at]), self._per_hour(found.wait_missing[at])

    def _per_hour(self, missing: float) -> float:
        return 3600.0 * float(missing) if self.share + missing <= 1.0 else np.inf

    def decide(self, now_s: float) -> LagDecision:
        """Return which rows must be refreshed now, and which must not."""
        staleness, kept = self._staleness, self.feasibility.fits & self._staleness.known
        due = self._due_refreshes(now_s, kept)
        found = find_precedence(due, MARGIN_S)
        stale = staleness.stale
        may_start = found.may_start(staleness.sum_over_chain(self._paid_off_s))
        may_start[kept] = found.may_start_early()
        urgent = np.zeros(kept.size, dtype=bool)
        urgent[kept] = found.urgent
        starts_s = np.full(kept.size, np.inf)
        starts_s[kept] = due.latest_start_s
        return LagDecision(
            staleness.rows[urgent], starts_s[urgent], staleness.rows[stale & ~urgent & ~may_start]
        )

    def _due_refreshes(self, now_s: float, kept: Bools) -> DueRefreshes:
        staleness, jobs, target_s = self._staleness, self.jobs, self.feasibility.target_s
        left_s = np.where(staleness.stale, target_s - (now_s - staleness.incomplete_s), np.inf)
        chain_s = staleness.sum_over_chain(jobs.cost_s)
        with np.errstate(divide="ignore"):
            fresh_s = 1.0 / jobs.rate_per_s
        room_s = np.maximum(target_s - jobs.delay_s, 0.0)
        columns = (left_s, chain_s, self._paid_off_s, room_s, fresh_s)
        return DueRefreshes(*(column[kept] for column in columns))
