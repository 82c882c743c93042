"""``[plan] target``: said when audits show, beyond chance, that it is missed, and when it is met again."""

from __future__ import annotations

import logging
from collections.abc import Callable

from afresh.engine.logs import log_event
from afresh.engine.scheduler.audits import audited_freshness
from afresh.engine.scheduler.picker import Picker
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.writer import Writer
from afresh.stores.store import Store
from afresh.values.clock import Clock

TARGET_EVERY_S = 60.0


class TargetWatch:
    """Compares the audited freshness with the target once a minute."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        picker: Picker,
        recorder: PollRecorder,
        clock: Clock,
        is_planner: Callable[[], bool],
    ) -> None:
        """``is_planner``: whether it is on us, of all workers, to say it."""
        self._store, self._writer, self._picker, self._recorder = store, writer, picker, recorder
        self._clock, self._is_planner = clock, is_planner
        self._target_s, self._missed = clock.elapsed_s(), False

    async def check(self) -> None:
        """Say once when audits show, beyond chance, that the target is missed; and when it is met again."""
        target = self._recorder.settings.plan.target
        early = self._clock.elapsed_s() < self._target_s + TARGET_EVERY_S
        if target is None or early or not self._is_planner():
            return
        self._target_s, now_s = self._clock.elapsed_s(), self._clock.now_s()
        audits = await self._writer.call_with_retry(lambda: self._store.observations.audits(0.0))
        found = audited_freshness(audits, now_s, self._picker.policy.covered_share())
        missed = found.n > 0 and found.high < target
        if missed != self._missed:
            words = "freshness is below the target" if missed else "freshness is back at the target"
            log_event(logging.WARNING if missed else logging.INFO, words, audited=found.value, target=target)
        self._missed = missed
