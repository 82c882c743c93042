"""Lets other threads use the scheduler of a run, for items that are lent to other programs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TypeVar

from afresh.engine.lent_requests import LendingPlan, RequestEnd, group_delay_s, next_backoff, rules_of
from afresh.engine.runner.engine_run import Run
from afresh.engine.runner.run_context import RunContext
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.http.pacing.pace import spacing_s
from afresh.values.errors import StoreError

T = TypeVar("T")
_LONGEST_S = 30.0  # a run that does not answer within this time is stuck or has just ended


class RunAccess:
    """The access of other threads to a run; see ``LiveRun``. It is made in the thread of the run."""

    def __init__(self, run: Run, loop: asyncio.AbstractEventLoop) -> None:
        self._run, self._loop, self._thread = run, loop, threading.get_ident()

    @property
    def scheduler(self) -> Scheduler:
        return self._run.scheduler

    @property
    def recorder(self) -> PollRecorder:
        return self._run.context.recorder

    def call(self, work: Callable[[], T]) -> T:
        """Call ``work`` in the thread of the run, and return its result."""
        if threading.get_ident() == self._thread:
            return work()

        async def on_loop() -> T:
            return work()

        call = on_loop()
        try:
            return asyncio.run_coroutine_threadsafe(call, self._loop).result(_LONGEST_S)
        except (RuntimeError, CancelledError, TimeoutError):
            call.close()
            raise StoreError("the engine has just stopped: ask again") from None

    def groups(self, now_s: float) -> RunGroups:
        return RunGroups(self._run.context, now_s)

    def book(self, plan: LendingPlan) -> None:
        context = self._run.context
        self._run.lent_requests += len(plan.starts_s)
        for group, start_s in plan.last_s.items():
            context.gate.record_lent_start(group, start_s)
        context.sources.load_backoffs([GroupBackoff(*pair) for pair in plan.busy_s.items()])

    def record_ends(self, ends: Sequence[tuple[str, RequestEnd]], now_s: float) -> None:
        context = self._run.context
        for source, end in ends:
            rules = rules_of(context.settings.now, source)
            if rules is not None:
                before = context.sources.backoff(source, end.group)
                after = next_backoff(before, rules, end, now_s)
                if after is not None and after != before:
                    context.sources.load_backoffs([after], source)


@dataclass(frozen=True, slots=True)
class RunGroups:
    """``GroupStarts`` of the sources of a run, which know their hosts. Use it in the thread of the run."""

    context: RunContext
    now_s: float

    def ready_s(self, source: str, group: str) -> float:
        context, now_s = self.context, self.now_s
        ready_s = max(context.sources.ready_s(source, group, now_s), context.gate.ready_s(group))
        if ready_s == float("inf") and context.sources.get(source) is not None:
            # A request of the run is under way, which began before now.
            return now_s + self.delay_s(source, group)
        return ready_s if ready_s > now_s else context.member.claims.ready_s(group, now_s)

    def delay_s(self, source: str, group: str) -> float:
        known = self.context.sources.backoff(source, group)
        learned_s = spacing_s(known.pace) if known is not None else 0.0
        return group_delay_s(self.context.settings.now, source, group, learned_s)

    def ahead_s(self, _source: str, _group: str) -> float:
        return 0.0
