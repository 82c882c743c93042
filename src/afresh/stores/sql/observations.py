"""Observations in a SQL database, stored as runs: encoded sequences of an item's observations (``codecs``).

The latest run of an item is stored in the item's row of the table ``state``. A poll writes this row anyway,
so appending an observation there writes no further page of the database. A full run is *sealed*: it moves to
the table of runs, which costs one more page in about thirty polls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from afresh.stores.codecs import append_observations, count_observations, decode_runs, last_time_us
from afresh.stores.rows import group_by_item, observation_columns
from afresh.stores.sql.commit_changes import AcceptedPoll
from afresh.stores.sql.dialect import ConnectionT, Fetch, SqlDatabase, SqlPart
from afresh.stores.store import Observations, Retention
from afresh.values.errors import InputError
from afresh.values.outcome import Observation
from afresh.values.stored import ObservationColumns

_ITEMS_READ, _ITEMS_WRITTEN = 10_000, 1000  # items per batch
_FULL_RUN_BYTES = 256
_OBSERVATIONS_A_RUN = 64
_RUN = ("ids", "last", "observations", "data")
_AUDIT = ("ids", "times", "elapsed", "changed", "modified", "counts")


class SqlObservations(SqlPart[ConnectionT], Observations):
    file = "observations"

    def __init__(self, database: SqlDatabase[ConnectionT], retention: Retention) -> None:
        super().__init__(database)
        self._retention = retention

    def read(self, ids: Sequence[int] | None = None) -> Iterator[ObservationColumns]:
        with self._database.reader() as fetch:
            for batch in self._batches(fetch, ids):
                # One statement reads both tables, because another process may seal a run between two.
                found = fetch(self._sql["runs_of"], {"ids": self._database.as_list(batch)})
                if found:
                    yield decode_runs([item_id for item_id, _ in found], [run for _, run in found])

    def add(self, observations: ObservationColumns) -> None:
        item_ids: list[int] = np.unique(observations.item_id).tolist()
        unknown = self._fetch("unknown", ids=self._database.as_list(item_ids))
        if unknown:
            raise InputError(f"there is no item {unknown[0][0]}: register it before its observations")
        groups = group_by_item(observations)
        while batch := list(islice(groups, _ITEMS_WRITTEN)):
            self._database.write(partial(self._add_batch, batch=batch))

    def audits(self, since_s: float) -> ObservationColumns:
        return observation_columns([(*row, True) for row in self._fetch("audits", since=since_s)])

    def _add_batch(self, connection: ConnectionT, batch: list[tuple[int, list[Observation]]]) -> None:
        self._database.lock_states(connection, [item_id for item_id, _ in batch])
        runs = [
            (item_id, append_observations(None, seen[start : start + _OBSERVATIONS_A_RUN]))
            for item_id, seen in batch
            for start in range(0, len(seen), _OBSERVATIONS_A_RUN)
        ]
        self._seal_runs(connection, runs)
        table = []
        for item_id, seen in batch:
            changed = [one.time_s for one in seen if one.changed]
            table.append((len(seen), len(changed), seen[-1].time_s, max(changed, default=None), item_id))
        columns = ("polls", "changes", "polled", "changed", "ids")
        self._database.run_many(connection, self._sql["add_counts"], columns, table)
        self.add_audits(connection, [one for _, seen in batch for one in seen])

    def _batches(self, fetch: Fetch, ids: Sequence[int] | None) -> Iterator[list[int]]:
        """Yield batches of item ids, in ascending order: of ``ids``, or of all items if it is None."""
        if ids is not None:
            wanted = sorted(set(ids))
            for start in range(0, len(wanted), _ITEMS_READ):
                yield wanted[start : start + _ITEMS_READ]
            return
        last = 0
        while found := fetch(self._sql["items_after"], {"after": last, "limit": _ITEMS_READ}):
            yield [item_id for (item_id,) in found]
            last = found[-1][0]

    def append(self, connection: ConnectionT, polls: Sequence[AcceptedPoll]) -> list[bytes | None]:
        """Return for each poll its item's latest run with the observation appended. Runs that are full are
        sealed, and None is returned for them."""
        recent: list[bytes | None] = []
        full = []
        for poll in polls:
            run, seen = poll.before.recent, poll.outcome.observation
            grown = run if seen is None else append_observations(run, [seen])
            if seen is not None and grown is not None and len(grown) >= _FULL_RUN_BYTES:
                full.append((seen.item_id, grown))
                grown = None
            recent.append(grown)
        self._seal_runs(connection, full)
        return recent

    def add_audits(self, connection: ConnectionT, seen: Sequence[Observation]) -> None:
        """Add the audits among these observations to the table of audits, and drop its oldest rows."""
        audits = [one for one in seen if one.audit]
        table = [(s.item_id, s.time_s, s.elapsed_s, s.changed, s.modified_s, s.count) for s in audits]
        if table:
            self._database.run_many(connection, self._sql["add_audits"], _AUDIT, table)
            self._rows(connection, "trim_audits", {"kept": self._retention.audits})

    def _seal_runs(self, connection: ConnectionT, runs: Sequence[tuple[int, bytes]]) -> None:
        """Save these (item id, run), and drop the oldest runs of the same items beyond the retention."""
        if runs:
            table = [(item_id, last_time_us(run), count_observations(run), run) for item_id, run in runs]
            self._database.run_many(connection, self._sql["seal"], _RUN, table)
            ids = self._database.as_list(sorted({item_id for item_id, _ in runs}))
            self._rows(connection, "trim_runs", {"ids": ids, "kept": self._retention.observations})
