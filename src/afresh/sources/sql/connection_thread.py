"""One connection on one thread: statements run there one by one, and only their poll waits for them.

A connection that was lost is made anew at the next statement. A database that cannot be reached rests, longer
each time: other items would fare no better.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from afresh.sources.sql.errors import SqlError
from afresh.values.clock import Clock

FIRST_REST_S = 1.0
LONGEST_REST_S = 300.0
_FAREWELL_S = 5.0


class Closable(Protocol):
    """A connection of whatever kind."""

    def interrupt(self) -> None:
        """End the statement under way, if it can be ended; from any thread, and without a word."""

    def close(self) -> None:
        """Let go."""


Conn = TypeVar("Conn", bound=Closable)
Found = TypeVar("Found")


def _heard(answer: asyncio.Future[Found]) -> None:
    """What becomes of a statement whose poll has given up concerns nobody."""
    if not answer.cancelled():
        answer.exception()


class ConnectionThread(Generic[Conn]):
    """``open_it`` makes the connection, in the thread; it and the work raise ``SqlError`` for what fails.

    ``turn`` is held around ``run``, so that whoever waits does so before asking for leave to go.
    """

    def __init__(self, name: str, open_it: Callable[[], Conn], clock: Clock) -> None:
        self._open_it, self._clock = open_it, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"afresh {name}")
        self._connection: Conn | None = None
        self._rest_s = 0.0
        self._rests_until_s = float("-inf")
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.turn = asyncio.Lock()

    @property
    def busy(self) -> bool:
        """Whether a statement runs, be it one that was given up."""
        return not self._idle.is_set()

    def ready_s(self, now_s: float) -> float:
        """When the next statement may start; infinite while one runs."""
        return float("inf") if self.busy else max(now_s, self._rests_until_s)

    async def run(self, work: Callable[[Conn], Found], timeout_s: float, *, again: bool) -> Found:
        """What ``work`` makes of the connection. ``again``: once more if an old connection proves dead."""
        if self.busy:
            raise SqlError("the statement before still runs")
        loop = asyncio.get_running_loop()
        self._idle.clear()
        try:
            call = self._thread.submit(self._in_thread, work, again)
        except RuntimeError:
            self._idle.set()
            raise SqlError("the source is closed") from None
        # Free only when the thread is, which may be after the poll has given up.
        call.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(self._idle.set))
        answer = asyncio.wrap_future(call)
        answer.add_done_callback(_heard)
        try:
            async with asyncio.timeout(timeout_s):
                found = await asyncio.shield(answer)
        except asyncio.CancelledError:
            loop.run_in_executor(None, self._interrupt)
            raise
        except TimeoutError:
            self.rest()
            await asyncio.to_thread(self._interrupt)
            raise SqlError(f"no answer within {timeout_s:g} s") from None
        except SqlError as trouble:
            if trouble.lost:
                self.rest()
            raise
        self._rest_s = 0.0
        return found

    def rest(self) -> None:
        """Start no statement for a while, twice as long as the last time if none worked since."""
        self._rest_s = min(max(2 * self._rest_s, FIRST_REST_S), LONGEST_REST_S)
        self._rests_until_s = self._clock.now_s() + self._rest_s

    async def close(self) -> None:
        """End what runs, and let go of the connection."""
        self._closed = True
        await asyncio.to_thread(self._interrupt)
        self._thread.shutdown(wait=False, cancel_futures=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _FAREWELL_S)
            self._drop()

    def _in_thread(self, work: Callable[[Conn], Found], again: bool) -> Found:
        try:
            return self._work(work, again)
        finally:
            if self._closed:  # meanwhile, and nobody else will let go of the connection
                self._drop()

    def _work(self, work: Callable[[Conn], Found], again: bool) -> Found:
        fresh = self._connection is None
        if self._connection is None:
            self._connection = self._open_it()
        try:
            return work(self._connection)
        except SqlError as trouble:
            if not trouble.lost:
                raise
            self._drop()
            if fresh or not again:
                raise
        return self._work(work, again=False)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _interrupt(self) -> None:
        connection = self._connection
        if self.busy and connection is not None:
            connection.interrupt()
