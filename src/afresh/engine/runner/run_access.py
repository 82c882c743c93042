"""Lets other threads use the scheduler of a run, for items that are lent to other programs."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import cached_property
from typing import TypeVar

from afresh.engine.lent_requests import LendingPlan, RequestEnd, group_delay_s, next_backoff, rules_of
from afresh.engine.runner.engine_run import Run
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
        return RunGroups(self._run, now_s)

    def book(self, plan: LendingPlan) -> None:
        context = self._run.context
        self._run.lent_requests += len(plan.starts_s)
        for group, start_s in plan.last_s.items():
            context.gate.record_lent(group, start_s, plan.requests[group])
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


class RunGroups:
    """``GroupStarts`` of the sources of a run, which know their hosts. Use it in the thread of the run."""

    def __init__(self, run: Run, now_s: float) -> None:
        self._run, self._context, self._now_s = run, run.context, now_s

    def ready_s(self, source: str, group: str) -> float:
        ready_s = self._host_ready_s(source, group)
        if ready_s == math.inf and self._context.sources.get(source) is not None:
            # A request of the run is under way, which began before now.
            return self._now_s + self.delay_s(source, group)
        return ready_s if ready_s > self._now_s else self._context.member.claims.ready_s(group, self._now_s)

    def _host_ready_s(self, source: str, group: str) -> float:
        context = self._context
        return max(context.sources.ready_s(source, group, self._now_s), context.gate.ready_s(group))

    def delay_s(self, source: str, group: str) -> float:
        known = self._context.sources.backoff(source, group)
        learned_s = spacing_s(known.pace) if known is not None else 0.0
        return group_delay_s(self._context.settings.now, source, group, learned_s)

    def ahead_s(self, source: str, group: str) -> float:
        # Of a group that another worker has claimed, nothing is lent ahead.
        return self.delay_s(source, group) if self._context.member.claims.is_open(group) else 0.0

    def is_reserved(self, source: str, group: str) -> bool:
        if self.delay_s(source, group) <= 0:
            return False
        if self._host_ready_s(source, group) <= self._now_s:
            # If a poll of the run waits for the budget, it came first; else the run does not want the host.
            return (source, group) in self._polled
        return self._context.gate.has_turn(group)

    @cached_property
    def _polled(self) -> set[tuple[str, str]]:
        """The source and group of each poll of the run that has begun and is not over."""
        names = self._run.scheduler.group_names
        return {names(group_key) for group_key in self._run.polls.shares.in_group}
