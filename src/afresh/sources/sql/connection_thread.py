"""One database connection on one thread: statements run there one after the other, and only their poll waits.

A lost connection is opened again for the next statement. A database that cannot be reached backs off, each
time for longer, because other items would not fare better.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Generic, Protocol, TypeVar

from afresh.sources.sql.errors import SqlError
from afresh.values.backoff import Backoff
from afresh.values.clock import Clock

RETRIES = Backoff(first_s=1.0, longest_s=300.0)
GRACE_S = 5.0
"""How much longer than the server's own time-out we wait for an answer."""

_CLOSE_S = 5.0


class DatabaseConnection(Protocol):
    """A connection of any kind; used by one thread at a time, except ``interrupt``."""

    def interrupt(self) -> None:
        """End the statement under way if possible; may be called from any thread, raises nothing."""

    def close(self) -> None:
        """Close the connection."""


Conn = TypeVar("Conn", bound=DatabaseConnection)
Found = TypeVar("Found")


class ConnectionThread(Generic[Conn]):
    """``connect`` opens the connection in the thread; it and the work raise ``SqlError``. ``lock`` is held
    around ``run``, so that whoever waits does so before asking the budget for permission."""

    def __init__(self, name: str, connect: Callable[[], Conn], clock: Clock) -> None:
        self._connect, self._clock = connect, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"afresh {name}")
        self._connection: Conn | None = None
        self._failures = 0
        self._rests_until_s = float("-inf")
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.lock = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether a statement runs, even one that nobody waits for any more."""
        return not self._idle.is_set()

    def ready_s(self, now_s: float) -> float:
        """Return when the next statement may start; infinite while one runs."""
        return float("inf") if self.is_busy else max(now_s, self._rests_until_s)

    def backoff_s(self) -> float | None:
        """Return for how many seconds the database backs off; None if it does not, or a statement runs."""
        now_s = self._clock.now_s()
        wait_s = self.ready_s(now_s) - now_s
        return wait_s if 0 < wait_s < float("inf") else None

    async def run(self, work: Callable[[Conn], Found], timeout_s: float, *, retry: bool) -> Found:
        """Call ``work`` with the connection. ``retry``: call it again if an old connection was lost."""
        if self.is_busy:
            raise SqlError("the statement before still runs")
        loop, given_up = asyncio.get_running_loop(), Event()
        self._idle.clear()
        try:
            call = self._thread.submit(self._in_thread, work, retry, given_up)
        except RuntimeError:
            self._idle.set()
            raise SqlError("the source is closed") from None
        # Idle only when the thread is, which may be after the poll has given up.
        call.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(self._idle.set))
        answer = asyncio.wrap_future(call)
        # The poll that wants the result may have given up: then its error counts as seen.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            async with asyncio.timeout(timeout_s):
                found = await asyncio.shield(answer)
        except asyncio.CancelledError:
            given_up.set()
            loop.run_in_executor(None, self._interrupt)
            raise
        except TimeoutError:
            given_up.set()
            self.back_off()
            await asyncio.to_thread(self._interrupt)
            raise SqlError(f"no answer within {timeout_s:g} s") from None
        except SqlError as error:
            if error.is_connection_lost:
                self.back_off()
            raise
        self._failures = 0
        return found

    def back_off(self) -> None:
        """Start no statement for a while, twice as long as the last time if none has worked since."""
        self._failures += 1
        self._rests_until_s = self._clock.now_s() + RETRIES.wait_s(self._failures)

    async def close(self) -> None:
        """End the statement under way, and close the connection."""
        self._closed = True
        await asyncio.to_thread(self._interrupt)
        self._thread.shutdown(wait=False, cancel_futures=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _CLOSE_S)
            self._disconnect()

    def _in_thread(self, work: Callable[[Conn], Found], retry: bool, given_up: Event) -> Found:
        try:
            return self._work(work, retry, given_up)
        finally:
            if self._closed:  # closed meanwhile: nobody else will close the connection
                self._disconnect()

    def _work(self, work: Callable[[Conn], Found], retry: bool, given_up: Event) -> Found:
        is_new = self._connection is None
        if self._connection is None:
            self._connection = self._connect()
        # An interrupt ends only a statement that has begun, and nobody will interrupt this one later.
        if given_up.is_set():
            raise SqlError("nobody waits for the answer any more")
        try:
            return work(self._connection)
        except SqlError as error:
            if not error.is_connection_lost:
                raise
            self._disconnect()
            if is_new or not retry:
                raise
        return self._work(work, False, given_up)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _interrupt(self) -> None:
        connection = self._connection
        if self.is_busy and connection is not None:
            connection.interrupt()
