"""The store in one SQLite file, put together from its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from afresh.stores.sqlite.commit import commit
from afresh.stores.sqlite.copies import SqliteCopies
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.events import SqliteEvents
from afresh.stores.sqlite.fleet import SqliteFleet
from afresh.stores.sqlite.items import SqliteItems
from afresh.stores.sqlite.leases import SqliteLeases
from afresh.stores.sqlite.ledger import SqliteLedger
from afresh.stores.sqlite.notices import SqliteNotices
from afresh.stores.sqlite.observations import SqliteObservations
from afresh.stores.sqlite.plan import SqlitePlan
from afresh.stores.sqlite.state import SqliteState
from afresh.stores.sqlite.tables import SqliteTables
from afresh.stores.sqlite.upkeep import SqliteUpkeep
from afresh.stores.store import Retention
from afresh.values.outcome import Outcome, Refusal


class SqliteStore:
    """``Store`` in SQLite.

    >>> import tempfile
    >>> from afresh.values.items import NewItem
    >>> with tempfile.TemporaryDirectory() as folder, SqliteStore(Path(folder) / "store.db") as store:
    ...     new = store.items.add([NewItem("https://example.org/", "web", "example.org")], now_s=0.0)
    ...     [lease.key for lease in store.leases.take_due(now_s=1.0, limit=10, duration_s=60.0)]
    ['https://example.org/']
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        timeout_s: float = 5.0,
        retention: Retention | None = None,
    ) -> None:
        """Open the file, making or upgrading it; ``timeout_s`` is how long to wait for other writers."""
        self._retention = retention or Retention()
        database = SqliteDatabase(path, create=create, read_only=read_only, timeout_s=timeout_s)
        self._database = database
        self.items = SqliteItems(database)
        self.leases = SqliteLeases(database)
        self.copies = SqliteCopies(database)
        self.plan = SqlitePlan(database)
        self.observations = SqliteObservations(database, self._retention)
        self.events = SqliteEvents(database)
        self.notices = SqliteNotices(database)
        self.ledger = SqliteLedger(database)
        self.state = SqliteState(database)
        self.fleet = SqliteFleet(database)
        self.tables = SqliteTables(database)
        self.upkeep = SqliteUpkeep(database)

    def commit(
        self, outcomes: Sequence[Outcome], state: Mapping[str, bytes | None] | None = None
    ) -> list[Refusal]:
        """Make these outcomes part of the store."""
        return commit(self._database, outcomes, state or {}, self._retention)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()
