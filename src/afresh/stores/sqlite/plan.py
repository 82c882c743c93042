"""What a policy remembers, streamed in and out as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from afresh.stores.sqlite.database import Database
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import Row, json_list
from afresh.values.stored import Doubles, Ids, PolicyColumns

_SQL = load_blocks("plan.sql")
_BATCH = 10_000
_TYPES = [np.int64] * 3 + [np.int8] + [np.float64] * 7  # NULL becomes NaN


class SqlitePlan:
    """``Plan`` in SQLite."""

    def __init__(self, database: Database) -> None:
        """On one database."""
        self._database = database

    def columns(self, *, after_id: int = 0, batch: int = 8192) -> Iterator[PolicyColumns]:
        """All items; each batch a short transaction, so that the log never waits for a slow reader."""
        with self._database.apart() as connection:
            while rows := connection.execute(_SQL["columns"], (after_id, batch)).fetchall():
                after_id = rows[-1][0]
                yield _columns(rows)

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        """Some items."""
        with self._database.read() as connection:
            return _columns(connection.execute(_SQL["columns_of"], (json_list(ids),)).fetchall())

    def names(self) -> dict[int, str]:
        """All names."""
        with self._database.read() as connection:
            return dict(connection.execute(_SQL["names"]).fetchall())

    def save(self, ids: Ids, due_s: Doubles, beliefs: Sequence[bytes] | None = None) -> None:
        """Due times and beliefs of many."""
        kept = [None] * len(ids) if beliefs is None else beliefs
        rows = zip(due_s.tolist(), kept, ids.tolist(), strict=True)
        while batch := list(islice(rows, _BATCH)):
            with self._database.write() as connection:
                connection.executemany(_SQL["save"], batch)


def _columns(rows: list[Row]) -> PolicyColumns:
    columns: list[Row] = list(zip(*rows, strict=True)) if rows else [()] * 12
    numbers = [np.array(column, dtype=dtype) for column, dtype in zip(columns, _TYPES, strict=False)]
    beliefs = columns[-1]
    sizes = np.fromiter(map(len, beliefs), dtype=np.int64, count=len(beliefs))
    fields: Row = (*numbers, sizes, b"".join(beliefs))
    return PolicyColumns(*fields)
