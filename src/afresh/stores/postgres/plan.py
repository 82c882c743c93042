"""What a policy remembers, streamed in and out as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from afresh.stores.due_times import check_due
from afresh.stores.postgres.arrays import arrays
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.rows import Row
from afresh.values.arrays import Float64s
from afresh.values.stored import Ids, PolicyColumns

_SQL = load_blocks("plan.sql")
_BATCH = 10_000
_TYPES = [np.int64] * 3 + [np.int8] + [np.float64] * 7  # NULL becomes NaN


class PostgresPlan:
    """``Plan`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    def columns(
        self,
        *,
        after_id: int = 0,
        batch: int = 8192,
        aside: bool = False,  # noqa: ARG002
    ) -> Iterator[PolicyColumns]:
        """All items, a statement a batch; ``aside`` or not, a batch comes as one."""
        while True:
            place = {"after": after_id, "limit": batch}
            found = self._database.read(lambda c, place=place: rows(c, _SQL["columns"], place))  # type: ignore[misc]
            if not found:
                return
            after_id = found[-1][0]
            yield _columns(found)

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        """Some items."""
        return _columns(self._database.read(lambda c: rows(c, _SQL["columns_of"], {"ids": list(ids)})))

    def names(self) -> dict[int, str]:
        """All names."""
        return dict(self._database.read(lambda connection: rows(connection, _SQL["names"])))

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        """Due times and beliefs of many."""
        check_due(ids, due_s)
        kept = [None] * len(ids) if beliefs is None else beliefs
        table = list(zip(ids.tolist(), due_s.tolist(), kept, strict=True))
        for start in range(0, len(table), _BATCH):
            given = arrays(("ids", "due", "beliefs"), table[start : start + _BATCH])

            def work(connection: Connection, given: dict[str, Any] = given) -> None:
                rows(connection, _SQL["lock"], given)
                rows(connection, _SQL["save"], given)

            self._database.write(work)


def _columns(found: list[Row]) -> PolicyColumns:
    columns: list[Row] = list(zip(*found, strict=True)) if found else [()] * 12
    numbers = [np.array(column, dtype=kind) for column, kind in zip(columns, _TYPES, strict=False)]
    beliefs = columns[-1]
    sizes = np.fromiter(map(len, beliefs), dtype=np.int64, count=len(beliefs))
    fields: Row = (*numbers, sizes, b"".join(beliefs))
    return PolicyColumns(*fields)
