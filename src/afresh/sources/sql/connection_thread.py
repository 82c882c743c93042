"""A database connection with its own thread, so that the event loop never waits for a statement.

A lost connection is opened again for the next statement. While a database cannot be reached, no statement is
sent during a back-off that doubles with each failure, because statements for other items would fail as well.
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
"""How many seconds this program waits for an answer after the time-out that the server enforces itself."""

_CLOSE_S = 5.0


class DatabaseConnection(Protocol):
    """A connection to a database. Only ``interrupt`` may be called while another thread uses it."""

    def interrupt(self) -> None:
        """Cancel the running statement if possible. Any thread may call it; no exception is raised."""

    def close(self) -> None:
        """Close the connection."""


Conn = TypeVar("Conn", bound=DatabaseConnection)
Found = TypeVar("Found")


class ConnectionThread(Generic[Conn]):
    """Runs all work on one database connection in one thread, and opens the connection when it is needed.

    The thread calls ``connect`` to open the connection. ``connect`` and the work raise ``SqlError``. A caller
    holds ``lock`` around ``admit`` and ``run``, so that it first waits for the connection and then uses the
    budget."""

    def __init__(self, name: str, connect: Callable[[], Conn], clock: Clock) -> None:
        self._connect, self._clock = connect, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"afresh {name}")
        self._connection: Conn | None = None
        self._failures = 0
        self._backoff_until_s = float("-inf")
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.lock = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether a statement is running, even if its poll was cancelled or timed out."""
        return not self._idle.is_set()

    def ready_s(self, now_s: float) -> float:
        """Return when the next statement may start (Unix seconds); infinite while a statement is running."""
        return float("inf") if self.is_busy else max(now_s, self._backoff_until_s)

    def backoff_s(self) -> float | None:
        """Return the seconds until the back-off ends; None if there is none or a statement is running."""
        now_s = self._clock.now_s()
        wait_s = self.ready_s(now_s) - now_s
        return wait_s if 0 < wait_s < float("inf") else None

    async def run(self, work: Callable[[Conn], Found], timeout_s: float, *, retry: bool) -> Found:
        """Call ``work`` with the connection in the thread, and return its result. If the connection was open
        before but is lost, and ``retry`` is True, connect and call ``work`` once more. Raise ``SqlError`` if
        ``work`` fails or takes longer than ``timeout_s`` seconds."""
        if self.is_busy:
            raise SqlError("the previous statement is still running")
        loop, given_up = asyncio.get_running_loop(), Event()
        self._idle.clear()
        try:
            call = self._thread.submit(self._in_thread, work, retry, given_up)
        except RuntimeError:
            self._idle.set()
            raise SqlError("the source is closed") from None
        # The thread may still be busy after the poll has timed out, so the thread itself reports its end.
        call.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(self._idle.set))
        answer = asyncio.wrap_future(call)
        # If the poll was cancelled or timed out, read the error here: asyncio warns about unread errors.
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
        """Start a back-off. It is twice as long as the last one if no statement has succeeded in between."""
        self._failures += 1
        self._backoff_until_s = self._clock.now_s() + RETRIES.wait_s(self._failures)

    async def close(self) -> None:
        """Cancel the running statement and close the connection."""
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
            if self._closed:  # ``close`` may have stopped waiting, so close the connection here
                self._disconnect()

    def _work(self, work: Callable[[Conn], Found], retry: bool, given_up: Event) -> Found:
        is_new = self._connection is None
        if self._connection is None:
            self._connection = self._connect()
        # An interrupt before the statement has started has no effect, so check here before starting it.
        if given_up.is_set():
            raise SqlError("the poll of this statement has ended")
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
