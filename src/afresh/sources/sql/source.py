"""The sql source: rows behind any SELECT with a key column, many of them looked at with one statement.

The query is wrapped, never changed: ``SELECT … FROM (query) AS q WHERE q.key = ANY (…)``. What a database
cannot push down into it (a LIMIT, a window function) it works out in full for every bulk: give such queries
rarely, or a table of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

from afresh.sources.bulk import shared
from afresh.sources.change_detection import compare_content
from afresh.sources.context import SourceContext
from afresh.sources.single_group import SingleGroupSource
from afresh.sources.sql.canonical_json import row_json
from afresh.sources.sql.connection_thread import ConnectionThread
from afresh.sources.sql.database_url import usable_address
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.session import KeyListing, Row, SqlSession, most_rows
from afresh.sources.sql.settings import SqlSettings
from afresh.sources.sql.watermarks import Watermarks
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listed, Listing

_GRACE_S = 5.0  # beyond the server's own time-out
_MEDIA_TYPE = "application/json"


class SqlSource(SingleGroupSource):
    """See ``BulkSource``. One group for all rows; polls on one connection, listings on another."""

    def __init__(self, settings: SqlSettings, context: SourceContext) -> None:
        super().__init__(settings)
        self._settings, self._context = settings, context
        address, path = usable_address(settings.name, settings.url, context.resolver)

        def opened() -> SqlSession:
            if path is not None:
                from afresh.sources.sql.sqlite_session import SqliteSession

                return SqliteSession(path, settings)
            from afresh.sources.sql.postgres_session import PostgresSession

            return PostgresSession(address, settings)

        self._timeout_s = settings.timeout + (0.0 if path is not None else _GRACE_S)
        self._polls: ConnectionThread[SqlSession] = ConnectionThread(settings.name, opened, context.clock)
        self._lists: ConnectionThread[SqlSession] = ConnectionThread(settings.name, opened, context.clock)
        self._recipe = settings.recipe
        self._read = Watermarks()
        self._full_s = float("-inf")
        self._warned = False

    def ready_s(self, group: str, now_s: float) -> float:
        """When a window opens, the database has rested, and the statement before has ended."""
        del group
        return max(self._hours.next_opening_s(now_s), self._polls.ready_s(now_s))

    def bulk_limit(self, group: str) -> int:
        """The setting ``bulk``."""
        del group
        return self._settings.bulk

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Read one row; see ``Source.poll``. There is nothing conditional about it."""
        return (await self.poll_many([lease], conditional=conditional))[0]

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        """Read these rows with one statement; see ``BulkSource``."""
        del conditional
        if not leases:
            return []
        keys = list(dict.fromkeys(lease.key for lease in leases))
        async with self._polls.turn:
            await self._context.admit(leases[0].group)
            start_s = self._context.clock.elapsed_s()
            try:
                rows = await self._polls.run(lambda session: session.rows(keys), self._timeout_s, again=True)
                found = await asyncio.to_thread(self._fetched, leases, rows)
            except SqlError as trouble:
                if not (trouble.about_keys or trouble.lost):
                    self._polls.rest()  # what the query itself is refused for, all rows are
                found = [self._failed(trouble)] * len(leases)
        if len(leases) > 1 and found[0].kind == "refused":
            return await self._one_by_one(leases)
        return shared(found, requests=1, seconds=self._context.clock.elapsed_s() - start_s)

    async def listings(self) -> AsyncIterator[Listing]:
        """All keys of the query or, with a cursor, those whose cursor has moved; none while it rests."""
        settings, now_s = self._settings, self._context.clock.now_s()
        if self._lists.ready_s(now_s) > now_s:
            return
        full = now_s >= self._full_s or not settings.cursor
        since = None if full else self._read.since

        def read(session: SqlSession) -> tuple[object, KeyListing]:
            # The highest value first: what is written in between is then read again rather than missed.
            newest = session.newest() if settings.cursor else None
            return newest, session.listed(since)

        async with self._lists.turn:
            await self._context.admit(settings.name)
            start_s = self._context.clock.elapsed_s()
            try:
                newest, rows = await self._lists.run(read, self._timeout_s, again=True)
            except SqlError as trouble:
                yield Listing(settings.name, "query", (), complete=False, requests=1, problem=str(trouble))
                return
        if full and not rows.cut:
            self._full_s = self._next_full_s(now_s)
        self._read = self._read.added(now_s, newest, settings.overlap)
        yield Listing(
            settings.name,
            "query",
            tuple(Listed(key, mark) for key, mark in rows.marks.items()),
            complete=full and not rows.cut,
            requests=1,
            bytes=sum(len(key) + len(mark) for key, mark in rows.marks.items()),
            seconds=self._context.clock.elapsed_s() - start_s,
            problem=self._listing_problem(rows),
        )

    def _next_full_s(self, now_s: float) -> float:
        """After the first, once more as soon as transactions open then have ended; later at leisure."""
        settings, first = self._settings, self._full_s == float("-inf")
        return now_s + (min(settings.overlap, settings.full_every) if first else settings.full_every)

    async def close(self) -> None:
        """Let go of both connections."""
        await self._polls.close()
        await self._lists.close()

    async def _one_by_one(self, leases: Sequence[Lease]) -> list[Fetched]:
        """One key is no value of its type: half as many at a time, until it is alone."""
        half = len(leases) // 2
        found = [*await self.poll_many(leases[:half]), *await self.poll_many(leases[half:])]
        return [replace(found[0], requests=found[0].requests + 1), *found[1:]]

    def _failed(self, trouble: SqlError) -> Fetched:
        if trouble.about_keys:
            return Fetched("refused", problem=str(trouble))
        now_s = self._context.clock.now_s()
        rest_s = self._polls.ready_s(now_s) - now_s
        asked_s = rest_s if 0 < rest_s < float("inf") else None
        return Fetched("failed", problem=str(trouble), retry_after_s=asked_s)

    def _fetched(self, leases: Sequence[Lease], rows: list[Row]) -> list[Fetched]:
        if len(rows) >= most_rows([lease.key for lease in leases]):
            words = f"key: {self._settings.key!r} is not unique: {len(rows)} rows for {len(leases)} keys"
            return [Fetched("failed", problem=words)] * len(leases)
        by_key: dict[str, list[Row]] = {}
        for row in rows:
            by_key.setdefault(row.key, []).append(row)
        return [self._judged(lease, by_key.get(lease.key, [])) for lease in leases]

    def _judged(self, lease: Lease, rows: list[Row]) -> Fetched:
        settings = self._settings
        if not rows:
            return Fetched("gone", problem="the query has no row with this key")
        if len(rows) > 1:
            return Fetched("failed", problem=f"{len(rows)} rows have this key: it must be unique")
        columns = rows[0].columns
        content = row_json(columns)
        if len(content) > settings.max_size:
            words = f"the row has {len(content)} bytes, more than {settings.max_size}"
            return Fetched("failed", problem=words, bytes=len(content))
        counted = tuple(column for column in columns if column[0] not in settings.ignore_columns)
        found = compare_content(
            row_json(counted) if settings.ignore_columns else content,
            _MEDIA_TYPE,
            self._recipe,
            held_hash=lease.content_hash,
            held_notes=lease.validators,
            near_duplicate=settings.near_duplicate,
        )
        shape = _fingerprint(tuple(name for name, _ in counted))
        same_shape = lease.content_hash is None or lease.validators.get("columns") == shape
        return replace(
            found.fetched(content, _MEDIA_TYPE),
            comparable=found.comparable and same_shape,
            validators={**found.notes, "columns": shape},
        )

    def _listing_problem(self, rows: KeyListing) -> str:
        settings = self._settings
        if rows.cut:
            return f"the query has more than max_rows = {settings.max_rows} rows: the others are not listed"
        if rows.keyless and not self._warned:
            self._warned = True  # every listing finds them again
            found = "1 row has" if rows.keyless == 1 else f"{rows.keyless:,} rows have"
            return f"{found} no key (column {settings.key!r} is NULL or empty)"
        return ""


@lru_cache(maxsize=64)
def _fingerprint(names: tuple[str, ...]) -> str:
    """A short name of a set of columns: rows of other columns cannot be compared."""
    return blake2b(repr(sorted(names)).encode(), digest_size=6).hexdigest()
