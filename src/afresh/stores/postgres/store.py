"""The store in PostgreSQL, put together from its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afresh.stores.postgres.address import parse_address
from afresh.stores.postgres.commit import commit
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.fleet import PostgresFleet
from afresh.stores.postgres.items import PostgresItems
from afresh.stores.postgres.leases import PostgresLeases
from afresh.stores.postgres.lost_commits import CommitResolver
from afresh.stores.postgres.plan import PostgresPlan
from afresh.stores.postgres.tables import PostgresTables
from afresh.stores.postgres.upkeep import PostgresUpkeep
from afresh.stores.sql.copies import SqlCopies
from afresh.stores.sql.events import SqlEvents
from afresh.stores.sql.ledger import SqlLedger
from afresh.stores.sql.notices import SqlNotices
from afresh.stores.sql.observations import SqlObservations
from afresh.stores.sql.state import SqlState
from afresh.stores.store import ClosedOnExit, Retention
from afresh.values.outcome import Outcome, Refusal


class PostgresStore(ClosedOnExit):
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
        self._retention = retention or Retention()
        address = parse_address(url)
        database = PostgresDatabase(address, create=create, read_only=read_only, timeout_s=timeout_s)
        self._database = database
        self._resolver = CommitResolver(database)
        self.items = PostgresItems(database)
        self.leases = PostgresLeases(database)
        self.copies = SqlCopies(database)
        self.plan = PostgresPlan(database)
        self.observations = SqlObservations(database, self._retention)
        self.events = SqlEvents(database)
        self.notices = SqlNotices(database)
        self.ledger = SqlLedger(database)
        self.state = SqlState(database)
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
