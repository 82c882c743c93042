"""This database in the form that all are copied by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.items import key_hash
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.postgres.state import set_values
from afresh.stores.rows import Row
from afresh.stores.tables import NUMBERED, PACE, TABLES, Marks, page_statement

_SQL = load_blocks("tables.sql")
_ITEM = TABLES["item"].columns
# Each table of the common form, as the tables that hold its columns here; None: worked out from the row.
_HOMES: Mapping[str, Mapping[str, Mapping[str, str | None]]] = {
    "item": {
        "item": {name: name for name in (*_ITEM[:5], *_ITEM[7:12])} | {"key_hash": None},
        "state": {"item_id": "id"} | {name: name for name in (*_ITEM[5:7], *_ITEM[12:])},
    },
    "content": {
        "content": {name: name for name in ("id", "hash", "size", "refs")},
        "payload": {"content_id": "id", "data": "data"},
    },
    "ledger": {"ledger": {name: name for name in TABLES["ledger"].columns} | {"shard": None}},
}
_WORKED_OUT: Mapping[str, Callable[[Row], object]] = {
    "key_hash": lambda row: key_hash(row[1]),
    "shard": lambda _: 0,
}


class PostgresSnapshot:
    """``Snapshot`` of a PostgreSQL schema."""

    def __init__(self, connection: Connection) -> None:
        """Inside a transaction."""
        self._connection = connection

    def rows(self, table: str, after: Row | None) -> list[Row]:
        """The next batch."""
        form = TABLES[table]
        keys = form.columns[: form.keys]
        place = ", ".join(f"%({name})s" for name in keys)
        statement = page_statement(_SQL.get(table, table), form, place, first=after is None)
        return rows(self._connection, statement, dict(zip(keys, after or (), strict=after is not None)))

    def count(self, table: str) -> int:
        """All rows."""
        ((found,),) = rows(self._connection, f"SELECT count(*) FROM {_SQL.get(table, table)}")
        return int(found)

    def marks(self) -> Marks:
        """Last numbers, pace, polls."""
        names = (*NUMBERED, *PACE, "polls", "polled_s")
        return dict(zip(names, rows(self._connection, _SQL["marks"])[0], strict=True))


class PostgresTables:
    """``Tables`` of a PostgreSQL schema."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    @property
    def name(self) -> str:
        """Its address."""
        return self._database.name

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """On a connection of its own: it may take long."""
        with self._database.apart() as connection:
            yield PostgresSnapshot(connection)

    def load(self, table: str, rows: Sequence[Row], values: Mapping[str, bytes | None]) -> None:
        """Add rows."""
        homes = _HOMES.get(table) or {table: {name: name for name in TABLES[table].columns}}

        def work(connection: Connection) -> None:
            for home, columns in homes.items():
                parts = [_part(table, name, origin) for name, origin in columns.items()]
                names = ", ".join(columns)
                with connection.cursor().copy(f"COPY {home} ({names}) FROM STDIN".encode()) as copy:
                    for row in rows:
                        copy.write_row([part(row) for part in parts])
            set_values(connection, values)

        self._database.write(work)

    def finish(self, marks: Marks, values: Mapping[str, bytes | None]) -> None:
        """Set the counters, and count what others count while they write."""

        def work(connection: Connection) -> None:
            for name in ("set_marks", "set_counters", "set_pace", "set_sizes"):
                rows(connection, _SQL[name], dict(marks))
            set_values(connection, values)

        self._database.write(work)

    def clear(self) -> None:
        """Empty every table."""
        homes = [home for table in TABLES for home in _HOMES.get(table, {table: {}})]
        self._database.write(lambda connection: rows(connection, f"TRUNCATE {', '.join(homes)}, size"))


def _part(table: str, name: str, origin: str | None) -> Callable[[Row], object]:
    if origin is None:
        return _WORKED_OUT[name]
    place = TABLES[table].columns.index(origin)
    if (table, name) == ("audit", "changed"):
        return lambda row: bool(row[place])  # SQLite knows 0 and 1 only
    return lambda row: row[place]
