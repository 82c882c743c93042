"""What polling cost, per minute and source, in a SQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afresh.stores.rows import Row
from afresh.stores.sql.database import ConnectionT, SqlDatabase, SqlGroup
from afresh.stores.store import Ledger
from afresh.values.outcome import Spent
from afresh.values.stored import LedgerRow, minute_of

_COLUMNS = ("minutes", "sources", "requests", "bytes", "seconds", "money")


class SqlLedger(SqlGroup[ConnectionT], Ledger):
    """Implements ``Ledger``."""

    file = "ledger"

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        def work(connection: ConnectionT) -> None:
            rows = ledger_rows(self._database, connection, {(minute_of(time_s), source): spent})
            add_ledger_rows(self._database, connection, rows)

        self._database.write(work)

    def total(self, since_s: float, until_s: float) -> Spent:
        (row,) = self._database.fetch(self._sql["total"], _minutes(since_s, until_s))
        return Spent(*row)

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        found = self._database.fetch(self._sql["rows"], _minutes(since_s, until_s))
        return [LedgerRow(minute * 60.0, source, Spent(*spent)) for minute, source, *spent in found]

    def forget(self, before_s: float) -> None:
        self._database.execute(self._sql["forget"], {"before": before_s / 60.0})


def ledger_rows(
    database: SqlDatabase[ConnectionT], connection: ConnectionT, spending: Mapping[tuple[int, str], Spent]
) -> list[Row]:
    """Return what was spent by (minute, source) as rows of the ledger."""
    ids = database.name_ids(connection, {source for _, source in spending})
    return [
        (minute, ids[source], spent.requests, spent.bytes, spent.seconds, spent.money)
        for (minute, source), spent in sorted(spending.items(), key=lambda entry: entry[0])
    ]


def add_ledger_rows(
    database: SqlDatabase[ConnectionT], connection: ConnectionT, table: Sequence[Row]
) -> None:
    """Add these rows to what the ledger has for their minutes and sources."""
    database.run_many(connection, database.statements("ledger")["add"], _COLUMNS, table)


def _minutes(since_s: float, until_s: float) -> dict[str, float]:
    return {"since": since_s / 60.0, "until": until_s / 60.0}
