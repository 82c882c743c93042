"""Parses untrusted inputs: small ones here, large ones in a few parser processes with limits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from afresh.sources.parsing.fair_turns import FairTurns, Turn
from afresh.sources.parsing.parse_budget import SMALL_BYTES, ParseBudget, ParseBudgetError, budget_for_size
from afresh.sources.parsing.worker_process import WorkerGoneError, WorkerProcess
from afresh.values.clock import SystemClock

Result = TypeVar("Result")

WORKERS = 2
_ENDED = "the parser processes have been ended"


class ParserPool:
    """A few parser processes, started when they are first needed, shared fairly, and replaced when they end.

    Everybody who uses a pool calls ``join`` before and ``leave`` after; when the last one leaves, all
    processes end. Functions are sent by their names, so they must be functions of a module, and arguments and
    results must be values that can be pickled.

    >>> pool = ParserPool()
    >>> pool.parse_here(len, b"small")        # needs no process
    5
    """

    def __init__(
        self, workers: int = WORKERS, budget_of: Callable[[int], ParseBudget] = budget_for_size
    ) -> None:
        """``budget_of`` computes the budget of an input from its size in bytes."""
        self._budget_of, self._clock = budget_of, SystemClock()
        self._lock = threading.Lock()
        self._turns = FairTurns(workers)
        self._workers = workers
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._users = 0

    def join(self) -> None:
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Leave the pool. If nobody else uses it, what is being parsed is given up."""
        with self._lock:
            self._users = max(self._users - 1, 0)
            if self._users > 0:
                return
            threads, self._threads = self._threads, None
            ended, self._idle = [*self._idle, *self._busy], []
        for worker in ended:
            worker.kill()
        if threads is not None:
            threads.shutdown()
        for worker in ended:
            worker.end()

    @contextmanager
    def joined(self) -> Iterator[ParserPool]:
        self.join()
        try:
            yield self
        finally:
            self.leave()

    async def parse(
        self,
        function: Callable[..., Result],
        data: bytes,
        *arguments: object,
        small: int = SMALL_BYTES,
        party: str = "",
    ) -> Result:
        """Return ``function(data, *arguments)``. If ``data`` has more than ``small`` bytes, a parser process
        calls the function, while the event loop goes on. Raise ``ParseBudgetError`` if it takes too long or
        too much memory. The processes are shared fairly between parties: ``party`` names where the data come
        from, such as a host."""
        if len(data) <= small:
            return function(data, *arguments)
        turn, given = self._turns.request(party), (data, *arguments)
        try:
            if not turn.granted.done():
                await asyncio.wrap_future(turn.granted)
            call = self._executor().submit(self._use_turn, turn, function, given)
        except BaseException:
            self._turns.end(turn)
            raise
        # A call that is cancelled before its thread begins would keep its turn for ever.
        call.add_done_callback(lambda done: self._turns.end(turn) if done.cancelled() else None)
        return await asyncio.wrap_future(call)

    def parse_here(
        self,
        function: Callable[..., Result],
        data: bytes,
        *arguments: object,
        small: int = SMALL_BYTES,
        party: str = "",
    ) -> Result:
        """Do the same as ``parse``, but wait for the result: for threads, and where no event loop runs."""
        if len(data) <= small:
            return function(data, *arguments)
        turn = self._turns.request(party)
        try:
            turn.granted.result()
        except BaseException:
            self._turns.end(turn)
            raise
        return self._use_turn(turn, function, (data, *arguments))

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._users <= 0:
                raise ParseBudgetError(_ENDED)
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="afresh-parse")
            return self._threads

    def _use_turn(self, turn: Turn, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        start_s = self._clock.elapsed_s()
        try:
            while True:
                with suppress(WorkerGoneError):  # it ended because nobody used it for a while
                    return self._call(function, arguments)
        finally:
            self._turns.end(turn, self._clock.elapsed_s() - start_s)

    def _call(self, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        worker = self._take()
        try:
            result: Result = worker.call(self._budget_of(len(arguments[0])), function, arguments)
        except BaseException:
            with self._lock:
                self._busy.discard(worker)
            worker.end()
            raise
        with self._lock:
            self._busy.discard(worker)
            self._idle.append(worker)
        return result

    def _take(self) -> WorkerProcess:
        with self._lock:
            if self._users <= 0:
                raise ParseBudgetError(_ENDED)
            worker = self._idle.pop() if self._idle else WorkerProcess()
            self._busy.add(worker)
        return worker
