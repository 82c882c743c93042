"""The change feed in PostgreSQL.

One statement takes the numbers and writes the changes. It is the last one of its transaction, because it
locks the counter of changes until the commit. So whoever sees a number sees all smaller numbers too.
"""

from __future__ import annotations

from collections.abc import Sequence

from afresh.stores.postgres.binary_arrays import column_arrays
from afresh.stores.postgres.connection import Connection, fetch_rows
from afresh.stores.rows import Row
from afresh.stores.sql.feed_part import SqlFeed

_COLUMNS = (
    *("ids", "keys", "sources", "kinds", "versions"),
    *("times", "changed", "sizes", "previous", "shares", "hooks"),
)


class PostgresFeed(SqlFeed[Connection]):
    def append(self, connection: Connection, table: Sequence[Row]) -> None:
        if table:
            given = column_arrays(_COLUMNS, table) | {"count": len(table)}
            fetch_rows(connection, self._sql["append"], given)
