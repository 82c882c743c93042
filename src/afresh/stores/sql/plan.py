"""What a policy remembers of items, in a SQL database, read and written as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

from afresh.stores.rows import Row, check_due_times
from afresh.stores.sql.database import ConnectionT, SqlGroup
from afresh.stores.store import Plan
from afresh.values.arrays import Float64s
from afresh.values.stored import Ids

_BATCH = 10_000


class SqlPlan(SqlGroup[ConnectionT], Plan):
    """Implements ``Plan``, except for reading the columns."""

    file = "plan"

    def names(self) -> dict[int, str]:
        return dict(self._database.fetch(self._sql["names"]))

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        check_due_times(ids, due_s)
        kept = [None] * len(ids) if beliefs is None else beliefs
        rows = zip(due_s.tolist(), kept, ids.tolist(), strict=True)
        while batch := list(islice(rows, _BATCH)):
            self._database.write(partial(self._save_batch, batch=batch))

    def _save_batch(self, connection: ConnectionT, batch: list[Row]) -> None:
        self._database.lock_states(connection, [row[2] for row in batch])
        self._database.run_many(connection, self._sql["save"], ("due", "beliefs", "ids"), batch)
