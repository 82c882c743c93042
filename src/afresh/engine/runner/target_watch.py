"""``[plan] target``: logs when audits show, beyond chance, that it is missed, and when it is met again."""

from __future__ import annotations

import logging

from afresh.engine.logs import log_event
from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.runner.run_context import RunContext
from afresh.engine.scheduler.audits import audited_freshness
from afresh.engine.scheduler.scheduler import Scheduler

TARGET_EVERY_S = 60.0


class TargetWatch:
    """Compares the audited freshness with the target once a minute, if this worker is the planner."""

    def __init__(self, context: RunContext, scheduler: Scheduler, member: FleetMember) -> None:
        self._context, self._scheduler, self._member = context, scheduler, member
        self._checked_s, self._is_missed = context.clock.elapsed_s(), False

    async def check(self) -> None:
        """Log once when the target is missed, and when it is met again."""
        clock, target = self._context.clock, self._context.settings.now.plan.target
        is_early = clock.elapsed_s() < self._checked_s + TARGET_EVERY_S
        if target is None or is_early or not self._member.is_planner:
            return
        self._checked_s = clock.elapsed_s()
        audits = await self._context.store.observations.audits(0.0)
        found = audited_freshness(audits, clock.now_s(), self._scheduler.forecast.covered_share())
        is_missed = found.n > 0 and found.high < target
        if is_missed != self._is_missed:
            words = "freshness is below the target" if is_missed else "freshness is back at the target"
            level = logging.WARNING if is_missed else logging.INFO
            log_event(level, words, audited=found.value, target=target)
        self._is_missed = is_missed
