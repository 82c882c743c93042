"""Care for the store: check it, give space back, copy it while it works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afresh.stores.addresses import unpacked
from afresh.stores.copying import backup_to_file
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.postgres.tables import PostgresTables
from afresh.values.errors import StoreCorruptError
from afresh.values.stored import StoreStats

_SQL = load_blocks("upkeep.sql")
_CONTRADICTIONS = ("tally", "references", "newest", "orphans", "sizes")


class PostgresUpkeep:
    """``Upkeep`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase, tables: PostgresTables) -> None:
        """On one database."""
        self._database, self._tables = database, tables

    def check(self, sample: int | None = None) -> list[str]:
        """What refers to what, the counts, the contents, all at one moment."""

        def work(connection: Connection) -> list[str]:
            found = [line for name in _CONTRADICTIONS for (line,) in rows(connection, _SQL[name])]
            return [*found, *self._contents(connection, sample)]

        return self._database.snapshot(work)

    def vacuum(self) -> None:
        """Let PostgreSQL clear each table; the ends that become empty go back to the machine."""
        for (table,) in self._database.read(lambda connection: rows(connection, _SQL["tables"])):
            self._database.alone(f"VACUUM (ANALYZE) {table}")

    def backup(self, target: Path) -> None:
        """One moment, as a store in a SQLite file."""
        backup_to_file(self._tables, target)

    def stats(self) -> StoreStats:
        """Sizes; what is free inside the tables PostgreSQL uses again and does not tell."""
        (counts,) = self._database.read(lambda connection: rows(connection, _SQL["stats"]))
        return StoreStats(*(*counts, 0))

    def _contents(self, connection: Connection, sample: int | None) -> Iterator[str]:
        contents = rows(connection, _SQL["stats"])[0][3]
        every = 1 if sample is None else max(1, -(-contents // max(1, sample)))
        last = 0
        while found := rows(connection, _SQL["contents"], {"after": last, "every": every}):
            for last, size, address, data in found:  # noqa: B007
                try:
                    unpacked(data, size, address, self._database.name)
                except StoreCorruptError as error:
                    yield str(error)
