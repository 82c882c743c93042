"""A database with materialised views, a source over it, and a clock for both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from tests.servers.postgres import PostgresServer
from tests.sources.polling import SetClock, lease_of, lease_with_copy, make_source

from afresh.sources.context import SourceContext
from afresh.sources.views.source import ViewSource
from afresh.values.clock import SystemClock
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing

Found = TypeVar("Found")
REAL = SystemClock()

TABLES = """
    CREATE TABLE a (id int PRIMARY KEY, x int);
    CREATE TABLE b (id int PRIMARY KEY, x int);
    CREATE VIEW plain AS SELECT * FROM a WHERE x > 0;
    CREATE MATERIALIZED VIEW of_a AS SELECT * FROM plain;
    CREATE UNIQUE INDEX ON of_a (id);
    CREATE MATERIALIZED VIEW of_b AS SELECT count(*) AS n FROM b;
    CREATE MATERIALIZED VIEW of_both AS SELECT of_a.id FROM of_a JOIN b USING (id);
"""
OF_A, OF_B, OF_BOTH = "public.of_a", "public.of_b", "public.of_both"


class DayClock(SetClock):
    """The time of day goes when told to, durations are real."""

    def elapsed_s(self) -> float:
        return REAL.elapsed_s()


class Warehouse:
    """A database whose writer reports its counters at once, a source over it, and a clock for both."""

    def __init__(self, server: PostgresServer, database: str) -> None:
        self.server, self.database, self.clock = server, database, DayClock()
        self._writer = psycopg.connect(server.url(database), autocommit=True)
        self.run(TABLES)
        self.source = self.make()
        self.leases: dict[str, Lease] = {}

    def make(self, **changes: Any) -> ViewSource:
        table = {"name": "warehouse", "kind": "view", "url": self.server.url(self.database)} | changes
        source = make_source(table, SourceContext(clock=self.clock))
        assert isinstance(source, ViewSource)
        assert source.capabilities.staleness is source
        return source

    def run(self, *statements: str) -> None:
        for statement in statements:
            self._writer.execute(statement.encode())
            self._writer.execute("SELECT pg_stat_force_next_flush()")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._writer.execute(statement.encode()).fetchall()

    async def look(self, seconds: float = 5.0) -> Listing:
        self.clock.time_s += seconds
        (listing,) = [listing async for listing in self.source.listings()]
        return listing

    async def poll(self, view: str, **options: Any) -> Fetched:
        lease = self.leases.get(view, lease_of(view))
        found = await self.source.poll(lease, **options)
        self.leases[view] = lease_with_copy(lease, found)
        return found

    async def begin(self) -> None:
        """Every view refreshed once, and looked at."""
        for view in (OF_A, OF_B, OF_BOTH):
            assert (await self.poll(view)).kind == "content"
        await self.look()

    def stale(self) -> set[str]:
        return {view for view, told in self.source.staleness_reports().items() if not told.fresh}

    def use(self, work: Callable[[], Awaitable[Found]]) -> Found:
        async def run() -> Found:
            try:
                return await work()
            finally:
                await self.source.close()

        return asyncio.run(run())

    def close(self) -> None:
        self._writer.close()
