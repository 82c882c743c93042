"""A database table as a search server, with the full-text search of SQLite (FTS5) or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from afresh.probes.keyword_index import Keyword
from afresh.sources.context import SourceContext
from afresh.sources.search.search_server import SearchServer
from afresh.sources.search.settings import SearchSettings
from afresh.sources.secrets import Secret
from afresh.sources.sql.connection_thread import GRACE_S, ConnectionThread
from afresh.sources.sql.connections import (
    KeyedRecord,
    PostgresConnection,
    SqliteConnection,
    keyed_records,
)
from afresh.sources.sql.database_url import usable_address
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.sessions import quote_identifier
from afresh.sources.web_api.records_answer import RecordsAnswer

_LOCK_S = 5.0
_TWO = 2  # two rows show that a key is not unique

Found: TypeAlias = tuple[list[KeyedRecord], int]
"""A tuple (records on a page, number of all matching records)."""


class SqliteSearchSession(SqliteConnection):
    """Searches a table created by ``CREATE VIRTUAL TABLE … USING fts5``, with columns for key and fields."""

    def __init__(self, path: Path, settings: SearchSettings) -> None:
        super().__init__(path)
        self._settings = settings
        self._table = quote_identifier(settings.table)
        names = ", ".join(quote_identifier(name) for name in settings.fields)
        self._columns = f"CAST({quote_identifier(settings.key)} AS TEXT), {names or '*'}"

    def page(self, keywords: Sequence[Keyword], number: int) -> Found:
        """Return page ``number``, counted from 1, of the records that match all keywords."""
        query = " AND ".join(_fts_term(keyword) for keyword in keywords)
        count, offset = page_rows(self._settings, number)
        where = f"FROM {self._table} WHERE {self._table} MATCH ?"
        total = self.table(f"SELECT count(*) {where}", (query,))[1][0][0]
        text = f"SELECT {self._columns} {where} ORDER BY rowid LIMIT {count} OFFSET {offset}"
        return keyed_records(self.table(text, (query,))), total

    def record(self, key: str) -> Found:
        """Return the records with this key. Two records are enough to show that the key is not unique."""
        name = quote_identifier(self._settings.key)
        text = f"SELECT {self._columns} FROM {self._table} WHERE CAST({name} AS TEXT) = ? LIMIT {_TWO}"
        rows = keyed_records(self.table(text, (key,)))
        return rows, len(rows)


class PostgresSearchSession(PostgresConnection):
    """Searches a PostgreSQL table. This is fast if there is an index on the searched expressions."""

    def __init__(self, address: Secret, settings: SearchSettings) -> None:
        super().__init__(address, timeout_s=settings.timeout, lock_s=_LOCK_S, read_only=True)
        self._settings = settings
        self._table = ".".join(quote_identifier(part) for part in settings.table.split("."))
        names = ", ".join(quote_identifier(name) for name in settings.fields)
        self._columns = f"{quote_identifier(settings.key)}::text, {names or '*'}"

    def page(self, keywords: Sequence[Keyword], number: int) -> Found:
        settings = self._settings
        count, offset = page_rows(settings, number)
        where = " AND ".join(f"{self._vector(word)} @@ phraseto_tsquery('simple', %s)" for word in keywords)
        values = tuple(keyword.written for keyword in keywords)
        total = self.query(f"SELECT count(*) FROM {self._table} WHERE {where}", values)[0][0]
        text = (
            f"SELECT {self._columns} FROM {self._table} WHERE {where} "
            f"ORDER BY {quote_identifier(settings.key)} LIMIT {count} OFFSET {offset}"
        )
        return keyed_records(self.table(text, values)), int(total)

    def record(self, key: str) -> Found:
        name = quote_identifier(self._settings.key)
        text = f"SELECT {self._columns} FROM {self._table} WHERE {name}::text = %s LIMIT {_TWO}"
        rows = keyed_records(self.table(text, (key,)))
        return rows, len(rows)

    def _vector(self, keyword: Keyword) -> str:
        names = [keyword.attribute] if keyword.attribute else [one.name for one in self._settings.attributes]
        text = " || ' ' || ".join(f"coalesce({quote_identifier(name)}::text, '')" for name in names)
        return f"to_tsvector('simple', {text})"


SearchSession: TypeAlias = SqliteSearchSession | PostgresSearchSession


class SqlSearchServer(SearchServer):
    """A ``SearchServer`` that searches a table of SQLite or PostgreSQL."""

    def __init__(self, settings: SearchSettings, context: SourceContext) -> None:
        self._settings, self._context = settings, context
        self.page_size = settings.page_size
        address, path = usable_address(settings.name, settings.place, context.resolver)

        def connect() -> SearchSession:
            return SqliteSearchSession(path, settings) if path else PostgresSearchSession(address, settings)

        self._thread: ConnectionThread[SearchSession] = ConnectionThread(
            settings.name, connect, context.clock
        )

    def wait_s(self) -> float:
        now_s = self._context.clock.now_s()
        return self._thread.ready_s(now_s) - now_s

    async def page(self, keywords: Sequence[Keyword], number: int) -> RecordsAnswer:
        return await self._ask(lambda session: session.page(keywords, number))

    async def look_up(self, keys: Sequence[str]) -> RecordsAnswer:
        return await self._ask(lambda session: session.record(keys[0]))

    async def close(self) -> None:
        await self._thread.close()

    async def _ask(self, work: Callable[[SearchSession], Found]) -> RecordsAnswer:
        clock = self._context.clock
        async with self._thread.lock:
            await self._context.admit(self._settings.name)
            start_s = clock.elapsed_s()
            try:
                records, total = await self._thread.run(work, self._settings.timeout + GRACE_S, retry=True)
            except SqlError as error:
                return RecordsAnswer(problem=str(error), seconds=clock.elapsed_s() - start_s)
        return RecordsAnswer(tuple(records), total, seconds=clock.elapsed_s() - start_s)


def page_rows(settings: SearchSettings, number: int) -> tuple[int, int]:
    """Return a tuple (rows on page ``number``, rows before it), within the limit of results of a query.

    >>> settings = SearchSettings(name="s", relation="r.csv", key="id", keywords="title",
    ...     server="sqlite:a.db", table="t", page_size=10, limit=15)
    >>> page_rows(settings, 2)
    (5, 10)
    """
    offset = (number - 1) * settings.page_size
    left = settings.page_size if settings.limit is None else max(settings.limit - offset, 0)
    return min(settings.page_size, left), offset


def _fts_term(keyword: Keyword) -> str:
    text = quote_identifier(keyword.written)
    return f"{quote_identifier(keyword.attribute)} : {text}" if keyword.attribute else text
