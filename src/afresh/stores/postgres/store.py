"""The store in PostgreSQL, put together from its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afresh.stores.postgres.address import parse_address
from afresh.stores.postgres.commit import commit
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.fleet import PostgresFleet
from afresh.stores.postgres.leases import PostgresLeases
from afresh.stores.postgres.lost_commits import CommitResolver
from afresh.stores.postgres.plan import PostgresPlan
from afresh.stores.postgres.reconnection import Connection
from afresh.stores.postgres.stored_items import PostgresItems
from afresh.stores.postgres.transfer import PostgresTables
from afresh.stores.postgres.upkeep import PostgresUpkeep
from afresh.stores.sql.store import SqlStore
from afresh.stores.store import Retention
from afresh.values.outcome import Outcome, Refusal


class PostgresStore(SqlStore[Connection]):
    """Implements ``Store``: ``PostgresStore("postgresql://user@host/database?schema=afresh")``.

    What the contract leaves open: keys sort by their first 600 characters, and ``free_bytes`` is 0.
    """

    def __init__(
        self,
        url: str,
        *,
        create: bool = True,
        read_only: bool = False,
        timeout_s: float = 5.0,
        retention: Retention | None = None,
    ) -> None:
        """Connect, create or upgrade the store; ``timeout_s`` is how long to wait for other writers."""
        address = parse_address(url)
        database = PostgresDatabase(address, create=create, read_only=read_only, timeout_s=timeout_s)
        super().__init__(database, retention or Retention())
        self._database = database
        self._resolver = CommitResolver(database)
        self.items = PostgresItems(database)
        self.leases = PostgresLeases(database)
        self.plan = PostgresPlan(database)
        self.fleet = PostgresFleet(database)
        self.tables = PostgresTables(database)
        self.upkeep = PostgresUpkeep(database)

    def commit(
        self, outcomes: Sequence[Outcome], state: Mapping[str, bytes | None] | None = None
    ) -> list[Refusal]:
        return self._resolver.commit(
            outcomes, lambda rest: commit(self._database, rest, state or {}, self._retention)
        )

    def close(self) -> None:
        self._database.close()
