"""One store copied to another, whole, whatever databases they are.

Rows go in batches; with each batch the target remembers how far it came. So a copy that was killed goes on
where it was, and starts anew if the source has been at work meanwhile. Until it is finished nobody else opens
the target.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from afresh.stores.beside import write_beside
from afresh.stores.rows import Row
from afresh.stores.tables import TABLES, Marks, Snapshot, Tables
from afresh.values.errors import InputError, UsageError

PROGRESS = "store.copy"
"""The named value that a target has while it is being filled."""

OnRows = Callable[[int, int], None]
"""Told how many rows of how many are there."""


@dataclass(frozen=True, slots=True)
class _Progress:
    """``table`` is filled up to the key ``after``, those before it are whole; ``done`` rows in all."""

    source: str
    marks: str
    table: str
    after: Row | None
    done: int

    def pack(self) -> bytes:
        return json.dumps([self.source, self.marks, self.table, self.after, self.done]).encode()

    @classmethod
    def unpack(cls, data: bytes) -> _Progress:
        source, marks, table, after, done = json.loads(data)
        return cls(source, marks, table, None if after is None else tuple(after), done)


def copy_store(source: Tables, target: Tables, on_rows: OnRows = lambda _, __: None) -> int:
    """Make ``target`` what ``source`` is at this moment; how many rows it has. A full target is refused."""
    if source.name == target.name:
        raise UsageError(f"{source.name} cannot be copied to itself")
    with source.snapshot() as snapshot:
        marks = snapshot.marks()
        start = _start(source, target, snapshot, marks)
        total = sum(snapshot.count(table) for table in TABLES)
        names = list(TABLES)
        done, after = start.done, start.after
        for table in names[names.index(start.table) :]:
            while rows := snapshot.rows(table, after):
                after, done = rows[-1][: TABLES[table].keys], done + len(rows)
                progress = _Progress(start.source, start.marks, table, after, done)
                target.load(table, rows, {PROGRESS: progress.pack()})
                on_rows(done, total)
            after = None
        target.finish(marks, {PROGRESS: None})
    return done


def backup_to_file(source: Tables, target: Path) -> None:
    """A store in a SQLite file, written beside the target, synced, then renamed."""
    from afresh.stores.sqlite.store import SqliteStore

    def fill(part: Path) -> None:
        with SqliteStore(part) as copy:
            copy_store(source, copy.tables)

    write_beside(target, fill)


def unfinished(data: bytes | None, name: str) -> InputError | None:
    """What to say of a store that is a copy half made."""
    if data is None:
        return None
    source = _Progress.unpack(data).source
    return InputError(f"{name} is the unfinished copy of {source}: run the same 'afresh store copy' again")


def _start(source: Tables, target: Tables, snapshot: Snapshot, marks: Marks) -> _Progress:
    """Where to go on; the target is empty, or an unfinished copy of the same source."""
    own: dict[str, bytes] = dict(_values(snapshot))
    problem = unfinished(own.get(PROGRESS), source.name)
    if problem is not None:
        raise problem
    seen = _fingerprint(snapshot, marks)
    beginning = _Progress(source.name, seen, next(iter(TABLES)), None, 0)
    with target.snapshot() as there:
        values: dict[str, bytes] = dict(_values(there))
        empty = not any(there.rows(table, None) for table in ("name", "item", "value"))
    if PROGRESS in values:
        progress = _Progress.unpack(values[PROGRESS])
        if progress.source != source.name:
            raise InputError(
                f"{target.name} is the unfinished copy of {progress.source}: finish that, or give another"
            )
        if progress.marks == seen:
            return progress
        target.clear()
    elif not empty:
        raise InputError(f"{target.name} is not empty: a store can only be copied to a new one")
    return beginning


def _values(snapshot: Snapshot) -> list[Row]:
    found: list[Row] = []
    while rows := snapshot.rows("value", found[-1][:1] if found else None):
        found += rows
    return found


def _fingerprint(snapshot: Snapshot, marks: Marks) -> str:
    """What changes when a store is used: numbers given, polls made, values set."""
    told = blake2b(json.dumps(dict(marks), sort_keys=True).encode(), digest_size=16)
    for name, data in _values(snapshot):
        told.update(f"{name} {len(data)} ".encode() + data)
    return told.hexdigest()
