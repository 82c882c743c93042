"""Writes signs of life of a running engine, with its progress, into the store.

It writes the pulse every two seconds, and a point of the time course every ten seconds (``reporting.pulse``).
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.ratelimit.budget_override import BudgetOverride, read_override
from afresh.engine.reporting.pulse import BEAT_S, Course, Pulse, add_point, pulse_of_fleet, source_delays
from afresh.engine.runner.engine_run import Run
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import PULSE, TALLIES, WORKER_PULSE, WORKER_TALLIES
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import StoreError

POINT_S = 10.0
_COSTLY = 100.0  # computing points may use at most 1/100 of the time


class PulseTask:
    """Writes the pulse of one run until cancelled. It also applies budget overrides to the run."""

    def __init__(
        self,
        run: Run,
        store: Store,
        clock: Clock,
        current: Callable[[], Settings],
        began_with: BudgetOverride | None,
    ) -> None:
        """``current`` returns the current settings; ``began_with`` is the override at the run's start."""
        self._run, self._store, self._clock, self._current = run, store, clock, current
        self._started_s = clock.now_s()
        self._point_s, self._every_s = -math.inf, POINT_S
        self._override = began_with
        self._has_tidied = False

    async def run(self) -> None:
        """Write pulses until cancelled; the last one states that the run ended regularly."""
        try:
            while True:
                await self._ignore_store_errors(self._write)
                await asyncio.sleep(BEAT_S)
        finally:
            values = {self._pulse_name: self._pulse(stopped=True).pack()} | self._tallies()
            await self._ignore_store_errors(lambda: asyncio.to_thread(self._store.state.set, values))

    async def _write(self) -> None:
        await self._follow_override()
        is_planner = self._run.context.member.is_planner
        values: dict[str, bytes | None] = {self._pulse_name: self._pulse().pack()}
        if is_planner:
            values |= await asyncio.to_thread(self._old_pulses)
        if self._clock.elapsed_s() >= self._point_s + self._every_s:
            self._point_s = self._clock.elapsed_s()
            values |= self._tallies()
            if not is_planner:  # only the planner writes the time course
                await asyncio.to_thread(self._store.state.set, values)
                return
            point = self._point(await asyncio.to_thread(pulse_of_fleet, self._store, self._pulse()))
            self._every_s = max(POINT_S, _COSTLY * (self._clock.elapsed_s() - self._point_s))
            values |= await asyncio.to_thread(add_point, self._store, point)
        await asyncio.to_thread(self._store.state.set, values)

    @property
    def _pulse_name(self) -> str:
        """The name of this worker's pulse in the store. Others read that of the planner first."""
        member = self._run.context.member
        return PULSE if member.is_planner else WORKER_PULSE + member.name

    def _tallies(self) -> dict[str, bytes | None]:
        """Return the record of this worker's polls by source, host and view."""
        member = self._run.context.member
        name = TALLIES if member.is_planner else WORKER_TALLIES + member.name
        return {name: self._run.context.recorder.tallies.pack()}

    def _old_pulses(self) -> dict[str, bytes | None]:
        """Return the records to remove: pulses and tallies of workers that ended before this run, and this
        one's own of the time before it became the planner."""
        if self._has_tidied:
            return {}
        self._has_tidied, state = True, self._store.state
        found = {name: state.get(name) for name in state.names() if name.startswith(WORKER_PULSE)}
        own = WORKER_PULSE + self._run.context.member.name
        ended = [
            name.removeprefix(WORKER_PULSE)
            for name, packed in found.items()
            if name == own or not packed or json.loads(packed)["time_s"] < self._started_s
        ]
        return {before + worker: None for worker in ended for before in (WORKER_PULSE, WORKER_TALLIES)}

    async def _follow_override(self) -> None:
        """Apply a budget override that was set or removed since the last call."""
        before, self._override = self._override, await asyncio.to_thread(read_override, self._store)
        if self._override != before:
            budget = (await asyncio.to_thread(self._current)).budget
            self._run.reload(replace(self._run.settings, budget=budget))
            log_event(logging.INFO, "budget asked for", requests_per_s=budget.requests)

    async def _ignore_store_errors(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await ``work()`` and ignore errors of the store, because its other calls report them."""
        try:
            await work()
        except StoreError as error:
            log_event(logging.DEBUG, "pulse not saved", problem=str(error))

    def _pulse(self, *, stopped: bool = False) -> Pulse:
        counted = asdict(self._run.count_progress())
        del counted["freshness"], counted["failed"]
        budget_per_s = self._run.settings.budget.requests
        now_s = self._clock.now_s()
        return Pulse(
            now_s,
            self._started_s,
            **counted,
            stopped=stopped,
            budget_per_s=budget_per_s,
            delays=source_delays(self._run.settings),
            unspent=self._run.count_unspent(now_s - self._started_s),
            seconds=self._run.context.gate.spent.seconds,
            unspent_seconds=self._run.count_unspent_seconds(now_s - self._started_s),
        )

    def _point(self, fleet: Pulse) -> Course:
        """Return a point of the time course, with the counts of the whole ``fleet``."""
        now_s, forecast = self._clock.now_s(), self._run.scheduler.forecast
        share = forecast.freshness(now_s)
        counts = (fleet.polls, fleet.changes, fleet.failures, fleet.requests)
        age_s = forecast.mean_age_s(now_s)
        return np.array([[now_s, share.value, share.low, share.high, age_s, *counts]])
