"""A web site on loopback whose pages change at known rates, and which records every response.

A *site-day* is the site's unit of time, a fraction of a second. The content of a page is a function of time,
and the site distinguishes the copies by their User-Agent. So it always knows which pages of a copy are fresh.
The feed ``/feed.xml`` announces the latest changes of some of the pages.
"""

from __future__ import annotations

import asyncio
import re
import threading
from bisect import bisect_right
from collections.abc import Sequence
from typing import Self, cast

import numpy as np

from afresh.replay.change_history import ChangeHistory
from afresh.replay.change_process import CHO_INTERVALS_D, CHO_SHARES
from afresh.values.arrays import Float64s, Ints
from afresh.values.clock import Clock, SystemClock
from afresh.values.errors import AfreshError

_READY_S = 10.0
_ROBOTS = b"User-agent: *\nAllow: /\n"
_WORDS = "<p>Some pages change every day, some once a year, and none says so.</p>\n" * 12
_FEED = b"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>Changed pages</title>%s</feed>
"""
_ENTRY = b'<entry><id>%d-%d</id><title>Version %d</title><link href="/page/%d"/></entry>'
_FEED_ENTRIES = 40
_PAGE_REQUEST = re.compile(rb"GET /page/(\d+) ")


def cho_pages(pages: int, rng: np.random.Generator) -> Float64s:
    """Return the rate of each page, in changes per site-day: those of Cho's Table 6, in random order.

    >>> rates = cho_pages(1000, np.random.default_rng(1))
    >>> int(np.count_nonzero(rates == 1.0)), int(np.count_nonzero(rates == 1 / 365))
    (230, 300)
    """
    upto = np.rint(np.cumsum(CHO_SHARES) * pages).astype(np.int64)
    rates = np.repeat(1 / np.array(CHO_INTERVALS_D), np.diff(upto, prepend=0))
    return np.asarray(rng.permutation(rates))


class DemoSite:
    """Serves the pages ``/page/0``, ``/page/1``, … in a thread until its ``with`` block ends.

    The site's clock stands at 0, and no page changes, until ``begin`` is called. Times are in site-days."""

    def __init__(
        self,
        rates: Float64s,
        copies: Sequence[str],
        clock: Clock | None = None,
        *,
        weights: Float64s | None = None,
        announced: Sequence[int] = (),
    ) -> None:
        """``rates`` are in changes per site-day; ``copies`` has one word of each copy's User-Agent.
        ``weights`` says how important each page is (None: all equally), ``announced`` which pages the feed is
        about."""
        self.rates, self.copies, self.port = rates, tuple(copies), 0
        self.weights: Float64s = np.ones(rates.size) if weights is None else weights
        self.announced = tuple(announced)
        self._asked: list[list[float]] = [[] for _ in self.copies]  # the times of all requests
        self._changes: list[list[float]] = [[] for _ in range(rates.size)]
        self._served: list[tuple[list[int], list[float]]] = [([], []) for _ in copies]
        # The time at which each copy of a page becomes stale; −∞ for a page that was never fetched.
        self._right_until = np.full((len(self.copies), rates.size), -np.inf)
        self._marks = [copy.encode() for copy in copies]
        self._clock = clock or SystemClock()
        self._days_per_s = self._began_s = 0.0
        self._ready, self._failed = threading.Event(), ""
        self._thread = threading.Thread(target=self._serve, name="afresh-demo-site", daemon=True)

    def begin(self, days_per_s: float, lasts_d: float, rng: np.random.Generator) -> None:
        """Start the clock: ``days_per_s`` site-days pass per second. Pages change until day ``lasts_d``."""
        changes = [
            np.sort(rng.uniform(0, lasts_d, rng.poisson(rate * lasts_d))).tolist() for rate in self.rates
        ]
        begun = threading.Event()

        def start_clock() -> None:  # runs in the site's own thread, between two answers
            self._changes = changes
            first = np.array([times[0] if times else np.inf for times in changes])
            self._right_until = np.where(np.isneginf(self._right_until), -np.inf, first)
            self._began_s, self._days_per_s = self._clock.elapsed_s(), days_per_s
            begun.set()

        self._loop.call_soon_threadsafe(start_clock)
        begun.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(_READY_S)
        if not self.port:
            raise AfreshError(f"the site cannot listen on loopback: {self._failed or 'it does not start'}")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def now_d(self) -> float:
        """The time at the site, in site-days."""
        return (self._clock.elapsed_s() - self._began_s) * self._days_per_s

    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{self.port}/page/{page}" for page in range(self.rates.size)]

    @property
    def feed(self) -> str:
        """The address of the feed."""
        return f"http://127.0.0.1:{self.port}/feed.xml"

    def fresh(self, copy: int) -> float:
        """Return the share of pages, by weight, that are fresh in a copy at this moment. ``copy`` is the
        number of the copy."""
        return float(np.average(self._right_until[copy] > self.now_d, weights=self.weights))

    def has_all(self, copy: int) -> bool:
        """Return whether a copy has fetched every page."""
        return not bool(np.isneginf(self._right_until[copy]).any())

    def visits(self, copy: int) -> tuple[Ints, Float64s]:
        """Return two arrays: the page and the time (in site-days) of every response that a copy received."""
        pages, times = self._served[copy]
        known = len(times)  # because the site's thread appends to both lists meanwhile
        return np.array(pages[:known], dtype=np.int64), np.array(times[:known], dtype=np.float64)

    def requests(self, copy: int) -> int:
        """Return how many requests a copy has made, those for robots.txt and the feed included."""
        return len(self._asked[copy])

    def requests_between(self, copy: int, begin_d: float, end_d: float) -> int:
        """Return how many requests a copy made after ``begin_d`` and until ``end_d`` (in site-days)."""
        asked = self._asked[copy]
        return bisect_right(asked, end_d) - bisect_right(asked, begin_d)

    def history(self, end_d: float) -> ChangeHistory:
        """Return every change of the pages until ``end_d`` (in site-days)."""
        counts = [bisect_right(changes, end_d) for changes in self._changes]
        times = [
            time for changes, count in zip(self._changes, counts, strict=True) for time in changes[:count]
        ]
        return ChangeHistory.of(
            self.rates.size,
            np.repeat(np.arange(self.rates.size), counts),
            times,
            0.0,
            end_d,
            weights=self.weights,
        )

    def answer(self, request: bytes) -> bytes:
        """Return the response to a request, and record which copy received which page."""
        asking = [copy for copy, mark in enumerate(self._marks) if mark in request]
        now_d = self.now_d
        for copy in asking:
            self._asked[copy].append(now_d)
        found = _PAGE_REQUEST.match(request)
        if found is None or int(found[1]) >= self.rates.size:
            return self._other_answer(request)
        page = int(found[1])
        changes = self._changes[page]
        version = bisect_right(changes, now_d)
        for copy in asking:
            pages, times = self._served[copy]
            pages.append(page)
            times.append(now_d)
            self._right_until[copy, page] = changes[version] if version < len(changes) else np.inf
        etag = b'"%d-%d"' % (page, version)
        if etag in request:
            return b"HTTP/1.1 304 Not Modified\r\nETag: %s\r\n\r\n" % etag
        body = f"<!doctype html><title>Page {page}</title>\n<h1>Version {version}</h1>\n{_WORDS}"
        return _ok_response(body.encode(), b"text/html", b"ETag: %s\r\n" % etag)

    def _other_answer(self, request: bytes) -> bytes:
        """Return the response to a request that is for none of the pages."""
        if request.startswith(b"GET /robots.txt "):
            return _ok_response(_ROBOTS, b"text/plain", b"")
        if request.startswith(b"GET /feed.xml "):
            return _ok_response(self._feed(), b"application/atom+xml", b"")
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

    def _feed(self) -> bytes:
        """Return the feed: the latest changes of the announced pages, the last one first."""
        now_d = self.now_d
        latest = sorted(
            (
                (time, page, version)
                for page in self.announced
                for version, time in enumerate(self._changes[page], 1)
                if time <= now_d
            ),
            reverse=True,
        )[:_FEED_ENTRIES]
        return _FEED % b"".join(_ENTRY % (page, version, version, page) for _, page, version in latest)

    def _serve(self) -> None:
        try:
            asyncio.run(self._until_stopped())
        except OSError as error:
            self._failed = str(error.strerror)
        finally:
            self._ready.set()

    async def _until_stopped(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()


def _ok_response(body: bytes, kind: bytes, more: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n" % (kind, more, len(body))
    return head + body


class _Connection(asyncio.Protocol):
    """One connection to the site, which answers every complete request at once."""

    def __init__(self, site: DemoSite) -> None:
        self._site, self._rest = site, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            self._transport.write(self._site.answer(request))
