"""A scheduler that, beside the requests of the spider, starts those of items that afresh lends."""

from __future__ import annotations

import asyncio
from typing import Any

from scrapy import Request
from scrapy.core.scheduler import Scheduler as ScrapyScheduler
from scrapy.spiders import Spider
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from afresh.integrations.scrapy.lease_session import LOGGER, LeaseSession, session_of
from afresh.values.errors import UsageError

LEASE = "afresh_lease"
"""The key under which a request has its lease, in ``request.meta``."""


class LeaseScheduler(ScrapyScheduler):
    """Scrapy's own scheduler with leases. The crawl goes on, because items become due again, until it is
    stopped or one of Scrapy's CLOSESPIDER settings ends it."""

    _session: LeaseSession | None = None
    _ending: asyncio.Future[None] | None = None

    def open(self, spider: Spider) -> Deferred[None] | None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            words = "leases of afresh need Scrapy's asyncio reactor: remove TWISTED_REACTOR from the settings"
            raise UsageError(words) from None
        opened = super().open(spider)
        assert self.crawler is not None
        self._session = session_of(self.crawler)
        self._session.open(self._start, self._end_crawl)
        return opened

    def has_pending_requests(self) -> bool:
        return self._session is not None or super().has_pending_requests()

    def close(self, reason: str) -> Deferred[None] | None:
        session, self._session = self._session, None
        closed = super().close(reason)

        async def finish() -> None:
            if session is not None:
                await session.close()
            if closed is not None:
                await closed

        done: Deferred[None] = deferred_from_coro(finish())
        return done

    def _end_crawl(self, error: Exception) -> None:
        """End the crawl, because ``error`` shows that no lease will ever be given."""
        LOGGER.error("afresh lends nothing: %s", error)
        engine = None if self.crawler is None else self.crawler.engine
        if engine is not None:
            self._ending = asyncio.ensure_future(engine.close_spider_async(reason="afresh lends nothing"))

    def _start(self, lease: dict[str, Any]) -> None:
        engine = None if self.crawler is None else self.crawler.engine
        if self._session is not None and engine is not None and engine.spider is not None:
            engine.crawl(lease_request(lease))


def lease_request(lease: dict[str, Any]) -> Request:
    """Return the request for a leased item: conditional if there are validators. Retries are left to afresh,
    which knows the budget; the response goes to the spider's ``parse``, except a 304.

    >>> lease = {"item": "https://a.test/", "source": "web", "lease": 7, "validators": {"etag": '"1"'}}
    >>> request = lease_request(lease)
    >>> request.headers["If-None-Match"]
    b'"1"'
    """
    names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
    headers = {names[name]: value for name, value in lease["validators"].items() if name in names}
    meta = {LEASE: {name: lease[name] for name in ("item", "lease", "source")}, "dont_retry": True}
    return Request(lease["item"], headers=headers, meta=meta, dont_filter=True)
