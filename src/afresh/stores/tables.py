"""Everything a database keeps, as plain rows of tables: what one store is copied to another by.

The contract speaks of items and polls; a copy must also carry ids, version numbers and half-delivered events.
So both databases can be read and filled in this one form, whatever their own tables look like. Claims and
workers are not in it: they belong to processes that run on the other store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from afresh.stores.rows import Row

Marks = Mapping[str, float]
"""The last number given of each kind, and the pace: what the next numbers go on from."""

NUMBERED = ("item", "lease", "edit", "notice", "event", "audit", "content", "name")
PACE = ("last_s", "debt_s", "asked_s")


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of one table; the first ``keys`` are its key and order. ``batch`` rows go at once."""

    columns: tuple[str, ...]
    keys: int = 1
    batch: int = 5000


def _table(columns: str, keys: int = 1, batch: int = 5000) -> Table:
    return Table(tuple(columns.split()), keys, batch)


TABLES: Mapping[str, Table] = {
    "name": _table("id text"),
    "item": _table(
        "id key labels added_s selector source_id group_id weight cost min_interval_s max_interval_s"
        " prior_rate_per_s status due_s polled_s changed_s polls changes failures version problem belief"
        " validators recent"
    ),
    "content": _table("id hash size refs data", batch=200),
    "version": _table("item_id number content_id time_s media_type_id normal_hash", keys=2),
    "observation_run": _table("item_id number last_us observations data", keys=2),
    "audit": _table("id item_id time_s elapsed_s changed modified_s count"),
    "event": _table("id item_id key source_id kind version time_s due_s attempts"),
    "notice": _table("item_id number time_s count"),
    "ledger": _table("minute source_id requests bytes seconds money", keys=2),
    "tally": _table("source_id group_id status items", keys=3),
    "edit": _table("number item_id"),
    "lease": _table("item_id token leased_s until_s"),
    "value": _table("name data", batch=200),
}
"""In the order they are copied in."""


class Snapshot(Protocol):
    """A store at one moment."""

    def rows(self, table: str, after: Row | None) -> list[Row]:
        """The next batch of rows, those with a key above ``after``, by key."""

    def count(self, table: str) -> int:
        """How many rows there are."""

    def marks(self) -> Marks:
        """The last numbers, the pace, and how far polling has come."""


class Tables(Protocol):
    """A store that can be copied from and to."""

    @property
    def name(self) -> str:
        """Which store, in words and without secrets."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """All of it, at one moment."""

    def load(self, table: str, rows: Sequence[Row], values: Mapping[str, bytes | None]) -> None:
        """Add rows of one table and set named values, in one transaction."""

    def finish(self, marks: Marks, values: Mapping[str, bytes | None]) -> None:
        """Go on from these numbers, and set named values, in one transaction."""

    def clear(self) -> None:
        """Forget everything."""


def page_statement(relation: str, table: Table, place: str, *, first: bool) -> str:
    """The next batch of a table, or of a query in brackets that gives its columns; ``place`` names the key.

    >>> page_statement("edit", TABLES["edit"], "?", first=False)
    'SELECT number, item_id FROM edit WHERE (number) > (?) ORDER BY number LIMIT 5000'
    """
    keys = ", ".join(table.columns[: table.keys])
    where = "" if first else f" WHERE ({keys}) > ({place})"
    return f"SELECT {', '.join(table.columns)} FROM {relation}{where} ORDER BY {keys} LIMIT {table.batch}"
