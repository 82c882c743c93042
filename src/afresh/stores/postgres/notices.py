"""Hints that items changed, one line per item."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.stores.postgres.arrays import arrays
from afresh.stores.postgres.counters import take_numbers
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.values.stored import Notice

_SQL = load_blocks("notices.sql")


class PostgresNotices:
    """``Notices`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    def add(self, ids: Sequence[int], time_s: float) -> None:
        """Hints about items."""

        def work(connection: Connection) -> None:
            known = [item_id for (item_id,) in rows(connection, _SQL["known"], {"ids": list(ids)})]
            if known:
                last = take_numbers(connection, "notice", len(known))
                numbered = list(zip(known, range(last - len(known) + 1, last + 1), strict=True))
                rows(connection, _SQL["add"], arrays(("ids", "numbers"), numbered) | {"time_s": time_s})

        self._database.write(work)

    def open(self, after: int = 0) -> list[Notice]:
        """Those not answered."""
        found = self._database.read(lambda connection: rows(connection, _SQL["open"], {"after": after}))
        return [Notice(*row) for row in found]
