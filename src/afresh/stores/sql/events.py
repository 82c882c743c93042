"""The queue of changes for hooks, in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.stores.sql.database import ConnectionT, SqlGroup
from afresh.stores.store import Events
from afresh.values.stored import Event


class SqlEvents(SqlGroup[ConnectionT], Events):
    """Implements ``Events``."""

    file = "events"

    def take(self, now_s: float, limit: int, retry_s: float) -> list[Event]:
        given = {"now_s": now_s, "until_s": now_s + retry_s, "limit": limit}
        # RETURNING promises no order; the id comes first.
        return [Event(*row) for row in sorted(self._database.execute(self._sql["take"], given))]

    def done(self, ids: Sequence[int]) -> None:
        self._database.execute(self._sql["done"], {"ids": self._database.as_list(ids)})

    def defer(self, ids: Sequence[int], until_s: float) -> None:
        self._database.execute(self._sql["defer"], {"ids": self._database.as_list(ids), "until_s": until_s})

    def waiting(self) -> int:
        ((count,),) = self._database.fetch(self._sql["waiting"])
        return int(count)
