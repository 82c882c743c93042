"""A PostgreSQL schema in the form in which stores are copied."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import ClassVar

from afresh.stores.postgres.database import PostgresDatabase, key_hash
from afresh.stores.postgres.reconnection import Connection, fetch_rows
from afresh.stores.sql.transfer import TABLES, Counters, Homes, SqlTables, same_columns

_ITEM, _AUDIT = TABLES["item"].columns, TABLES["audit"].columns


class PostgresTables(SqlTables[Connection]):
    """A PostgreSQL schema that can be copied from and to."""

    homes: ClassVar[Mapping[str, Homes]] = {
        "item": {
            "item": {**same_columns(*_ITEM[:5], *_ITEM[7:12]), "key_hash": lambda row: key_hash(row[1])},
            "state": {"item_id": "id", **same_columns(*_ITEM[5:7], *_ITEM[12:])},
        },
        "content": {
            "content": same_columns("id", "hash", "size", "refs"),
            "payload": {"content_id": "id", "data": "data"},
        },
        "ledger": {"ledger": {**same_columns(*TABLES["ledger"].columns), "shard": lambda _: 0}},
        # SQLite has no booleans, only 0 and 1.
        "audit": {
            "audit": {**same_columns(*_AUDIT), "changed": lambda row: bool(row[_AUDIT.index("changed")])}
        },
    }
    parameter = "%({})s"

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._schema = database

    def _separate_snapshot(self) -> AbstractContextManager[Connection]:
        return self._schema.separate_snapshot()

    def _insert(
        self, connection: Connection, home: str, columns: list[str], rows: list[list[object]]
    ) -> None:
        with connection.cursor().copy(f"COPY {home} ({', '.join(columns)}) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def _set_counters(self, connection: Connection, counters: Counters) -> None:
        # The sizes are counted here, which others count while they write.
        for name in ("set_marks", "set_counters", "set_pace", "set_sizes"):
            fetch_rows(connection, self.sql[name], dict(counters))

    def _clear(self, connection: Connection, homes: list[str]) -> None:
        fetch_rows(connection, f"TRUNCATE {', '.join(homes)}, size")
