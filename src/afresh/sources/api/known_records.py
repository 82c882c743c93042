"""The records that a server lists: when each was last known to be right, on which page of the list it is, and
how fast it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from afresh.sources.search.record_tracker import RecordTracker
from afresh.sources.search.saved_records import RecordNote
from afresh.values.arrays import Bools, Float64s, Ints


@dataclass(frozen=True, slots=True, eq=False)
class KeyTable:
    """Keys of records, each with its row and its weight."""

    keys: list[str]
    weights: Float64s
    rows: dict[str, int]

    @classmethod
    def of(cls, keys: Iterable[str]) -> KeyTable:
        distinct = list(dict.fromkeys(keys))
        rows = {key: row for row, key in enumerate(distinct)}
        return cls(distinct, np.ones(len(distinct)), rows)


@dataclass(slots=True, eq=False)
class KnownRecords:
    """All records that the server has listed. ``pages`` are the keys on each page of the list, as it was last
    read.

    >>> known = KnownRecords(); known.add(["a", "b"]); known.table.keys
    ['a', 'b']
    >>> known.tracker.record(0, {"n": 1}, 100.0); known.confirmable(50.0)
    array([ True, False])
    """

    table: KeyTable = field(default_factory=lambda: KeyTable.of(()))
    pages: dict[int, tuple[str, ...]] = field(default_factory=dict)
    tracker: RecordTracker = field(init=False)

    def __post_init__(self) -> None:
        self.tracker = RecordTracker(self.table, {})

    def add(self, keys: Iterable[str]) -> None:
        """Add new keys; what is known of the others is kept."""
        new = [key for key in keys if key not in self.table.rows]
        if new:
            self._replace([*self.table.keys, *new])

    def keep_only(self, keys: Iterable[str]) -> None:
        """Forget all records but those of ``keys``, which a whole list names."""
        wanted = set(keys)
        if wanted != set(self.table.rows):
            self._replace([key for key in self.table.keys if key in wanted])
            self.add(wanted)

    def load(self, notes: Sequence[RecordNote]) -> None:
        self.add(note.key for note in notes)
        self.tracker.load(notes)

    def confirmable(self, since_s: float) -> Bools:
        """Return for each record whether a list of the changes since ``since_s`` (Unix seconds) shows if it
        has changed: whether it was known to be right then or later."""
        return np.asarray(self.tracker.seen_s >= since_s)

    def page_values(self, values: Float64s) -> Mapping[int, float]:
        """Return for each page of the list the sum of the ``values`` of its records."""
        return {
            number: float(values[self.rows_of(keys)].sum()) for number, keys in self.pages.items() if keys
        }

    def rows_of(self, keys: Iterable[str]) -> Ints:
        rows = self.table.rows
        return np.array([rows[key] for key in keys if key in rows], dtype=np.int64)

    def _replace(self, keys: list[str]) -> None:
        notes = tuple(self.tracker.save())
        self.table = KeyTable.of(keys)
        self.tracker = RecordTracker(self.table, {})
        self.tracker.load(notes)
