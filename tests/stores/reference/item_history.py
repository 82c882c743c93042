"""Copies, observations and what the policy remembers, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace

from tests.stores.reference.data import ItemRecord, ReferenceData, ReferenceGroup

from afresh.stores.rows import (
    STATUS_CODE,
    Row,
    check_due_times,
    group_by_item,
    observation_columns,
    policy_columns,
)
from afresh.stores.store import Copies, Observations, Plan, Retention
from afresh.values.arrays import Float64s
from afresh.values.errors import InputError
from afresh.values.outcome import Observation
from afresh.values.stored import Copy, Ids, ObservationColumns, PolicyColumns, Version


class ReferenceCopies(ReferenceGroup, Copies):
    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        copies = self._copies(item_id)
        if number is None:
            return copies[-1] if copies else None
        return next((copy for copy in copies if copy.version.number == number), None)

    def versions(self, item_id: int) -> list[Version]:
        return [copy.version for copy in reversed(self._copies(item_id))]

    def text(self, content_hash: bytes, form: str) -> str | None:
        with self._data:
            return self._data.texts.get((content_hash, form)) if self._has_content(content_hash) else None

    def save_text(self, content_hash: bytes, form: str, text: str) -> None:
        with self._data:
            if self._has_content(content_hash):
                self._data.texts[content_hash, form] = text

    def _has_content(self, content_hash: bytes) -> bool:
        copies = (copy for record in self._data.records.values() for copy in record.copies)
        return any(copy.version.hash == content_hash for copy in copies)

    def _copies(self, item_id: int) -> list[Copy]:
        with self._data:
            record = self._data.records.get(item_id)
            return list(record.copies) if record else []


class ReferencePlan(ReferenceGroup, Plan):
    def columns(
        self,
        *,
        after_id: int = 0,
        batch: int = 8192,
        whole_batches: bool = False,  # noqa: ARG002
    ) -> Iterator[PolicyColumns]:
        while True:
            with self._data:
                ids = sorted(i for i in self._data.records if i > after_id)[:batch]
                columns = self._columns(ids)
            if not ids:
                return
            after_id = ids[-1]
            yield columns

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        with self._data:
            return self._columns(sorted(set(ids) & self._data.records.keys()))

    def names(self) -> dict[int, str]:
        with self._data:
            return {code: name for name, code in self._data.names.items()}

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        check_due_times(ids, due_s)
        with self._data:
            for row, (item_id, due) in enumerate(zip(ids.tolist(), due_s.tolist(), strict=True)):
                record = self._data.records.get(item_id)
                if record is not None:
                    record.item = replace(record.item, due_s=due)
                    record.belief = record.belief if beliefs is None else beliefs[row]

    def _columns(self, ids: Sequence[int]) -> PolicyColumns:
        return policy_columns([self._row(self._data.records[item_id]) for item_id in ids])

    def _row(self, record: ItemRecord) -> Row:
        item = record.item
        codes = self._data.code(item.source), self._data.code(item.group), STATUS_CODE[item.status]
        limits = item.min_interval_s, item.max_interval_s, item.prior_rate_per_s
        times = item.polled_s, item.due_s
        return (item.id, *codes, item.weight, item.cost, *limits, *times, record.belief)


class ReferenceObservations(ReferenceGroup, Observations):
    def __init__(self, data: ReferenceData, retention: Retention) -> None:
        super().__init__(data)
        self._retention = retention

    def read(self, ids: Sequence[int] | None = None) -> Iterator[ObservationColumns]:
        with self._data:
            wanted = self._data.records.keys() if ids is None else set(ids) & self._data.records.keys()
            seen = [one for item_id in sorted(wanted) for one in self._data.records[item_id].observations]
        if seen:
            yield _columns(seen)

    def add(self, observations: ObservationColumns) -> None:
        rows = [row for _, group in group_by_item(observations) for row in group]
        with self._data:
            unknown = {row.item_id for row in rows} - self._data.records.keys()
            if unknown:
                raise InputError(f"there is no item {min(unknown)}: register it before its observations")
            for row in rows:
                record = self._data.records[row.item_id]
                keep_observation(self._data, record, row, self._retention)
                item, time_s = record.item, row.time_s
                record.item = replace(
                    item,
                    polls=item.polls + 1,
                    changes=item.changes + row.changed,
                    polled_s=max(item.polled_s or time_s, time_s),
                    changed_s=max(item.changed_s or time_s, time_s) if row.changed else item.changed_s,
                )

    def audits(self, since_s: float) -> ObservationColumns:
        with self._data:
            return _columns([one for one in self._data.audits if one.time_s >= since_s])


def keep_observation(
    data: ReferenceData, record: ItemRecord, seen: Observation, retention: Retention
) -> None:
    """Keep an observation, exact to the microsecond, in order of time; drop those beyond the retention."""
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
        data.audits.append(seen)
        del data.audits[: -retention.audits]


def _columns(seen: Sequence[Observation]) -> ObservationColumns:
    return observation_columns([astuple(one) for one in seen])


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6) / 1e6
