"""One interface to SQLite and PostgreSQL, for the code that both databases share.

They differ in how a statement names its parameters (``:name``, ``%(name)s``), how it receives a list (JSON,
an array), and how it receives many rows (one execution per row, one statement with an array per column). The
statements are in ``.sql`` files of each package, under the same names.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from afresh.stores.rows import COLUMNS, Row

_BLOCK = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
T = TypeVar("T")
_TALLY = ("sources", "groups", "statuses", "items")


def parse_statements(text: str) -> dict[str, str]:
    """Return the SQL statements of a file by name. Each statement follows a line ``-- name: NAME``. The keys
    of ``rows.COLUMNS`` stand for lists of columns.

    >>> parse_statements("-- Two.\\n-- name: one\\nSELECT 1;\\n-- name: two\\nSELECT 2;\\n")
    {'one': 'SELECT 1', 'two': 'SELECT 2'}
    """
    for name, columns in COLUMNS.items():
        text = text.replace(name, columns)
    parts = _BLOCK.split(text)
    return {name: body.strip().removesuffix(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def load_statements(package: str, name: str) -> dict[str, str]:
    return parse_statements(files(package).joinpath(f"{name}.sql").read_text(encoding="utf-8"))


def load_migrations(package: str) -> tuple[str, ...]:
    """Return the migration scripts (``0001_name.sql``, …) of a package, in the order of their numbers."""
    folder = files(package).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


ConnectionT = TypeVar("ConnectionT")
Parameters: TypeAlias = Mapping[str, Any]
Fetch: TypeAlias = Callable[[str, Parameters], list[Row]]
ItemCounts: TypeAlias = Counter[tuple[int, int, int]]
"""The change in the number of items, by (source id, group id, status code)."""


class SqlDatabase(ABC, Generic[ConnectionT]):
    """One open database, which any thread may use. ``name`` identifies it in messages, without secrets.

    ``package`` has its ``.sql`` files. ``crashes_alone`` is whether the database can crash while the workers
    continue to run. If so, claims must survive the crash, because the workers that hold them continue."""

    package: ClassVar[str]
    crashes_alone: ClassVar[bool]
    name: str

    @abstractmethod
    def write(self, work: Callable[[ConnectionT], T], *, durable: bool = True) -> T:
        """Run ``work`` as a transaction and return its result. If not ``durable``, power loss may undo it."""

    @abstractmethod
    def read(self, work: Callable[[ConnectionT], T]) -> T:
        """Run ``work``, which reads with a single statement, and return its result."""

    @abstractmethod
    def snapshot(self, work: Callable[[ConnectionT], T]) -> T:
        """Run ``work``, which reads with several statements that all see the same state of the database."""

    @abstractmethod
    def rows(self, connection: ConnectionT, statement: str, given: Parameters) -> list[Row]:
        """Run one statement and return its rows. ``given`` has its parameters; other entries are ignored."""

    @abstractmethod
    def run_many(
        self, connection: ConnectionT, statement: str, columns: Sequence[str], table: Sequence[Row]
    ) -> None:
        """Run a statement for every row of ``table``. ``columns`` are the parameters that a row has."""

    @abstractmethod
    def as_list(self, values: Collection[Any]) -> Any:
        """Return numbers or texts in the form in which a statement receives a list."""

    @abstractmethod
    def key_parameter(self, key: str) -> Any:
        """Return the value by which a statement finds a key in the table of items."""

    @abstractmethod
    def lock_states(self, connection: ConnectionT, item_ids: Sequence[int]) -> None:
        """Lock the states of these items against other writers until the transaction ends."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    @abstractmethod
    def _name_parameters(self, texts: Collection[str]) -> Parameters: ...

    def statements(self, name: str) -> Mapping[str, str]:
        """Return the statements of the file ``{name}.sql`` of this database, by name."""
        return load_statements(self.package, name)

    def fetch(self, statement: str, given: Parameters | None = None) -> list[Row]:
        """Run one statement that reads, and return its rows."""
        return self.read(lambda connection: self.rows(connection, statement, given or {}))

    @contextmanager
    def reader(self) -> Iterator[Fetch]:
        """Yield a function like ``fetch``, for many reads. Each call of it sees the newest data."""
        yield self.fetch

    def name_ids(self, connection: ConnectionT, texts: Collection[str]) -> dict[str, int]:
        """Return the ids of names (sources, groups, media types), and add the names that are new."""
        if not texts:
            return {}
        sql, given = self.statements("database"), self._name_parameters(texts)
        known: dict[str, int] = dict(self.rows(connection, sql["name_ids"], given))
        if len(known) < len(texts):
            self.rows(connection, sql["add_names"], given)
            known = dict(self.rows(connection, sql["name_ids"], given))
        return known

    def take_numbers(self, connection: ConnectionT, counter: str, numbers: int) -> int:
        """Increase a counter by ``numbers`` and return it: the last of the numbers that are now reserved."""
        # The counter stays locked until the transaction ends, so that numbers grow in the order of commits.
        given = {"name": counter, "numbers": numbers}
        ((last,),) = self.rows(connection, self.statements("database")["take_numbers"], given)
        return int(last)

    def add_to_tally(self, connection: ConnectionT, counts: ItemCounts) -> None:
        """Add ``counts`` to the table ``tally``, which has the number of items per source, group and status,
        and remove the entries that become 0."""
        # Every write updates this table, so that no reader has to count millions of items.
        sql = self.statements("database")
        # All workers write the entries in the same order, so that two workers cannot deadlock.
        moved = sorted((*key, items) for key, items in counts.items() if items)
        self.run_many(connection, sql["add_to_tally"], _TALLY, moved)
        lost = [row[:3] for row in moved if row[3] < 0]
        self.run_many(connection, sql["drop_empty_tally"], _TALLY[:3], lost)


class SqlPart(Generic[ConnectionT]):
    """One part of a store, such as its leases, in a SQL database. Its statements are in ``{file}.sql``."""

    file: ClassVar[str]

    def __init__(self, database: SqlDatabase[ConnectionT]) -> None:
        self._database, self._sql = database, database.statements(self.file)

    def _fetch(self, name: str, /, **given: Any) -> list[Row]:
        """Run the statement ``name``, which reads, and return its rows."""
        return self._database.fetch(self._sql[name], given)

    def _execute(self, name: str, /, *, durable: bool = True, **given: Any) -> list[Row]:
        """Run the statement ``name``, which writes, as a transaction of its own, and return its rows."""
        return self._database.write(lambda connection: self._rows(connection, name, given), durable=durable)

    def _rows(self, connection: ConnectionT, name: str, given: Parameters) -> list[Row]:
        """Run the statement ``name`` in the transaction of ``connection``, and return its rows."""
        return self._database.rows(connection, self._sql[name], given)
