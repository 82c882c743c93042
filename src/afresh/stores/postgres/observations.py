"""Every poll that told something, packed: the latest beside the item's state, older ones in sealed runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from afresh.stores import observation_codec
from afresh.stores.observation_rows import audit_columns, audit_rows, by_item
from afresh.stores.postgres.arrays import arrays
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.store import Retention
from afresh.values.errors import InputError
from afresh.values.outcome import Observation
from afresh.values.stored import ObservationColumns

_SQL = load_blocks("observations.sql")
_ITEMS_A_BATCH = 10_000
_FULL_RUN = 256  # bytes
_ROWS_A_RUN = 64
_AUDIT = ("ids", "times", "elapsed", "changed", "modified", "counts")
_Batch = list[tuple[int, list[Observation]]]


class PostgresObservations:
    """``Observations`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase, retention: Retention) -> None:
        """On one database."""
        self._database, self._retention = database, retention

    def read(self, ids: Sequence[int] | None = None) -> Iterator[ObservationColumns]:
        """Of all items or some; one statement a batch, for a run may be sealed at any moment."""
        for batch in self._batches(ids):
            found = self._database.read(lambda c, b=batch: rows(c, _SQL["runs_of"], {"ids": b}))  # type: ignore[misc]
            if found:
                yield observation_codec.decode_runs(
                    [item_id for item_id, _ in found], [run for _, run in found]
                )

    def add(self, observations: ObservationColumns) -> None:
        """Polls made elsewhere."""
        self._refuse_unknown(np.unique(observations.item_id).tolist())
        groups = by_item(observations)
        while batch := list(islice(groups, _ITEMS_A_BATCH // 10)):
            self._database.write(lambda connection, batch=batch: self._add(connection, batch))  # type: ignore[misc]

    def audits(self, since_s: float) -> ObservationColumns:
        """From the list of audits."""
        found = self._database.read(lambda connection: rows(connection, _SQL["audits"], {"since": since_s}))
        return audit_columns(found)

    def _refuse_unknown(self, item_ids: list[int]) -> None:
        found = self._database.read(lambda connection: rows(connection, _SQL["unknown"], {"ids": item_ids}))
        if found:
            raise InputError(f"there is no item {found[0][0]}: register it before its observations")

    def _add(self, connection: Connection, batch: _Batch) -> None:
        rows(connection, _SQL["lock"], {"ids": [item_id for item_id, _ in batch]})
        runs = [
            (item_id, observation_codec.append_observations(None, seen[start : start + _ROWS_A_RUN]))
            for item_id, seen in batch
            for start in range(0, len(seen), _ROWS_A_RUN)
        ]
        seal(connection, runs, self._retention)
        counted = []
        for item_id, seen in batch:
            changed = [one.time_s for one in seen if one.changed]
            counted.append((item_id, len(seen), len(changed), seen[-1].time_s, max(changed, default=None)))
        given = arrays(("ids", "polls", "changes", "polled", "changed"), counted)
        rows(connection, _SQL["counted"], given)
        add_audits(connection, [one for _, seen in batch for one in seen], self._retention)

    def _batches(self, ids: Sequence[int] | None) -> Iterator[list[int]]:
        """Item ids by the thousand, growing."""
        if ids is not None:
            wanted = sorted(set(ids))
            for start in range(0, len(wanted), _ITEMS_A_BATCH):
                yield wanted[start : start + _ITEMS_A_BATCH]
            return
        last = 0
        while True:
            place = {"after": last, "limit": _ITEMS_A_BATCH}
            found = self._database.read(lambda c, place=place: rows(c, _SQL["items_after"], place))  # type: ignore[misc]
            if not found:
                return
            yield [row[0] for row in found]
            last = found[-1][0]


def append_recent(
    connection: Connection, polls: Sequence[tuple[bytes | None, Observation | None]], retention: Retention
) -> list[bytes | None]:
    """Each item's run of latest observations with one more; full ones are sealed and new ones begin."""
    recent: list[bytes | None] = []
    full = []
    for run, seen in polls:
        grown = run if seen is None else observation_codec.append_observations(run, [seen])
        if seen is not None and grown is not None and len(grown) >= _FULL_RUN:
            full.append((seen.item_id, grown))
            grown = None
        recent.append(grown)
    seal(connection, full, retention)
    return recent


def seal(connection: Connection, runs: Sequence[tuple[int, bytes]], retention: Retention) -> None:
    """Keep runs, and drop the oldest that the newer ones make superfluous."""
    if runs:
        table = [
            (item_id, observation_codec.last_time_us(run), observation_codec.count_observations(run), run)
            for item_id, run in runs
        ]
        given = arrays(("ids", "last", "observations", "data"), table)
        rows(connection, _SQL["seal"], given)
        rows(connection, _SQL["trim"], given | {"kept": retention.observations})


def add_audits(connection: Connection, seen: Sequence[Observation], retention: Retention) -> None:
    """List those that are audits."""
    table = audit_rows(seen)
    if table:
        rows(connection, _SQL["add_audits"], arrays(_AUDIT, table))
        rows(connection, _SQL["trim_audits"], {"kept": retention.audits})
