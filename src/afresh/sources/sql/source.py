"""The sql source: items are the rows of a SELECT with a key column. One statement polls many items.

The query is used as a subquery: ``SELECT … FROM (query) AS q WHERE q.key = ANY (…)``. If the database cannot
push the condition down into the query (because of a LIMIT or a window function), every statement evaluates
the whole query. Poll such queries rarely, or store their results in a table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

from afresh.sources.capabilities import Capabilities, GroupBackoff, share_cost
from afresh.sources.change_detection import compare_content, most_bytes_here
from afresh.sources.context import SourceContext
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.source import SingleGroupSource
from afresh.sources.sql.canonical_json import row_json
from afresh.sources.sql.connection_thread import GRACE_S, ConnectionThread
from afresh.sources.sql.connections import KeyedRecord
from afresh.sources.sql.cursor_trust import CursorTrust
from afresh.sources.sql.database_url import open_any_address, sqlite_path
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.sessions import KeyListing, PostgresSession, SqliteSession, SqlSession, row_limit
from afresh.sources.sql.settings import SqlSettings
from afresh.sources.watermarks import Watermarks
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing

_MEDIA_TYPE = "application/json"


class SqlSource(SingleGroupSource):
    """A ``BulkSource`` for the rows of a query. Polls use one connection, listings use another. All items
    form one group."""

    def __init__(self, settings: SqlSettings, context: SourceContext) -> None:
        super().__init__(settings)
        self._settings, self._context = settings, context
        address, kind = open_any_address(settings.name, settings.url, context.resolver)
        path = sqlite_path(address.reveal())

        def connect() -> SqlSession:
            if path is not None:
                return SqliteSession(path, settings)
            if kind == "postgresql":
                return PostgresSession(address, settings)
            from afresh.sources.sql.sqlalchemy_session import SqlalchemySession

            return SqlalchemySession(address, settings)

        self._timeout_s = settings.timeout + (0.0 if path is not None else GRACE_S)
        self._polls: ConnectionThread[SqlSession] = ConnectionThread(settings.name, connect, context.clock)
        self._lists: ConnectionThread[SqlSession] = ConnectionThread(settings.name, connect, context.clock)
        self._recipe = settings.recipe
        context.parsers.join()
        self._watermarks = Watermarks()
        self._full_s = float("-inf")
        self._warned = False
        self._trust = CursorTrust()
        self.capabilities = Capabilities(bulk=self, state=self, cursor=self if settings.cursor else None)

    @property
    def is_cursor_proven(self) -> bool:
        return self._trust.is_proven

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """Return nothing, because every process tries to connect by itself."""
        return ()

    def save_state(self) -> bytes:
        """Return how far the cursor proved right, as bytes."""
        return self._trust.pack() if self._settings.cursor else b""

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        del backoffs
        self._trust = CursorTrust.unpack(state) or self._trust

    def ready_s(self, group: str, now_s: float) -> float:
        """Return when windows and back-off allow a poll (Unix seconds); infinite while a statement runs."""
        del group
        return max(self._windows.next_opening_s(now_s), self._polls.ready_s(now_s))

    def bulk_limit(self, group: str) -> int:
        del group
        return self._settings.bulk

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        return (await self.poll_many([lease], conditional=conditional))[0]

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        del conditional
        if not leases:
            return []
        keys = list(dict.fromkeys(lease.key for lease in leases))
        async with self._polls.lock:
            await self._context.admit(leases[0].group)
            start_s = self._context.clock.elapsed_s()
            try:
                rows = await self._polls.run(lambda session: session.rows(keys), self._timeout_s, retry=True)
                found = await asyncio.to_thread(self._results, leases, rows)
            except SqlError as error:
                if not (error.is_key_error or error.is_connection_lost):
                    self._polls.back_off()  # the query itself is wrong, so all polls would fail
                found = [self._failure(error)] * len(leases)
        if len(leases) > 1 and found[0].kind == "refused":
            return await self._poll_halves(leases)
        return share_cost(found, requests=1, seconds=self._context.clock.elapsed_s() - start_s)

    async def listings(self) -> AsyncIterator[Listing]:
        """List the keys of all rows, or of rows with a new cursor value. During a back-off, list nothing."""
        settings, now_s = self._settings, self._context.clock.now_s()
        if self._lists.ready_s(now_s) > now_s:
            return
        full = now_s >= self._full_s or not settings.cursor
        since = None if full else self._watermarks.since

        def read(session: SqlSession) -> tuple[object, KeyListing]:
            # Read the highest value first: rows written after it are read again, and none is missed.
            newest = session.newest() if settings.cursor else None
            return newest, session.list_keys(since)

        async with self._lists.lock:
            await self._context.admit(settings.name)
            start_s = self._context.clock.elapsed_s()
            try:
                newest, rows = await self._lists.run(read, self._timeout_s, retry=True)
            except SqlError as error:
                yield Listing(settings.name, "query", (), complete=False, requests=1, problem=str(error))
                return
        if full and not rows.cut:
            self._full_s = self._next_full_s(now_s)
        self._watermarks = self._watermarks.add(now_s, newest, settings.overlap)
        yield Listing(
            settings.name,
            "query",
            settings.numbers.entries(rows.marks, rows.cells),
            complete=full and not rows.cut,
            requests=1,
            bytes=sum(len(key) + len(mark) for key, mark in rows.marks.items()),
            seconds=self._context.clock.elapsed_s() - start_s,
            problem=self._listing_problem(rows),
        )

    def _next_full_s(self, now_s: float) -> float:
        """Return when to list all rows again (Unix seconds). After the first listing this is early, when
        transactions that were open during that listing have ended."""
        settings, first = self._settings, self._full_s == float("-inf")
        return now_s + (min(settings.overlap, settings.full_every) if first else settings.full_every)

    async def close(self) -> None:
        await self._polls.close()
        await self._lists.close()
        self._context.parsers.leave()

    async def _poll_halves(self, leases: Sequence[Lease]) -> list[Fetched]:
        """Poll each half of the items with its own request, to find the key that does not fit its column."""
        half = len(leases) // 2
        found = [*await self.poll_many(leases[:half]), *await self.poll_many(leases[half:])]
        return [replace(found[0], requests=found[0].requests + 1), *found[1:]]

    def _failure(self, error: SqlError) -> Fetched:
        if error.is_key_error:
            return Fetched("refused", problem=str(error))
        return Fetched("failed", problem=str(error), retry_after_s=self._polls.backoff_s())

    def _results(self, leases: Sequence[Lease], rows: list[KeyedRecord]) -> list[Fetched]:
        if len(rows) >= row_limit([lease.key for lease in leases]):
            words = f"key: {self._settings.key!r} is not unique: {len(rows)} rows for {len(leases)} keys"
            return [Fetched("failed", problem=words)] * len(leases)
        by_key: dict[str, list[KeyedRecord]] = {}
        for row in rows:
            by_key.setdefault(row.key, []).append(row)
        return [self._compare(lease, by_key.get(lease.key, [])) for lease in leases]

    def _compare(self, lease: Lease, rows: list[KeyedRecord]) -> Fetched:
        settings = self._settings
        if not rows:
            return Fetched("gone", problem="the query has no row with this key")
        if len(rows) > 1:
            return Fetched("failed", problem=f"{len(rows)} rows have this key: it must be unique")
        columns = rows[0].fields
        content = row_json(columns.items())
        if len(content) > settings.max_size:
            words = f"the row has {len(content)} bytes, more than {settings.max_size}"
            return Fetched("failed", problem=words, bytes=len(content))
        counted = {name: value for name, value in columns.items() if name not in settings.ignore_columns}
        compared = row_json(counted.items()) if settings.ignore_columns else content
        copy = lease.content_hash, lease.validators
        arguments = compared, _MEDIA_TYPE, self._recipe, *copy, settings.least_similarity
        try:
            small = most_bytes_here(self._recipe, settings.least_similarity)
            found = self._context.parsers.parse_here(
                compare_content, *arguments, small=small, party=lease.group
            )
        except ParseBudgetError as error:
            return Fetched("failed", problem=str(error), bytes=len(content))
        shape = _fingerprint(tuple(counted))
        same_shape = lease.content_hash is None or lease.validators.get("columns") == shape
        fetched = replace(
            found.to_fetched(content, _MEDIA_TYPE),
            comparable=found.comparable and same_shape,
            validators={**found.notes, "columns": shape},
        )
        return self._with_cursor(lease, fetched, columns) if settings.cursor in columns else fetched

    def _with_cursor(self, lease: Lease, fetched: Fetched, columns: Mapping[str, object]) -> Fetched:
        """Learn whether the cursor moved with a change, and return ``fetched`` with the cursor's value."""
        cursor = _fingerprint((repr(columns[self._settings.cursor]),))
        before = lease.validators.get("cursor")
        if before is not None and fetched.kind == "content" and fetched.comparable:
            self._trust = self._trust.add(before != cursor)
        return replace(fetched, validators={**fetched.validators, "cursor": cursor})

    def _listing_problem(self, rows: KeyListing) -> str:
        settings = self._settings
        if rows.cut:
            return f"the query has more than max_rows = {settings.max_rows} rows: the others are not listed"
        if (rows.keyless or rows.refused) and not self._warned:
            self._warned = True  # otherwise every listing would repeat the warning
            column = f"column {settings.key!r}"
            reasons = {
                f"no key ({column} is NULL or empty)": rows.keyless,
                f"a key that is not text ({column} has a BLOB, NUL or invalid UTF-8)": rows.refused,
            }
            return "; ".join(f"{_count_rows(number)} {words}" for words, number in reasons.items() if number)
        return ""


def _count_rows(number: int) -> str:
    return "1 row has" if number == 1 else f"{number:,} rows have"


@lru_cache(maxsize=64)
def _fingerprint(names: tuple[str, ...]) -> str:
    """Return a short hash of column names. Rows with different columns cannot be compared."""
    return blake2b(repr(sorted(names)).encode(), digest_size=6).hexdigest()
