"""The groups of a store that are the same class in every SQL database."""

from __future__ import annotations

from typing import Generic

from afresh.stores.sql.copies import SqlCopies
from afresh.stores.sql.database import ConnectionT, SqlDatabase
from afresh.stores.sql.events import SqlEvents
from afresh.stores.sql.ledger import SqlLedger
from afresh.stores.sql.notices import SqlNotices
from afresh.stores.sql.observations import SqlObservations
from afresh.stores.sql.state import SqlState
from afresh.stores.store import ClosedOnExit, Retention


class SqlStore(ClosedOnExit, Generic[ConnectionT]):
    """What both SQL stores have; each adds the groups that its database does in its own way."""

    def __init__(self, database: SqlDatabase[ConnectionT], retention: Retention) -> None:
        self._retention = retention
        self.copies = SqlCopies(database)
        self.observations = SqlObservations(database, retention)
        self.events = SqlEvents(database)
        self.notices = SqlNotices(database)
        self.ledger = SqlLedger(database)
        self.state = SqlState(database)
