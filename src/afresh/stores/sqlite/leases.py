"""Who polls what: leases that run out, each with a token larger than all before."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from afresh.stores.rows import lease_from_row
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import json_list
from afresh.values.lease import Lease

_SQL = load_blocks("leases.sql")


class SqliteLeases:
    """``Leases`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
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
        chosen = {"ids": json_list(ids), "any_status": any_status, "worker": worker}
        return self._lease("take", chosen, now_s, duration_s)

    def take_due(
        self, now_s: float, limit: int, duration_s: float, *, source: str | None = None
    ) -> list[Lease]:
        """Lease the longest due."""
        name = "take_due" if source is None else "take_due_of_source"
        return self._lease(name, {"limit": limit, "source": source}, now_s, duration_s)

    def release(self, leases: Sequence[Lease]) -> None:
        """Give back."""
        with self._database.write(durable=False) as connection:
            connection.executemany(_SQL["release"], [(lease.item_id, lease.token) for lease in leases])

    def open(self, now_s: float) -> list[tuple[int, float]]:
        """Those that have not run out."""
        with self._database.read() as connection:
            return connection.execute(_SQL["open"], (now_s,)).fetchall()

    def until_s(self, item_id: int, now_s: float) -> float | None:
        """When it runs out."""
        with self._database.read() as connection:
            row = connection.execute(_SQL["until"], (item_id, now_s)).fetchone()
        return None if row is None else float(row[0])

    def _lease(self, name: str, chosen: dict[str, object], now_s: float, duration_s: float) -> list[Lease]:
        with self._database.write(durable=False) as connection:
            token = take_numbers(connection, "lease", 1)
            times = {"token": token, "now_s": now_s, "until_s": now_s + duration_s}
            connection.execute(_SQL[name], chosen | times)
            rows = connection.execute(_SQL["leased"], (token,)).fetchall()
        return [lease_from_row(row) for row in rows]


def take_numbers(connection: sqlite3.Connection, counter: str, numbers: int) -> int:
    """The last of so many numbers, all larger than any before."""
    ((last,),) = connection.execute(_SQL["take_numbers"], (numbers, counter)).fetchall()
    return int(last)
