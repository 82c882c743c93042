"""The leases of one crawl: they are taken, started in time, reported, and given back at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler

from afresh.engine.lending import LeaseKey
from afresh.integrations.scrapy.lessors import Lessor, open_lessor, read_terms
from afresh.values.backoff import Backoff
from afresh.values.clock import SystemClock
from afresh.values.errors import AfreshError, StoreError, UsageError

LOGGER = logging.getLogger("afresh.scrapy")
_GATHER_S = 0.05  # reports wait so long for others
_MOST_ROWS, _MOST_CHARACTERS = 500, 8_000_000  # of one report
_IDLE_S = 0.05
_RETRIES = Backoff(0.5, 30.0)

Start = Callable[[dict[str, Any]], None]
"""A function that starts the request of a lease."""


class LeaseSession:
    """Takes leases while there is room for more, and reports what became of them. At most ``most`` leases are
    held at a time. All methods are called on the event loop of the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self._settings, self._terms = settings, read_terms(settings)
        self._most = settings.getint("AFRESH_AT_ONCE") or settings.getint("CONCURRENT_REQUESTS")
        self._held: dict[LeaseKey, asyncio.TimerHandle] = {}
        self._reports: list[dict[str, Any]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._lessor: Lessor | None = None
        self._changed, self._closing = asyncio.Event(), asyncio.Event()

    def open(self, start: Start, fail: Callable[[Exception], None]) -> None:
        """Begin to take leases; ``start`` starts the request of each when it may be sent. ``fail`` is called
        if no lease will ever be given, for example because the token is wrong."""
        self._lessor = open_lessor(self._settings)
        self._tasks = [asyncio.create_task(self._take(start, fail)), asyncio.create_task(self._send())]

    def report(self, row: dict[str, Any]) -> None:
        """Report the outcome of a leased request."""
        if _lease_key(row) in self._held:
            self._reports.append(row)
            self._changed.set()

    async def close(self) -> None:
        """Report what is left, give back the leases whose requests were not sent, and end."""
        self._closing.set()
        for task in self._tasks[1:]:
            task.cancel()  # what it was sending is sent again
        # The first task ends by itself, so that leases which are just being given are known and given back.
        await asyncio.gather(*self._tasks, return_exceptions=True)
        lessor, self._lessor = self._lessor, None
        if lessor is None:
            return
        for handle in self._held.values():
            handle.cancel()
        try:
            while self._reports:
                await self._send_some(lessor)
            await asyncio.to_thread(lessor.release, list(self._held))
        except StoreError as error:
            LOGGER.warning("leases could not be given back: %s", error)
        finally:
            await asyncio.to_thread(lessor.close)

    async def _pause(self, seconds: float) -> None:
        """Wait for ``seconds``, or until the crawl ends."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _take(self, start: Start, fail: Callable[[Exception], None]) -> None:
        failures, loop = 0, asyncio.get_running_loop()
        while self._lessor is not None and not self._closing.is_set():
            room = self._most - len(self._held)
            if room <= 0:
                await self._pause(_IDLE_S)
                continue
            try:
                leases, wait_s = await asyncio.to_thread(self._lessor.lease, room, self._terms)
                failures = 0
            except StoreError as error:
                failures += 1
                LOGGER.warning("no leases, trying again: %s", error)
                leases, wait_s = [], _RETRIES.wait_s(failures)
            except AfreshError as error:
                fail(error)
                return
            now_s = SystemClock().now_s()
            for lease in leases:
                delay_s = max(lease["not_before"] - now_s, 0.0)
                self._held[_lease_key(lease)] = loop.call_later(delay_s, start, lease)
            await self._pause(max(wait_s, _IDLE_S))

    async def _send(self) -> None:
        failures = 0
        while True:
            await self._changed.wait()
            self._changed.clear()
            await asyncio.sleep(_GATHER_S)
            while self._reports and self._lessor is not None:
                try:
                    await self._send_some(self._lessor)
                    failures = 0
                except StoreError as error:
                    failures += 1
                    LOGGER.warning("reports are kept and sent again: %s", error)
                    await asyncio.sleep(_RETRIES.wait_s(failures))

    async def _send_some(self, lessor: Lessor) -> None:
        """Send the first reports. They are sent again if there is no answer: a report counts once."""
        rows, size = list[dict[str, Any]](), 0
        for row in self._reports[:_MOST_ROWS]:
            size += len(row.get("content_base64", ""))
            if rows and size > _MOST_CHARACTERS:
                break
            rows.append(row)
        try:
            answers = await asyncio.to_thread(lessor.report, rows)
        except UsageError as error:
            LOGGER.warning("%d reports were refused: %s", len(rows), error)
            answers = [{"problem": ""}] * len(rows)
        del self._reports[: len(rows)]
        for row, answer in zip(rows, answers, strict=True):
            self._held.pop(_lease_key(row), None)
            if answer["problem"]:
                LOGGER.warning("not recorded: %s", answer["problem"])


def _lease_key(row: dict[str, Any]) -> LeaseKey:
    return LeaseKey(row["item"], row["lease"], row["source"])


_SESSIONS: WeakKeyDictionary[Crawler, LeaseSession] = WeakKeyDictionary()


def session_of(crawler: Crawler) -> LeaseSession:
    """Return the session of a crawl, which its scheduler and its middleware share."""
    if crawler not in _SESSIONS:
        _SESSIONS[crawler] = LeaseSession(crawler)
    return _SESSIONS[crawler]
