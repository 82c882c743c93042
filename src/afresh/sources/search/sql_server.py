"""A table of a database as a search server: FTS5 of SQLite, full text of PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

from afresh.probes.keyword_index import Keyword
from afresh.sources.context import SourceContext
from afresh.sources.remembering import Rest
from afresh.sources.search.server import Results, SearchRecord
from afresh.sources.search.settings import SearchSettings
from afresh.sources.secrets import Secret
from afresh.sources.sql.connection_thread import ConnectionThread
from afresh.sources.sql.database_url import usable_address
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.postgres_connection import PostgresConnection
from afresh.sources.sql.session import quoted
from afresh.sources.sql.sqlite_file import open_read_only, translate_errors

_GRACE_S = 5.0  # beyond the server's own time-out
_LOCK_S = 5.0
_TWO = 2  # rows of one key that are read: enough to see that it is not unique

Found: TypeAlias = tuple[list[SearchRecord], int | None]


class SearchSession(Protocol):
    """One connection, used by one thread at a time, but for ``interrupt``; may raise ``SqlError``."""

    def page(self, keywords: Sequence[Keyword], number: int) -> Found:
        """A page, and how many match in all."""

    def record(self, key: str) -> Found:
        """The records of a key."""

    def interrupt(self) -> None:
        """End the statement under way."""

    def close(self) -> None:
        """Let go."""


class SqlSearch:
    """See ``SearchServer``."""

    def __init__(self, settings: SearchSettings, context: SourceContext) -> None:
        self._settings, self._context = settings, context
        address, path = usable_address(settings.name, settings.server, context.resolver)

        def opened() -> SearchSession:
            return SqliteSearchSession(path, settings) if path else PostgresSearchSession(address, settings)

        self._lane: ConnectionThread[SearchSession] = ConnectionThread(settings.name, opened, context.clock)

    def wait_s(self) -> float:
        """See ``SearchServer``."""
        now_s = self._context.clock.now_s()
        return self._lane.ready_s(now_s) - now_s

    async def page(self, keywords: Sequence[Keyword], number: int) -> Results:
        """See ``SearchServer``."""
        return await self._ask(lambda session: session.page(keywords, number))

    async def look_up(self, key: str) -> Results:
        """See ``SearchServer``."""
        return await self._ask(lambda session: session.record(key))

    def rests(self) -> tuple[Rest, ...]:
        """The lane keeps its own."""
        return ()

    def recall(self, rests: Sequence[Rest]) -> None:
        """A connection is tried anew by every process."""
        del rests

    async def close(self) -> None:
        """See ``SearchServer``."""
        await self._lane.close()

    async def _ask(self, work: Callable[[SearchSession], Found]) -> Results:
        clock = self._context.clock
        async with self._lane.turn:
            await self._context.admit(self._settings.name)
            start_s = clock.elapsed_s()
            try:
                records, total = await self._lane.run(work, self._settings.timeout + _GRACE_S, again=True)
            except SqlError as trouble:
                return Results(problem=str(trouble), seconds=clock.elapsed_s() - start_s)
        return Results(tuple(records), total, seconds=clock.elapsed_s() - start_s)


class SqliteSearchSession:
    """A table made by ``CREATE VIRTUAL TABLE … USING fts5``, its keys and fields among its columns."""

    def __init__(self, path: Path, settings: SearchSettings) -> None:
        self._settings = settings
        self._connection = open_read_only(path)
        self._table = quoted(settings.table)
        names = ", ".join(quoted(name) for name in settings.fields)
        self._columns = f"CAST({quoted(settings.key)} AS TEXT), {names or '*'}"

    def page(self, keywords: Sequence[Keyword], number: int) -> Found:
        """See ``SearchSession``."""
        settings, query = self._settings, " AND ".join(_fts_term(keyword) for keyword in keywords)
        count, offset = page_rows(settings, number)
        where = f"FROM {self._table} WHERE {self._table} MATCH ?"
        total = self._rows(f"SELECT count(*) {where}", (query,))[0].fields["count(*)"]
        text = f"SELECT {self._columns} {where} ORDER BY rowid LIMIT {count} OFFSET {offset}"
        return self._rows(text, (query,)), int(str(total))

    def record(self, key: str) -> Found:
        """See ``SearchSession``."""
        name = quoted(self._settings.key)
        text = f"SELECT {self._columns} FROM {self._table} WHERE CAST({name} AS TEXT) = ? LIMIT {_TWO}"
        rows = self._rows(text, (key,))
        return rows, len(rows)

    def interrupt(self) -> None:
        """See ``SearchSession``."""
        with suppress(sqlite3.Error):
            self._connection.interrupt()

    def close(self) -> None:
        """See ``SearchSession``."""
        self._connection.close()

    def _rows(self, text: str, values: tuple[object, ...]) -> list[SearchRecord]:
        with translate_errors():
            cursor = self._connection.execute(text, values)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        alone = len(names) == 1
        return [
            SearchRecord(str(row[0]), dict(zip(names[not alone :], row[not alone :], strict=True)))
            for row in rows
        ]


class PostgresSearchSession:
    """A table of PostgreSQL; an index on the expressions that are searched makes it quick."""

    def __init__(self, address: Secret, settings: SearchSettings) -> None:
        self._settings = settings
        self._connection = PostgresConnection(
            address, timeout_s=settings.timeout, lock_s=_LOCK_S, read_only=True
        )
        self._table = ".".join(quoted(part) for part in settings.table.split("."))
        names = ", ".join(quoted(name) for name in settings.fields)
        self._columns = f"{quoted(settings.key)}::text, {names or '*'}"

    def page(self, keywords: Sequence[Keyword], number: int) -> Found:
        """See ``SearchSession``."""
        settings = self._settings
        count, offset = page_rows(settings, number)
        where = " AND ".join(f"{self._vector(word)} @@ phraseto_tsquery('simple', %s)" for word in keywords)
        values = tuple(keyword.text for keyword in keywords)
        total = self._connection.rows(f"SELECT count(*) FROM {self._table} WHERE {where}", values)[0][0]
        text = (
            f"SELECT {self._columns} FROM {self._table} WHERE {where} "
            f"ORDER BY {quoted(settings.key)} LIMIT {count} OFFSET {offset}"
        )
        return self._records(text, values), int(total)

    def record(self, key: str) -> Found:
        """See ``SearchSession``."""
        name = quoted(self._settings.key)
        text = f"SELECT {self._columns} FROM {self._table} WHERE {name}::text = %s LIMIT {_TWO}"
        rows = self._records(text, (key,))
        return rows, len(rows)

    def interrupt(self) -> None:
        """See ``SearchSession``."""
        self._connection.interrupt()

    def close(self) -> None:
        """See ``SearchSession``."""
        self._connection.close()

    def _vector(self, keyword: Keyword) -> str:
        names = [keyword.attribute] if keyword.attribute else [one.name for one in self._settings.attributes]
        text = " || ' ' || ".join(f"coalesce({quoted(name)}::text, '')" for name in names)
        return f"to_tsvector('simple', {text})"

    def _records(self, text: str, values: tuple[object, ...]) -> list[SearchRecord]:
        names, rows = self._connection.table(text, values)
        return [SearchRecord(row[0], dict(zip(names[1:], row[1:], strict=True))) for row in rows]


def page_rows(settings: SearchSettings, number: int) -> tuple[int, int]:
    """How many rows a page has, and how many stand before it, within the limit of a query.

    >>> settings = SearchSettings(name="s", relation="r.csv", key="id", keywords="title",
    ...     server="sqlite:a.db", table="t", page_size=10, limit=15)
    >>> page_rows(settings, 2)
    (5, 10)
    """
    offset = (number - 1) * settings.page_size
    left = settings.page_size if settings.limit is None else max(settings.limit - offset, 0)
    return min(settings.page_size, left), offset


def _fts_term(keyword: Keyword) -> str:
    text = quoted(keyword.text)
    return f"{quoted(keyword.attribute)} : {text}" if keyword.attribute else text
