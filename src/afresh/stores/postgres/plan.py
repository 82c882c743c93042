"""What a policy remembers of items, in PostgreSQL, read as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from afresh.stores.postgres.reconnection import Connection
from afresh.stores.rows import policy_columns
from afresh.stores.sql.plan import SqlPlan
from afresh.values.stored import PolicyColumns


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
            yield policy_columns(found)

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        return policy_columns(self._database.fetch(self._sql["columns_of"], {"ids": list(ids)}))
