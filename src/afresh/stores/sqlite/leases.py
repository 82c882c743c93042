"""Leases in SQLite. They are not synced to disk: on one machine a power loss ends the workers too."""

from __future__ import annotations

import sqlite3

from afresh.stores.rows import lease_from_row
from afresh.stores.sql.database import Parameters
from afresh.stores.sql.leases import SqlLeases
from afresh.values.lease import Lease


class SqliteLeases(SqlLeases[sqlite3.Connection]):
    """Implements ``Leases``."""

    def _lease(self, name: str, given: Parameters) -> list[Lease]:
        def work(connection: sqlite3.Connection) -> list[Lease]:
            token = self._database.take_numbers(connection, "lease", 1)
            self._database.rows(connection, self._sql[name], {**given, "token": token})
            found = self._database.rows(connection, self._sql["leased"], {"token": token})
            return [lease_from_row(row) for row in found]

        return self._database.write(work, durable=False)
