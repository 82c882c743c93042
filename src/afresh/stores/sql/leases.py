"""Leases in a SQL database. Every lease has a token that is larger than all tokens before it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from afresh.stores.sql.database import ConnectionT, Parameters, SqlGroup
from afresh.stores.store import Leases
from afresh.values.lease import Lease
from afresh.values.storable_text import is_storable


class SqlLeases(SqlGroup[ConnectionT], Leases):
    """Implements ``Leases``, except for how a database chooses and locks the items."""

    file = "leases"

    def take(
        self,
        ids: Sequence[int],
        now_s: float,
        duration_s: float,
        *,
        any_status: bool = False,
        worker: str = "",
    ) -> list[Lease]:
        given = {"ids": self._database.as_list(ids), "any_status": any_status, "worker": worker}
        return self._lease("take", given | _times(now_s, duration_s))

    def take_due(
        self, now_s: float, limit: int, duration_s: float, *, source: str | None = None
    ) -> list[Lease]:
        if source is not None and not is_storable(source):
            return []
        name = "take_due" if source is None else "take_due_of_source"
        given = {"limit": limit, "source": source, "worker": ""}
        return self._lease(name, given | _times(now_s, duration_s))

    def release(self, leases: Sequence[Lease]) -> None:
        table = [(lease.item_id, lease.token) for lease in leases]

        def work(connection: ConnectionT) -> None:
            self._database.run_many(connection, self._sql["release"], ("ids", "tokens"), table)

        self._database.write(work, durable=False)

    def open(self, now_s: float) -> list[tuple[int, float]]:
        found = self._database.fetch(self._sql["open"], {"now_s": now_s})
        return [(item_id, leased_s) for item_id, leased_s in found]

    def until_s(self, item_id: int, now_s: float) -> float | None:
        found = self._database.fetch(self._sql["until"], {"item_id": item_id, "now_s": now_s})
        return float(found[0][0]) if found else None

    @abstractmethod
    def _lease(self, name: str, given: Parameters) -> list[Lease]:
        """Lease what the statement ``name`` chooses."""


def _times(now_s: float, duration_s: float) -> dict[str, float]:
    return {"now_s": now_s, "until_s": now_s + duration_s}
