"""The store in PostgreSQL, composed of its parts.

If the connection is lost during a commit, the commit may have succeeded or not, and a server that is down
cannot be asked. Then the caller gets an error and commits the same outcomes again, perhaps in several calls.
In these calls, ``CommitResolver`` first asks the server, and leaves out the outcomes that are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import RLock
from typing import Unpack

from afresh.stores.postgres.commit import SizeChange, commit, save_contents, save_size_change
from afresh.stores.postgres.connection import Connection, parse_address
from afresh.stores.postgres.database import CommitUnknownError, PostgresDatabase
from afresh.stores.postgres.feed import PostgresFeed
from afresh.stores.postgres.stored_items import PostgresItems, PostgresLeases
from afresh.stores.postgres.upkeep import PostgresTables, PostgresUpkeep
from afresh.stores.rows import policy_columns
from afresh.stores.sql.commit_changes import CompressedCopy
from afresh.stores.sql.moves import SqlMoves
from afresh.stores.sql.store_parts import SqlFleet, SqlPlan, SqlStore
from afresh.stores.store import OpenOptions, Retention
from afresh.values.clock import Clock
from afresh.values.outcome import Outcome, Refusal
from afresh.values.stored import PolicyColumns

_MEASUREMENTS = 5
_RESOLUTION_S = 2e-6  # the database reports microseconds; doubles near the present Unix time are 2⁻²² s apart


class PostgresFleet(SqlFleet[Connection]):
    """Implements ``Fleet`` for workers on several machines; all use the clock of the database server."""

    @property
    def has_own_clock(self) -> bool:
        return True

    def ahead_s(self, clock: Clock) -> float:
        # The server read its clock at some moment of the round trip, so the fastest answer is the most exact.
        passed_s, ahead_s = min(self._measure(clock) for _ in range(_MEASUREMENTS))
        # A difference of less than half a round trip cannot be measured; on one machine it is always less.
        return ahead_s if abs(ahead_s) > passed_s / 2 + _RESOLUTION_S else 0.0

    def _measure(self, clock: Clock) -> tuple[float, float]:
        """Return a tuple (duration of a round trip, how far the server's clock is ahead), in seconds."""
        asked_s, before_s = clock.now_s(), clock.elapsed_s()
        ((server_s,),) = self._fetch("clock")
        passed_s = clock.elapsed_s() - before_s
        # This assumes that the server read its clock in the middle of the round trip.
        return passed_s, server_s - asked_s - passed_s / 2


class PostgresMoves(SqlMoves[Connection]):
    def _save_contents(
        self, connection: Connection, contents: Sequence[CompressedCopy]
    ) -> Mapping[bytes, int]:
        sizes = SizeChange(versions=len(contents))
        found = save_contents(connection, contents, sizes)
        save_size_change(connection, sizes)
        return found


class PostgresPlan(SqlPlan[Connection]):
    def columns(
        self,
        *,
        after_id: int = 0,
        batch: int = 8192,
        whole_batches: bool = False,  # noqa: ARG002 (the driver always reads a whole batch at once)
    ) -> Iterator[PolicyColumns]:
        while found := self._fetch("columns", after=after_id, limit=batch):
            after_id = found[-1][0]
            yield policy_columns(found)

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        return policy_columns(self._fetch("columns_of", ids=list(ids)))


class CommitResolver:
    """Finds out whether commits of this process succeeded whose connection was lost during the commit."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database, self._lock = database, RLock()
        # An outcome is identified by its item id and the token of its lease.
        self._unknown: list[tuple[CommitUnknownError, list[tuple[int, int]]]] = []
        self._committed: dict[tuple[int, int], Refusal | None] = {}

    def commit(
        self, outcomes: Sequence[Outcome], work: Callable[[Sequence[Outcome]], list[Refusal]]
    ) -> list[Refusal]:
        """Call ``work`` to commit the outcomes that are not committed yet; return the refusals of all."""
        with self._lock:
            self._resolve()
            keyed = [((outcome.lease.item_id, outcome.lease.token), outcome) for outcome in outcomes]
            done = [key for key, _ in keyed if key in self._committed]
            rest = [(key, outcome) for key, outcome in keyed if key not in self._committed]
            try:
                refused = work([outcome for _, outcome in rest])
            except CommitUnknownError as error:
                self._unknown.append((error, [key for key, _ in rest]))
                raise
            return [refusal for key in done if (refusal := self._committed.pop(key)) is not None] + refused

    def _resolve(self) -> None:
        while self._unknown:
            unsure, keys = self._unknown[0]
            if self._database.was_committed(unsure.transaction):
                refusals = {refusal.item_id: refusal for refusal in unsure.result}
                self._committed |= {key: refusals.get(key[0]) for key in keys}
            self._unknown.pop(0)


class PostgresStore(SqlStore[Connection]):
    """Implements ``Store``: ``PostgresStore("postgresql://user@host/database?schema=afresh")``.

    It differs from a store in SQLite in two ways: keys are sorted by their first 600 characters only, and
    ``StoreStats.free_bytes`` is always 0."""

    def __init__(
        self, url: str, *, retention: Retention | None = None, **options: Unpack[OpenOptions]
    ) -> None:
        """Connect, create or upgrade the store."""
        database = PostgresDatabase(parse_address(url), **options)
        super().__init__(database, retention or Retention())
        self._resolver = CommitResolver(database)
        self.items = PostgresItems(database)
        self.leases = PostgresLeases(database)
        self.plan = PostgresPlan(database)
        self.fleet = PostgresFleet(database)
        self.feed = PostgresFeed(database)
        self.tables = PostgresTables(database)
        self.upkeep = PostgresUpkeep(database)
        self.moves = PostgresMoves(database, self.items, self.copies)

    def commit(
        self, outcomes: Sequence[Outcome], state: Mapping[str, bytes | None] | None = None
    ) -> list[Refusal]:
        return self._resolver.commit(outcomes, lambda rest: commit(self, rest, state or {}))
