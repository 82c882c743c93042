"""Leases in PostgreSQL.

They are safe from power loss, unlike those in SQLite: here the server may be killed alone while the workers
live on, and a lease that it forgot would be given to a second worker.
"""

from __future__ import annotations

from afresh.stores.postgres.reconnection import Connection
from afresh.stores.rows import lease_from_row
from afresh.stores.sql.database import Parameters
from afresh.stores.sql.leases import SqlLeases
from afresh.values.lease import Lease


class PostgresLeases(SqlLeases[Connection]):
    """Implements ``Leases``."""

    def _lease(self, name: str, given: Parameters) -> list[Lease]:
        def work(connection: Connection) -> list[Lease]:
            free = self._ids(connection, name, given)
            if not free:
                return []
            taken = self._ids(connection, "lease_free", {**given, "ids": free})
            found = self._database.rows(connection, self._sql["leased"], {"ids": taken})
            return [lease_from_row(row) for row in found]

        return self._database.write(work)

    def _ids(self, connection: Connection, name: str, given: Parameters) -> list[int]:
        return [item_id for (item_id,) in self._database.rows(connection, self._sql[name], given)]
