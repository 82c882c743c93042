"""What polling cost, per minute and source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afresh.stores.minutes import minute_of
from afresh.stores.postgres.arrays import arrays
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.names import name_ids
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.rows import Row
from afresh.values.outcome import Spent
from afresh.values.stored import LedgerRow

_SQL = load_blocks("ledger.sql")


class PostgresLedger:
    """``Ledger`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        """Outside any poll."""
        spends = {(minute_of(time_s), source): spent}
        self._database.write(lambda c: add_ledger_rows(c, ledger_rows(c, spends)))

    def total(self, since_s: float, until_s: float) -> Spent:
        """A sum."""
        given = _minutes(since_s, until_s)
        (row,) = self._database.read(lambda connection: rows(connection, _SQL["total"], given))
        return Spent(*row)

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        """Row by row."""
        given = _minutes(since_s, until_s)
        found = self._database.read(lambda connection: rows(connection, _SQL["rows"], given))
        return [LedgerRow(minute * 60.0, source, Spent(*spent)) for minute, source, *spent in found]

    def forget(self, before_s: float) -> None:
        """Drop the old."""
        given = {"before": before_s / 60.0}
        self._database.write(lambda connection: rows(connection, _SQL["forget"], given))


def ledger_rows(connection: Connection, spends: Mapping[tuple[int, str], Spent]) -> list[Row]:
    """What was spent by (minute, source), as rows of the ledger."""
    ids = name_ids(connection, {source for _, source in spends})
    return [
        (minute, ids[source], spent.requests, spent.bytes, spent.seconds, spent.money)
        for (minute, source), spent in sorted(spends.items(), key=lambda entry: entry[0])
    ]


def add_ledger_rows(connection: Connection, table: Sequence[Row]) -> None:
    """Add them up."""
    if table:
        names = ("minutes", "sources", "requests", "bytes", "seconds", "money")
        rows(connection, _SQL["add"], arrays(names, table))


def _minutes(since_s: float, until_s: float) -> dict[str, float]:
    return {"since": since_s / 60.0, "until": until_s / 60.0}
