"""Hints that items changed, one row per item, in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.stores.sql.database import ConnectionT, SqlGroup
from afresh.stores.store import StoredNotices
from afresh.values.stored import Notice


class SqlNotices(SqlGroup[ConnectionT], StoredNotices):
    """Implements ``StoredNotices``."""

    file = "notices"

    def add(self, ids: Sequence[int], time_s: float) -> None:
        database = self._database

        def work(connection: ConnectionT) -> None:
            known = database.rows(connection, self._sql["known"], {"ids": database.as_list(ids)})
            if known:
                last = database.take_numbers(connection, "notice", len(known))
                numbers = range(last - len(known) + 1, last + 1)
                table = [(number, item_id, time_s) for number, (item_id,) in zip(numbers, known, strict=True)]
                database.run_many(connection, self._sql["add"], ("numbers", "ids", "times"), table)

        database.write(work)

    def open(self, after: int = 0) -> list[Notice]:
        return [Notice(*row) for row in self._database.fetch(self._sql["open"], {"after": after})]
