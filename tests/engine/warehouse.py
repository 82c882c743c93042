"""A database with views, an engine that runs over it, and a script that goes on beside the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
from tests import waiting
from tests.engine.run_through import run_through
from tests.servers.postgres import PostgresServer

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.reporting.watched_items import WatchedItem
from afresh.engine.runner.run_context import StopSignal
from afresh.engine.settings.parsing import parse_settings
from afresh.values.items import Item

Script = Callable[["House"], Awaitable[None]]

TABLES = """
    DROP SCHEMA public CASCADE;
    CREATE SCHEMA public;
    CREATE TABLE a (id int PRIMARY KEY, x int);
    CREATE TABLE b (id int PRIMARY KEY, x int);
    CREATE MATERIALIZED VIEW of_a AS SELECT * FROM a;
    CREATE UNIQUE INDEX ON of_a (id);
    CREATE MATERIALIZED VIEW of_b AS SELECT count(*) AS n FROM b;
    CREATE MATERIALIZED VIEW of_both AS SELECT of_a.id FROM of_a JOIN b USING (id);
"""
OF_A, OF_B, OF_BOTH = "public.of_a", "public.of_b", "public.of_both"


class House:
    """Tables and views on a server, and the folder of a mirror of them."""

    def __init__(self, server: PostgresServer, folder: Path, database: str = "postgres") -> None:
        self.server, self.folder, self.database = server, folder, database
        self._numbers = iter(range(1, 1_000_000))
        self.run("SET client_min_messages = warning", TABLES)

    def run(self, *statements: str) -> None:
        """Run statements, whose rows are counted at once."""
        with psycopg.connect(self.server.url(self.database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())
            connection.execute("SELECT pg_stat_force_next_flush()")

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """What a statement gives."""
        with psycopg.connect(self.server.url(self.database), autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def write(self, table: str) -> None:
        """One more row."""
        number = next(self._numbers)
        self.run(f"INSERT INTO {table} VALUES ({number}, {number})")

    def engine(
        self, *, url: str = "", budget: str = "", source: str = "", retry_first: str = "0.5s"
    ) -> Engine:
        """An engine over the views; more lines of settings may be given."""
        text = f"""
            [budget]
            requests = "100/s"
            {budget}
            [run]
            retry_first = "{retry_first}"
            [[source]]
            name = "house"
            kind = "view"
            url = "{url or self.server.url(self.database)}"
            look_every = "0.1s"
            {source}
        """
        return make_engine(parse_settings(text), self.folder, seed=1)

    def beside(self, script: Script, **settings: str) -> None:
        """Run an engine; while it runs follow the script, then stop it."""
        with self.engine(**settings) as engine:
            asyncio.run(self._both(engine, script))

    async def _both(self, engine: Engine, script: Script) -> None:
        stop = StopSignal()
        running = asyncio.create_task(run_through(engine, stop=stop))
        scripted = asyncio.create_task(_started(script(self)))
        await asyncio.wait({running, scripted}, return_when=asyncio.FIRST_COMPLETED)
        stop.request()
        await running
        await scripted

    def views(self) -> dict[str, WatchedItem]:
        """What ``status`` says of the views."""
        with self.engine() as engine:
            return {view.item: view for view in engine.status().views}

    def item(self, key: str) -> Item:
        """What the store says of a view."""
        with self.engine() as engine:
            found = engine.store.items.get(key)
        assert found is not None
        return found

    def trouble(self) -> str:
        """What ``status`` says of the source."""
        with self.engine() as engine:
            return "; ".join(one.problem for one in engine.status().troubles)

    def words(self, key: str) -> str:
        """What ``why`` says of a view."""
        with self.engine() as engine:
            return "; ".join(engine.why(key).reasons)

    async def fresh(self, *keys: str) -> None:
        """Wait until these views, by default all, are known to be fresh."""
        wanted = keys or (OF_A, OF_B, OF_BOTH)
        await until(lambda: {key for key in wanted if self._is_fresh(key)} == set(wanted))

    def _is_fresh(self, key: str) -> bool:
        view = self.views().get(key)
        return view is not None and view.state == "fresh"


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something to become true; the engine goes on meanwhile."""
    await asyncio.to_thread(waiting.until, condition)


async def _started(script: Awaitable[None]) -> None:
    await script
