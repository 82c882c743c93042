"""Who polls what: leases that run out, each with a token larger than all before."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.stores.postgres.arrays import array, arrays
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.rows import lease_from_row
from afresh.stores.texts import is_storable
from afresh.values.lease import Lease

_SQL = load_blocks("leases.sql")


class PostgresLeases:
    """``Leases`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    def take(
        self,
        ids: Sequence[int],
        now_s: float,
        duration_s: float,
        *,
        any_status: bool = False,
        worker: str = "",
    ) -> list[Lease]:
        """Lease these."""
        chosen: dict[str, object] = {"ids": array(ids), "any_status": any_status}
        return self._lease("wanted", chosen, now_s, duration_s, worker)

    def take_due(
        self, now_s: float, limit: int, duration_s: float, *, source: str | None = None
    ) -> list[Lease]:
        """Lease the longest due."""
        if source is not None and not is_storable(source):
            return []
        name = "due" if source is None else "due_of_source"
        return self._lease(name, {"limit": limit, "source": source}, now_s, duration_s)

    def release(self, leases: Sequence[Lease]) -> None:
        """Give back."""
        given = arrays(("ids", "tokens"), [(lease.item_id, lease.token) for lease in leases])
        self._database.write(lambda connection: rows(connection, _SQL["release"], given), durable=False)

    def open(self, now_s: float) -> list[tuple[int, float]]:
        """Those that have not run out."""
        found = self._database.read(lambda connection: rows(connection, _SQL["open"], {"now_s": now_s}))
        return [(item_id, leased_s) for item_id, leased_s in found]

    def until_s(self, item_id: int, now_s: float) -> float | None:
        """When it runs out."""
        given = {"item_id": item_id, "now_s": now_s}
        found = self._database.read(lambda connection: rows(connection, _SQL["until"], given))
        return float(found[0][0]) if found else None

    def _lease(
        self, name: str, chosen: dict[str, object], now_s: float, duration_s: float, worker: str = ""
    ) -> list[Lease]:
        times = {"now_s": now_s, "until_s": now_s + duration_s, "worker": worker}

        def work(connection: Connection) -> list[Lease]:
            free = [item_id for (item_id,) in rows(connection, _SQL[name], chosen | times)]
            if not free:
                return []
            taken = [item_id for (item_id,) in rows(connection, _SQL["take"], times | {"ids": array(free)})]
            return [lease_from_row(row) for row in rows(connection, _SQL["leased"], {"ids": array(taken)})]

        # Safe from power loss, unlike SQLite's: here the server may be killed alone and the workers live on,
        # and a lease that it forgot would be given to a second one.
        return self._database.write(work)
