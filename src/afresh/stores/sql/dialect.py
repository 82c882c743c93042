"""What SQLite and PostgreSQL do differently, behind one interface, for all that is written once for both.

They differ in how they take parameters (``:name`` or ``%(name)s``), lists (a JSON text or an array) and many
rows (one execution per row, or one statement with an array per column). The statements themselves stand in
the ``.sql`` files of each package, in blocks of the same names.
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

from afresh.stores.rows import Row

_BLOCK = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
T = TypeVar("T")
_TALLY = ("sources", "groups", "statuses", "items")


def parse_statements(text: str) -> dict[str, str]:
    """Return the statements of a file by name; a block starts with ``-- name: NAME``, comments may precede.

    >>> parse_statements("-- Two.\\n-- name: one\\nSELECT 1;\\n-- name: two\\nSELECT 2;\\n")
    {'one': 'SELECT 1', 'two': 'SELECT 2'}
    """
    parts = _BLOCK.split(text)
    return {name: body.strip().removesuffix(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def load_statements(package: str, name: str) -> dict[str, str]:
    return parse_statements(files(package).joinpath(f"{name}.sql").read_text(encoding="utf-8"))


def load_migrations(package: str) -> tuple[str, ...]:
    """Return the migration scripts of a package in order; ``NNNN_name.sql`` counts from 0001 without gaps."""
    folder = files(package).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


ConnectionT = TypeVar("ConnectionT")
Parameters: TypeAlias = Mapping[str, Any]
Fetch: TypeAlias = Callable[[str, Parameters], list[Row]]
ItemCounts: TypeAlias = Counter[tuple[int, int, int]]
"""Items gained or lost by (source id, group id, status code)."""


class SqlDatabase(ABC, Generic[ConnectionT]):
    """One open database. Any thread may use it. ``name`` says which one it is, for messages, without secrets.
    ``survives_alone`` says whether the database may crash while the workers live on; then claims must be safe
    from power loss as everything else is."""

    package: ClassVar[str]
    survives_alone: ClassVar[bool]
    name: str

    @abstractmethod
    def write(self, work: Callable[[ConnectionT], T], *, durable: bool = True) -> T:
        """Run ``work`` as one transaction; unless it is ``durable``, a power loss may undo it."""

    @abstractmethod
    def read(self, work: Callable[[ConnectionT], T]) -> T:
        """Run ``work``, which reads with a single statement."""

    @abstractmethod
    def snapshot(self, work: Callable[[ConnectionT], T]) -> T:
        """Run ``work``, which reads with several statements that all see one moment."""

    @abstractmethod
    def rows(self, connection: ConnectionT, statement: str, given: Parameters) -> list[Row]:
        """Run one statement and return its rows. Parameters that it does not name are ignored."""

    @abstractmethod
    def run_many(
        self, connection: ConnectionT, statement: str, columns: Sequence[str], table: Sequence[Row]
    ) -> None:
        """Run a statement for every row of a table, which has these columns."""

    @abstractmethod
    def as_list(self, values: Collection[Any]) -> Any:
        """Return a list of numbers or texts as one parameter."""

    @abstractmethod
    def key_parameter(self, key: str) -> Any:
        """Return what the table of items finds a key by."""

    @abstractmethod
    def lock_states(self, connection: ConnectionT, item_ids: Sequence[int]) -> None:
        """Keep other writers away from the states of these items until the transaction ends."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    @abstractmethod
    def _name_parameters(self, texts: Collection[str]) -> Parameters: ...

    def statements(self, name: str) -> Mapping[str, str]:
        """Return the statements of the file ``name``.sql of this database."""
        return load_statements(self.package, name)

    def fetch(self, statement: str, given: Parameters | None = None) -> list[Row]:
        """Return the rows of one statement that reads."""
        return self.read(lambda connection: self.rows(connection, statement, given or {}))

    @contextmanager
    def reader(self) -> Iterator[Fetch]:
        """Give a function like ``fetch`` for many statements, each of which sees a moment of its own."""
        yield self.fetch

    def name_ids(self, connection: ConnectionT, texts: Collection[str]) -> dict[str, int]:
        """Return the ids of names (sources, groups, media types); those that are new are added."""
        if not texts:
            return {}
        sql, given = self.statements("database"), self._name_parameters(texts)
        known: dict[str, int] = dict(self.rows(connection, sql["name_ids"], given))
        if len(known) < len(texts):
            self.rows(connection, sql["add_names"], given)
            known = dict(self.rows(connection, sql["name_ids"], given))
        return known

    def take_numbers(self, connection: ConnectionT, counter: str, numbers: int) -> int:
        """Take so many numbers, all larger than any taken before, and return the last of them. Whoever takes
        numbers holds the next taker up until it commits: numbers grow in the order of commits."""
        given = {"name": counter, "numbers": numbers}
        ((last,),) = self.rows(connection, self.statements("database")["take_numbers"], given)
        return int(last)

    def add_to_tally(self, connection: ConnectionT, counts: ItemCounts) -> None:
        """Add gains and losses to the number of items per source, group and status; drop what becomes empty.
        The numbers are kept while writing so that nobody has to count millions of items. They are written in
        one order by everybody, so that no two workers wait for each other in a circle."""
        sql = self.statements("database")
        moved = sorted((*key, items) for key, items in counts.items() if items)
        self.run_many(connection, sql["add_to_tally"], _TALLY, moved)
        lost = [row[:3] for row in moved if row[3] < 0]
        self.run_many(connection, sql["drop_empty_tally"], _TALLY[:3], lost)


class SqlGroup(Generic[ConnectionT]):
    """One group of a store's methods in a SQL database; its statements stand in the file ``file``.sql."""

    file: ClassVar[str]

    def __init__(self, database: SqlDatabase[ConnectionT]) -> None:
        self._database, self._sql = database, database.statements(self.file)

    def _fetch(self, name: str, /, **given: Any) -> list[Row]:
        """Return the rows of the statement ``name``, which reads."""
        return self._database.fetch(self._sql[name], given)

    def _execute(self, name: str, /, *, durable: bool = True, **given: Any) -> list[Row]:
        """Run the statement ``name``, which writes, as a transaction of its own, and return its rows."""
        return self._database.write(lambda connection: self._rows(connection, name, given), durable=durable)

    def _rows(self, connection: ConnectionT, name: str, given: Parameters) -> list[Row]:
        """Run the statement ``name`` inside a transaction, and return its rows."""
        return self._database.rows(connection, self._sql[name], given)
