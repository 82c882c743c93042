"""The tasks that wait for the budget: their waits end when a run stops, and a long wait is told in a line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from afresh.engine.logs import log_event
from afresh.values.units import format_duration, format_rate

_LONG_S = 2.0  # a longer wait is told
_TOLD_AGAIN = 2.0  # a wait that is longer than the last one told by this factor is told too


class BudgetWaits:
    """The tasks that wait until the budget allows their next request."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._cut: set[asyncio.Task[object]] = set()
        self._told_s = _LONG_S / _TOLD_AGAIN
        self._is_over = False

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Return a context in which the current task waits. After ``end``, it raises ``CancelledError``, but
        the task does not count as cancelled (see ``has_cut``)."""
        task = asyncio.current_task()
        assert task is not None
        if self._is_over:
            self._cut.add(task)
            raise asyncio.CancelledError
        self._tasks.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task in self._cut:
                task.uncancel()
            raise
        finally:
            self._tasks.discard(task)

    def end(self) -> None:
        """End all waits, now and later: the run stops, so that no more requests may start."""
        self._is_over = True
        for task in self._tasks - self._cut:
            self._cut.add(task)
            task.cancel()

    def has_cut(self) -> bool:
        """Return whether ``end`` ended a wait of this run, and nobody else has cancelled the current task. So
        a ``CancelledError`` in this task came from the gate, perhaps through a task that it waited for."""
        task = asyncio.current_task()
        return bool(self._cut) and task is not None and not task.cancelling()

    def tell(self, wait_s: float, rate: float, *, is_paying: bool, level: int = logging.WARNING) -> None:
        """Log that the next request may be sent in ``wait_s`` seconds, if that is long, and much longer than
        what was said before. ``rate`` are the requests per second of the budget."""
        if wait_s >= self._told_s * _TOLD_AGAIN:
            self._told_s = wait_s
            why = "bytes, seconds or money are paid off" if is_paying else f"budget {format_rate(rate)}"
            words = f"the next request may be sent in {format_duration(wait_s)} ({why})"
            log_event(level, f"waiting for the budget: {words}")
