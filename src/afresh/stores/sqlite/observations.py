"""Every poll that told something, packed: the latest beside the item's state, older ones in sealed runs.

A poll rewrites its item's state anyway, so appending to a short run there costs no page of its own; a run
that has grown full is sealed, one page in some thirty polls.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from afresh.stores import observation_codec
from afresh.stores.observation_rows import audit_columns, audit_rows, by_item
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import json_list
from afresh.stores.store import Retention
from afresh.values.errors import InputError
from afresh.values.outcome import Observation
from afresh.values.stored import ObservationColumns

_SQL = load_blocks("observations.sql")
_ITEMS_A_BATCH = 10_000
_FULL_RUN = 256  # bytes
_ROWS_A_RUN = 64


class SqliteObservations:
    """``Observations`` in SQLite."""

    def __init__(self, database: SqliteDatabase, retention: Retention) -> None:
        """On one database."""
        self._database, self._retention = database, retention

    def read(self, ids: Sequence[int] | None = None) -> Iterator[ObservationColumns]:
        """Of all items or some; one statement a batch, for a run may be sealed at any moment."""
        with self._database.apart() as connection:
            for batch in _batches(connection, ids):
                rows = connection.execute(_SQL["runs_of"], {"ids": json_list(batch)}).fetchall()
                if rows:
                    yield observation_codec.decode_runs(
                        [item_id for item_id, _ in rows], [run for _, run in rows]
                    )

    def add(self, observations: ObservationColumns) -> None:
        """Polls made elsewhere."""
        self._refuse_unknown(np.unique(observations.item_id).tolist())
        groups = by_item(observations)
        while batch := list(islice(groups, _ITEMS_A_BATCH // 10)):
            with self._database.write() as connection:
                for item_id, rows in batch:
                    self._add_item(connection, item_id, rows)
                add_audits(connection, [row for _, rows in batch for row in rows], self._retention)

    def audits(self, since_s: float) -> ObservationColumns:
        """From the list of audits."""
        with self._database.read() as connection:
            rows = connection.execute(_SQL["audits"], (since_s,)).fetchall()
        return audit_columns(rows)

    def _refuse_unknown(self, item_ids: list[int]) -> None:
        with self._database.read() as connection:
            row = connection.execute(_SQL["unknown"], (json_list(item_ids),)).fetchone()
        if row is not None:
            raise InputError(f"there is no item {row[0]}: register it before its observations")

    def _add_item(self, connection: sqlite3.Connection, item_id: int, rows: list[Observation]) -> None:
        for start in range(0, len(rows), _ROWS_A_RUN):
            seal(
                connection,
                item_id,
                observation_codec.append_observations(None, rows[start : start + _ROWS_A_RUN]),
                self._retention,
            )
        changed = [row.time_s for row in rows if row.changed]
        last_change = max(changed, default=None)
        connection.execute(_SQL["counted"], (len(rows), len(changed), rows[-1].time_s, last_change, item_id))


def append_recent(
    connection: sqlite3.Connection, recent: bytes | None, seen: Observation, retention: Retention
) -> bytes | None:
    """The item's run of latest observations with one more; a full one is sealed and a new one begins."""
    grown = observation_codec.append_observations(recent, [seen])
    if len(grown) < _FULL_RUN:
        return grown
    seal(connection, seen.item_id, grown, retention)
    return None


def seal(connection: sqlite3.Connection, item_id: int, run: bytes, retention: Retention) -> None:
    """Keep a run, and drop the oldest that the newer ones make superfluous."""
    connection.execute(
        _SQL["seal"],
        (item_id, observation_codec.last_time_us(run), observation_codec.count_observations(run), run),
    )
    kept = 0
    for number, observations in connection.execute(_SQL["runs"], (item_id,)).fetchall():
        if kept >= retention.observations:
            connection.execute(_SQL["drop_run"], (item_id, number))
        kept += observations


def add_audits(connection: sqlite3.Connection, seen: Sequence[Observation], retention: Retention) -> None:
    """List those that are audits."""
    rows = audit_rows(seen)
    if rows:
        connection.executemany(_SQL["add_audit"], rows)
        connection.execute(_SQL["trim_audits"], (retention.audits,))


def _batches(connection: sqlite3.Connection, ids: Sequence[int] | None) -> Iterator[list[int]]:
    """Item ids by the thousand, growing."""
    if ids is not None:
        wanted = sorted(set(ids))
        for start in range(0, len(wanted), _ITEMS_A_BATCH):
            yield wanted[start : start + _ITEMS_A_BATCH]
        return
    last = 0
    while rows := connection.execute(_SQL["items_after"], (last, _ITEMS_A_BATCH)).fetchall():
        yield [row[0] for row in rows]
        last = rows[-1][0]
