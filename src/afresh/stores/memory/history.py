"""Copies, observations and the policy's columns in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from afresh.stores.due_times import check_due
from afresh.stores.memory.world import Record, World
from afresh.stores.store import Retention
from afresh.values.arrays import Float64s
from afresh.values.errors import InputError
from afresh.values.items import STATUSES
from afresh.values.outcome import Observation
from afresh.values.stored import Copy, Ids, ObservationColumns, PolicyColumns, Version


class MemoryCopies:
    """``Copies`` in memory."""

    def __init__(self, world: World) -> None:
        """In one world."""
        self._world = world

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        """One copy."""
        copies = self._copies(item_id)
        if number is None:
            return copies[-1] if copies else None
        return next((copy for copy in copies if copy.version.number == number), None)

    def versions(self, item_id: int) -> list[Version]:
        """All versions kept."""
        return [copy.version for copy in reversed(self._copies(item_id))]

    def _copies(self, item_id: int) -> list[Copy]:
        with self._world:
            record = self._world.records.get(item_id)
            return list(record.copies) if record else []


class MemoryPlan:
    """``Plan`` in memory."""

    def __init__(self, world: World) -> None:
        """In one world."""
        self._world = world

    def columns(
        self,
        *,
        after_id: int = 0,
        batch: int = 8192,
        aside: bool = False,  # noqa: ARG002
    ) -> Iterator[PolicyColumns]:
        """All items; ``aside`` or not, nobody is waited for."""
        while True:
            with self._world:
                ids = sorted(i for i in self._world.records if i > after_id)[:batch]
                columns = self._columns(ids)
            if not ids:
                return
            after_id = ids[-1]
            yield columns

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        """Some items."""
        with self._world:
            return self._columns(sorted(set(ids) & self._world.records.keys()))

    def names(self) -> dict[int, str]:
        """All names."""
        with self._world:
            return {code: name for name, code in self._world.names.items()}

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        """Due times and beliefs of many."""
        check_due(ids, due_s)
        with self._world:
            for row, (item_id, due) in enumerate(zip(ids.tolist(), due_s.tolist(), strict=True)):
                record = self._world.records.get(item_id)
                if record is not None:
                    record.item = replace(record.item, due_s=due)
                    record.belief = record.belief if beliefs is None else beliefs[row]

    def _columns(self, ids: Sequence[int]) -> PolicyColumns:
        records = [self._world.records[item_id] for item_id in ids]
        items = [record.item for record in records]

        def numbers(name: str) -> Float64s:
            return np.array([getattr(item, name) for item in items], dtype=np.float64)

        return PolicyColumns(
            id=np.array(ids, dtype=np.int64),
            source=np.array([self._world.code(item.source) for item in items], dtype=np.int64),
            group=np.array([self._world.code(item.group) for item in items], dtype=np.int64),
            status=np.array([STATUSES.index(item.status) for item in items], dtype=np.int8),
            weight=numbers("weight"),
            cost=numbers("cost"),
            min_interval_s=numbers("min_interval_s"),
            max_interval_s=numbers("max_interval_s"),
            prior_rate_per_s=numbers("prior_rate_per_s"),
            polled_s=numbers("polled_s"),
            due_s=numbers("due_s"),
            belief_size=np.array([len(record.belief) for record in records], dtype=np.int64),
            beliefs=b"".join(record.belief for record in records),
        )


class MemoryObservations:
    """``Observations`` in memory."""

    def __init__(self, world: World, retention: Retention) -> None:
        """In one world."""
        self._world, self._retention = world, retention

    def read(self, ids: Sequence[int] | None = None) -> Iterator[ObservationColumns]:
        """Of all items or some, in one batch."""
        with self._world:
            wanted = self._world.records.keys() if ids is None else set(ids) & self._world.records.keys()
            seen = [one for item_id in sorted(wanted) for one in self._world.records[item_id].observations]
        if seen:
            yield _columns(seen)

    def add(self, observations: ObservationColumns) -> None:
        """Polls made elsewhere."""
        rows = _rows(observations)
        with self._world:
            unknown = {row.item_id for row in rows} - self._world.records.keys()
            if unknown:
                raise InputError(f"there is no item {min(unknown)}: register it before its observations")
            for row in rows:
                record = self._world.records[row.item_id]
                remember(self._world, record, row, self._retention)
                record.item = replace(
                    record.item,
                    polls=record.item.polls + 1,
                    changes=record.item.changes + row.changed,
                    polled_s=max(record.item.polled_s or row.time_s, row.time_s),
                    changed_s=_later(record.item.changed_s, row.time_s if row.changed else None),
                )

    def audits(self, since_s: float) -> ObservationColumns:
        """Those of all items."""
        with self._world:
            return _columns([one for one in self._world.audits if one.time_s >= since_s])


def remember(world: World, record: Record, seen: Observation, retention: Retention) -> None:
    """Keep an observation, to the microsecond, in order of time; forget those beyond the retention."""
    exact = replace(
        seen,
        time_s=_microseconds(seen.time_s),
        elapsed_s=_microseconds(seen.elapsed_s),
        modified_s=None if seen.modified_s is None else _microseconds(seen.modified_s),
    )
    record.observations.append(exact)
    record.observations.sort(key=lambda one: one.time_s)
    del record.observations[: -retention.observations]
    if seen.audit:
        world.audits.append(seen)
        del world.audits[: -retention.audits]


def _later(one: float | None, other: float | None) -> float | None:
    return max((time for time in (one, other) if time is not None), default=None)


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6) / 1e6


def _rows(columns: ObservationColumns) -> list[Observation]:
    order = np.lexsort((columns.time_s, columns.item_id))
    lists: list[list[Any]] = [getattr(columns, name)[order].tolist() for name in ObservationColumns.__slots__]
    return [
        Observation(item_id, time, elapsed, changed, _number(modified), _number(count), audit)
        for item_id, time, elapsed, changed, modified, count, audit in zip(*lists, strict=True)
    ]


def _number(value: float) -> Any:
    return None if math.isnan(value) else value


def _columns(seen: Sequence[Observation]) -> ObservationColumns:
    def doubles(name: str) -> Float64s:
        return np.array([getattr(one, name) for one in seen], dtype=np.float64)

    return ObservationColumns(
        np.array([one.item_id for one in seen], dtype=np.int64),
        doubles("time_s"),
        doubles("elapsed_s"),
        np.array([one.changed for one in seen], dtype=bool),
        doubles("modified_s"),
        doubles("count"),
        np.array([one.audit for one in seen], dtype=bool),
    )
