"""What happens in the engine before and after a group of polls is committed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afresh.engine.logs import log_event
from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.runner.run_context import RunContext
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.scheduler.decide import DecidedPoll
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.state_names import POLL_COSTS, SHADOW_PRICE
from afresh.values.outcome import Outcome, Refusal


@dataclass(frozen=True, slots=True)
class RunCommits:
    """The ``CommitHandler`` of a run."""

    context: RunContext
    member: FleetMember
    scheduler: Scheduler
    recorder: PollRecorder
    staleness_task: StalenessTask

    def complete(self, polls: Sequence[DecidedPoll]) -> list[Outcome]:
        """Learn from the polls, and return their outcomes."""
        return self.recorder.complete(polls, self.context.clock.now_s())

    def state_values(self) -> Mapping[str, bytes | None]:
        """Return the shadow price and the costs of polls, if this worker keeps them for all."""
        if not self.member.is_planner:
            return {}
        price = repr(self.scheduler.policy.shadow_price).encode()
        return {SHADOW_PRICE: price, POLL_COSTS: self.recorder.poll_costs.pack()}

    def after_commit(self, outcomes: Sequence[Outcome], refusals: Sequence[Refusal]) -> None:
        """Release the rows of committed polls."""
        for refusal in refusals:
            log_event(logging.WARNING, "an outcome was not kept", problem=str(refusal))
        rows = self.scheduler.item_rows.rows([outcome.lease.item_id for outcome in outcomes])
        self.staleness_task.after_commit()
        self.scheduler.item_rows.is_busy[rows] = False
        self.context.wakeup.set()
