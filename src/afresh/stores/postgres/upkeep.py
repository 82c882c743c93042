"""Care for a PostgreSQL store: check it, give space back, copy it while it works."""

from __future__ import annotations

from pathlib import Path

from afresh.stores.copying import backup_to_file
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.reconnection import Connection
from afresh.stores.postgres.transfer import PostgresTables
from afresh.stores.sql.upkeep import SqlUpkeep
from afresh.values.stored import StoreStats


class PostgresUpkeep(SqlUpkeep[Connection]):
    """Implements ``Upkeep``; backups are SQLite files."""

    contradictions = ("tally", "references", "newest", "orphans", "sizes")

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._schema = database

    def check(self, sample: int | None = None) -> list[str]:
        return self._database.snapshot(lambda connection: list(self._problems(connection, sample)))

    def vacuum(self) -> None:
        # PostgreSQL gives the empty ends of tables back to the machine.
        for (table,) in self._database.fetch(self._sql["tables"]):
            self._schema.execute_outside_transaction(f"VACUUM (ANALYZE) {table}")

    def backup(self, target: Path) -> None:
        backup_to_file(PostgresTables(self._schema), target)

    def stats(self) -> StoreStats:
        # PostgreSQL uses the free space inside its tables again and does not tell how much there is.
        (counts,) = self._database.fetch(self._sql["stats"])
        return StoreStats(*(*counts, 0))

    def _count_contents(self, connection: Connection) -> int:
        return int(self._database.rows(connection, self._sql["stats"], {})[0][3])
