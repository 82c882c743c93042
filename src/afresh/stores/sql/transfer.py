"""The common form in which stores are copied: tables with the same columns for SQLite and PostgreSQL.

A copy must include what the contract of a store cannot write, such as ids, version numbers and the attempts
of events. Therefore each database can be read and filled in this common form, although its own tables differ
from it. Claims and workers are left out, because they belong to processes that use the source of the copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeAlias

from afresh.stores.rows import Row
from afresh.stores.sql.dialect import ConnectionT, SqlDatabase
from afresh.stores.sql.store_parts import SqlState

Counters: TypeAlias = Mapping[str, float]
"""Numbers of a store by name: the last number used in each table of ``NUMBERED``, the fields of
``ReservationState``, the number of polls (``polls``) and the time of the last poll (``polled_s``)."""

NUMBERED = ("item", "lease", "edit", "notice", "event", "audit", "content", "name")
RESERVATIONS = ("last_s", "debt_s", "asked_s")


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of one table of the common form. The first ``keys`` of them are its primary key; ``batch``
    rows are copied at a time."""

    columns: tuple[str, ...]
    keys: int = 1
    batch: int = 5000


def _layout(columns: str, keys: int = 1, batch: int = 5000) -> TableLayout:
    return TableLayout(tuple(columns.split()), keys, batch)


TABLES: Mapping[str, TableLayout] = {
    "name": _layout("id text"),
    "item": _layout(
        "id key labels added_s selector source_id group_id weight cost min_interval_s max_interval_s"
        " prior_rate_per_s status due_s polled_s changed_s polls changes failures version problem belief"
        " validators recent"
    ),
    "content": _layout("id hash size refs data", batch=200),
    "version": _layout("item_id number content_id time_s media_type_id normal_hash", keys=2),
    "observation_run": _layout("item_id number last_us observations data", keys=2),
    "audit": _layout("id item_id time_s elapsed_s changed modified_s count"),
    "event": _layout("id item_id key source_id kind version time_s due_s attempts"),
    "notice": _layout("item_id origin number time_s count", keys=2),
    "ledger": _layout("minute source_id requests bytes seconds money", keys=2),
    "tally": _layout("source_id group_id status items", keys=3),
    "edit": _layout("number item_id"),
    "lease": _layout("item_id token leased_s until_s"),
    "answer": _layout("item_id token time_s text", keys=2),
    "value": _layout("name data", batch=200),
}
"""The tables of the common form, in the order in which they are copied."""

StorageTables: TypeAlias = Mapping[str, Mapping[str, str | Callable[[Row], object]]]
"""The tables of one database that store one table of the common form, by name. Each is a dictionary from its
column to a column of the common form, or to a function that computes the value from a row of that form."""


def same_columns(*names: str) -> dict[str, str]:
    """Return the dictionary for columns that have the same names in the database and in the common form."""
    return {name: name for name in names}


class SqlTables(ABC, Generic[ConnectionT]):
    """The tables of a store, which can be read and filled in the common form."""

    storage_tables: ClassVar[Mapping[str, StorageTables]]
    parameter: ClassVar[str]  # the pattern by which a statement names a parameter

    def __init__(self, database: SqlDatabase[ConnectionT]) -> None:
        self.database, self.sql = database, database.statements("transfer")
        self._state = SqlState(database)

    @property
    def name(self) -> str:
        """The name of the store for messages, without secrets."""
        return self.database.name

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[ConnectionT]:
        """Yield a new connection that sees one state of the database, however long the copying takes."""

    def rows(self, connection: ConnectionT, table: str, after: Row | None) -> list[Row]:
        """Return the next batch of rows with a key above ``after`` (None: the first batch), sorted by key."""
        layout = TABLES[table]
        keys = layout.columns[: layout.keys]
        place = ", ".join(self.parameter.format(name) for name in keys)
        where = "" if after is None else f" WHERE ({', '.join(keys)}) > ({place})"
        statement = (
            f"SELECT {', '.join(layout.columns)} FROM {self._relation(table)}{where}"
            f" ORDER BY {', '.join(keys)} LIMIT {layout.batch}"
        )
        given = dict(zip(keys, after or (), strict=after is not None))
        return self.database.rows(connection, statement, given)

    def count(self, connection: ConnectionT) -> int:
        """Return how many rows all tables have."""
        statements = (f"SELECT count(*) FROM {self._relation(table)}" for table in TABLES)
        return sum(int(self.database.rows(connection, text, {})[0][0]) for text in statements)

    def counters(self, connection: ConnectionT) -> Counters:
        """Return the current counters of the database."""
        names = (*NUMBERED, *RESERVATIONS, "polls", "polled_s")
        (row,) = self.database.rows(connection, self.sql["counters"], {})
        return dict(zip(names, row, strict=True))

    def load(self, table: str, rows: Sequence[Row], values: Mapping[str, bytes | None]) -> None:
        """Add rows to one table and set named values, in one transaction."""
        columns = TABLES[table].columns
        place = {name: index for index, name in enumerate(columns)}

        def work(connection: ConnectionT) -> None:
            for storage_table, origins in self._storage_tables(table).items():
                parts = [place[o] if isinstance(o, str) else o for o in origins.values()]
                table_rows = [[row[p] if isinstance(p, int) else p(row) for p in parts] for row in rows]
                self._insert(connection, storage_table, list(origins), table_rows)
            self._state.set_in_transaction(connection, values)

        self.database.write(work)

    def finish(self, counters: Counters, values: Mapping[str, bytes | None]) -> None:
        """Set the counters of the database and named values, in one transaction."""

        def work(connection: ConnectionT) -> None:
            self._set_counters(connection, counters)
            self._state.set_in_transaction(connection, values)

        self.database.write(work)

    def clear(self) -> None:
        names = [name for table in TABLES for name in self._storage_tables(table)]
        self.database.write(lambda connection: self._clear(connection, names[::-1]))

    def _relation(self, table: str) -> str:
        """Return the SQL after FROM for a table of the common form: a table, or a query in brackets."""
        return self.sql.get(table, table)

    def _storage_tables(self, table: str) -> StorageTables:
        return self.storage_tables.get(table) or {table: same_columns(*TABLES[table].columns)}

    @abstractmethod
    def _insert(
        self, connection: ConnectionT, storage_table: str, columns: list[str], rows: list[list[object]]
    ) -> None: ...
    @abstractmethod
    def _set_counters(self, connection: ConnectionT, counters: Counters) -> None: ...
    @abstractmethod
    def _clear(self, connection: ConnectionT, storage_tables: list[str]) -> None: ...
