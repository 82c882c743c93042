"""The store in PostgreSQL, put together from its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from afresh.stores.postgres.address import parse_address
from afresh.stores.postgres.commit import commit
from afresh.stores.postgres.copies import PostgresCopies
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.events import PostgresEvents
from afresh.stores.postgres.fleet import PostgresFleet
from afresh.stores.postgres.items import PostgresItems
from afresh.stores.postgres.leases import PostgresLeases
from afresh.stores.postgres.ledger import PostgresLedger
from afresh.stores.postgres.notices import PostgresNotices
from afresh.stores.postgres.observations import PostgresObservations
from afresh.stores.postgres.plan import PostgresPlan
from afresh.stores.postgres.settled import Settled
from afresh.stores.postgres.state import PostgresState
from afresh.stores.postgres.tables import PostgresTables
from afresh.stores.postgres.upkeep import PostgresUpkeep
from afresh.stores.store import Retention
from afresh.values.outcome import Outcome, Refusal


class PostgresStore:
    """``Store`` in PostgreSQL: ``PostgresStore("postgresql://user@host/database?schema=afresh")``.

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
        """Connect, making or upgrading the store; ``timeout_s`` is how long to wait for other writers."""
        self._retention = retention or Retention()
        address = parse_address(url)
        database = PostgresDatabase(address, create=create, read_only=read_only, timeout_s=timeout_s)
        self._database = database
        self._settled = Settled(database)
        self.items = PostgresItems(database)
        self.leases = PostgresLeases(database)
        self.copies = PostgresCopies(database)
        self.plan = PostgresPlan(database)
        self.observations = PostgresObservations(database, self._retention)
        self.events = PostgresEvents(database)
        self.notices = PostgresNotices(database)
        self.ledger = PostgresLedger(database)
        self.state = PostgresState(database)
        self.fleet = PostgresFleet(database)
        self.tables = PostgresTables(database)
        self.upkeep = PostgresUpkeep(database, self.tables)

    def commit(
        self, outcomes: Sequence[Outcome], state: Mapping[str, bytes | None] | None = None
    ) -> list[Refusal]:
        """Make these outcomes part of the store."""
        return self._settled.commit(
            outcomes, lambda rest: commit(self._database, rest, state or {}, self._retention)
        )

    def close(self) -> None:
        """Hang up."""
        self._database.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()
