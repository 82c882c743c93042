"""The interface of a SQL database, as far as the groups of a store that are written once for both need it.

The two databases differ in how they take parameters (``:name`` or ``%(name)s``), lists (a JSON text or an
array) and many rows (one execution per row, or one statement with an array per column). Each implements these
few methods; the statements themselves stand in the ``.sql`` files of its package, under the same names in
both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from afresh.stores.rows import Row
from afresh.stores.sql.statements import load_statements

ConnectionT = TypeVar("ConnectionT")
T = TypeVar("T")
Parameters: TypeAlias = Mapping[str, Any]
Fetch: TypeAlias = Callable[[str, Parameters], list[Row]]
ItemCounts: TypeAlias = Counter[tuple[int, int, int]]
"""Items gained or lost by (source id, group id, status code)."""

_TALLY = ("sources", "groups", "statuses", "items")


class SqlDatabase(ABC, Generic[ConnectionT]):
    """One open database. Any thread may use it.

    ``name`` says which one it is, for messages, without secrets. ``survives_alone`` says whether the database
    may crash while the workers live on; then claims must be safe from power loss as everything else is.
    """

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
    def _name_parameters(self, texts: Collection[str]) -> Parameters: ...

    def statements(self, name: str) -> Mapping[str, str]:
        """Return the statements of the file ``name``.sql of this database."""
        return load_statements(self.package, name)

    def fetch(self, statement: str, given: Parameters | None = None) -> list[Row]:
        """Return the rows of one statement that reads."""
        return self.read(lambda connection: self.rows(connection, statement, given or {}))

    def execute(self, statement: str, given: Parameters, *, durable: bool = True) -> list[Row]:
        """Run one statement that writes, as a transaction of its own, and return its rows."""
        return self.write(lambda connection: self.rows(connection, statement, given), durable=durable)

    @contextmanager
    def reader(self) -> Iterator[Fetch]:
        """Give a function like ``fetch`` for a long series of statements, each of which sees a moment of its
        own."""
        yield self.fetch

    def name_ids(self, connection: ConnectionT, texts: Collection[str]) -> dict[str, int]:
        """Return the ids of these names (sources, groups, media types), which are added where they are
        new."""
        if not texts:
            return {}
        sql, given = self.statements("database"), self._name_parameters(texts)
        known: dict[str, int] = dict(self.rows(connection, sql["name_ids"], given))
        if len(known) < len(texts):
            self.rows(connection, sql["add_names"], given)
            known = dict(self.rows(connection, sql["name_ids"], given))
        return known

    def take_numbers(self, connection: ConnectionT, counter: str, numbers: int) -> int:
        """Take so many numbers, all larger than any taken before, and return the last of them.

        Whoever takes numbers holds the next taker up until it commits: numbers grow in the order of commits.
        """
        given = {"name": counter, "numbers": numbers}
        ((last,),) = self.rows(connection, self.statements("database")["take_numbers"], given)
        return int(last)

    def add_to_tally(self, connection: ConnectionT, counts: ItemCounts) -> None:
        """Add gains and losses to the number of items per source, group and status; drop what becomes empty.

        The numbers are kept while writing so that nobody has to count millions of items. They are written in
        one order by everybody, so that no two workers wait for each other in a circle.
        """
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
