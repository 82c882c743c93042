"""What a policy remembers of items, in PostgreSQL, read as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from afresh.stores.postgres.connections import Connection
from afresh.stores.rows import Row
from afresh.stores.sql.plan import SqlPlan
from afresh.values.stored import PolicyColumns

_TYPES = [np.int64] * 3 + [np.int8] + [np.float64] * 7  # NULL becomes NaN


class PostgresPlan(SqlPlan[Connection]):
    """Implements ``Plan``."""

    def columns(
        self,
        *,
        after_id: int = 0,
        batch: int = 8192,
        aside: bool = False,  # noqa: ARG002 (the driver takes a batch as a whole either way)
    ) -> Iterator[PolicyColumns]:
        while found := self._database.fetch(self._sql["columns"], {"after": after_id, "limit": batch}):
            after_id = found[-1][0]
            yield _columns(found)

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        return _columns(self._database.fetch(self._sql["columns_of"], {"ids": list(ids)}))


def _columns(found: list[Row]) -> PolicyColumns:
    columns: list[Row] = list(zip(*found, strict=True)) if found else [()] * 12
    numbers = [np.array(column, dtype=kind) for column, kind in zip(columns, _TYPES, strict=False)]
    beliefs = columns[-1]
    sizes = np.fromiter(map(len, beliefs), dtype=np.int64, count=len(beliefs))
    fields: Row = (*numbers, sizes, b"".join(beliefs))
    return PolicyColumns(*fields)
