"""The common form in which stores are copied: tables with the same columns for SQLite and PostgreSQL.

A copy must include what the contract of a store cannot write, such as ids, version numbers and the attempts
of events. Therefore each database can be read and filled in this common form, although its own tables differ
from it. Claims and workers are left out, because they belong to processes that use the source of the copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Generic, TypeAlias

from afresh.stores.rows import Row
from afresh.stores.sql.dialect import ConnectionT, SqlDatabase
from afresh.stores.sql.store_parts import SqlState

Counters: TypeAlias = Mapping[str, float]
"""Numbers of a store by name: the last number used in each table of ``NUMBERED``, the place of the hooks in
the feed (``told``) and its ``epoch``, the fields of ``ReservationState``, the number of polls (``polls``) and
the time of the last poll (``polled_s``)."""

NUMBERED = ("item", "lease", "edit", "notice", "event", "audit", "content", "name", "change", "told", "epoch")
RESERVATIONS = ("last_s", "debt_s", "asked_s")


TABLES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("name", "item", "content"), ("id",)),
    **dict.fromkeys(("version", "observation_run"), ("item_id", "number")),
    **dict.fromkeys(("audit", "event"), ("id",)),
    "page_links": ("item_id",),
    "change": ("number",),
    "consumer": ("name",),
    "notice": ("item_id", "origin"),
    "ledger": ("minute", "source_id"),
    "tally": ("source_id", "group_id", "status"),
    "edit": ("number",),
    "lease": ("item_id",),
    "answer": ("item_id", "token"),
    "value": ("name",),
}
"""The tables of the common form with their primary keys, in the order in which they are copied. Their columns
are those that the database has, the key first."""

_STORAGE = {
    "item": ("item", "state"),
    "content": ("content", "payload"),
}  # others have one table of their name
ROWS_AT_ONCE = dict.fromkeys(TABLES, 5000) | {"content": 200, "value": 200}

Computed: TypeAlias = Mapping[str, Mapping[str, tuple[str, Callable[[Any], object]]]]
"""By table, the columns of a database that the common form does not have: each with the column of the common
form and the function from which its value follows."""

LINKS: Computed = {
    "item": {"item_id": ("id", int)},
    "content": {"content_id": ("id", int)},
    "lease": {"worker": ("token", lambda _: "")},  # it belongs to a process that uses the source of the copy
}


class SqlTables(ABC, Generic[ConnectionT]):
    """The tables of a store, which can be read and filled in the common form."""

    computed: ClassVar[Computed] = LINKS
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

    def columns(self, connection: ConnectionT, table: str) -> list[str]:
        """Return the columns of a table of the common form, the primary key first."""
        found, keys = self._columns(connection, self._relation(table)), TABLES[table]
        return [*keys, *(name for name in found if name not in (*keys, *self.computed.get(table, ())))]

    def rows(self, connection: ConnectionT, table: str, after: Row | None) -> list[Row]:
        """Return the next batch of rows with a key above ``after`` (None: the first batch), sorted by key."""
        keys, columns = TABLES[table], self.columns(connection, table)
        place = ", ".join(self.parameter.format(name) for name in keys)
        where = "" if after is None else f" WHERE ({', '.join(keys)}) > ({place})"
        statement = (
            f"SELECT {', '.join(columns)} FROM {self._relation(table)}{where}"
            f" ORDER BY {', '.join(keys)} LIMIT {ROWS_AT_ONCE[table]}"
        )
        given = dict(zip(keys, after or (), strict=after is not None))
        return self.database.rows(connection, statement, given)

    def count(self, connection: ConnectionT) -> int:
        statements = (f"SELECT count(*) FROM {self._relation(table)}" for table in TABLES)
        return sum(int(self.database.rows(connection, text, {})[0][0]) for text in statements)

    def counters(self, connection: ConnectionT) -> Counters:
        """Return the current counters of the database."""
        names = (*NUMBERED, *RESERVATIONS, "polls", "polled_s")
        (row,) = self.database.rows(connection, self.sql["counters"], {})
        return dict(zip(names, row, strict=True))

    def load(
        self, table: str, columns: Sequence[str], rows: Sequence[Row], values: Mapping[str, bytes | None]
    ) -> None:
        """Add rows with these columns to one table and set named values, in one transaction."""
        given = dict(zip(columns, zip(*rows, strict=True), strict=True))
        for name, (origin, compute) in self.computed.get(table, {}).items():
            given[name] = tuple(map(compute, given[origin]))

        def work(connection: ConnectionT) -> None:
            for storage_table in _STORAGE.get(table, (table,)):
                names = self._columns(connection, storage_table)
                self._insert(
                    connection, storage_table, names, zip(*(given[name] for name in names), strict=True)
                )
            self._state.set_in_transaction(connection, values)

        self.database.write(work)

    def finish(self, counters: Counters, values: Mapping[str, bytes | None]) -> None:
        """Set the counters of the database and named values, in one transaction."""

        def work(connection: ConnectionT) -> None:
            self._set_counters(connection, counters)
            self._state.set_in_transaction(connection, values)

        self.database.write(work)

    def clear(self) -> None:
        names = [name for table in TABLES for name in _STORAGE.get(table, (table,))]
        self.database.write(lambda connection: self._clear(connection, names[::-1]))

    def _relation(self, table: str) -> str:
        """Return the SQL after FROM for a table of the common form: a table, or a query in brackets."""
        return self.sql.get(table, table)

    @abstractmethod
    def _columns(self, connection: ConnectionT, relation: str) -> list[str]: ...
    @abstractmethod
    def _insert(
        self, connection: ConnectionT, storage_table: str, columns: Sequence[str], rows: Iterable[Row]
    ) -> None: ...
    @abstractmethod
    def _set_counters(self, connection: ConnectionT, counters: Counters) -> None: ...
    @abstractmethod
    def _clear(self, connection: ConnectionT, storage_tables: list[str]) -> None: ...
