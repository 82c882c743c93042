"""Copies one store to another, in the same or in another SQL database.

Rows are copied in batches, and each batch also saves the progress in the target. So a copy that was killed
continues where it stopped, or starts again if the source was used in the meantime. Until the copy is
complete, the target cannot be opened as a store.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

from afresh.stores.rows import Row
from afresh.stores.sql.transfer import TABLES, Counters, SqlTables
from afresh.values.errors import InputError, UsageError

PROGRESS = "store.copy"
"""The name under which an unfinished target saves its ``_Progress``."""

OnRows = Callable[[int, int], None]
"""A function that is called with the number of rows copied so far and the number of all rows."""


class _Progress(NamedTuple):
    """How far a copy is: ``done`` rows in all, the last of them in ``table`` with the key ``after``.

    ``fingerprint`` identifies the state of the source.
    """

    source: str
    fingerprint: str
    table: str
    after: Row | None
    done: int

    def pack(self) -> bytes:
        return json.dumps(self).encode()

    @classmethod
    def unpack(cls, data: bytes) -> _Progress:
        source, fingerprint, table, after, done = json.loads(data)
        return cls(source, fingerprint, table, None if after is None else tuple(after), done)


def copy_store(source: SqlTables[Any], target: SqlTables[Any], on_rows: OnRows = lambda _, __: None) -> int:
    """Copy the current state of ``source`` to an empty ``target``, and return the number of rows."""
    if source.name == target.name:
        raise UsageError(f"{source.name} cannot be copied to itself")
    with source.snapshot() as connection:
        counters = source.counters(connection)
        start = _start(source, target, _values(source, connection), counters)
        total = source.count(connection)
        names = list(TABLES)
        done, after = start.done, start.after
        for table in names[names.index(start.table) :]:
            while rows := source.rows(connection, table, after):
                after, done = rows[-1][: TABLES[table].keys], done + len(rows)
                progress = start._replace(table=table, after=after, done=done)
                target.load(table, rows, {PROGRESS: progress.pack()})
                on_rows(done, total)
            after = None
        target.finish(counters, {PROGRESS: None})
    return done


def unfinished_copy_error(data: bytes | None, name: str) -> InputError | None:
    """Return the error for opening an unfinished copy, or None if the store ``name`` is not one.

    ``data`` is the value of ``PROGRESS`` in the store.
    """
    if data is None:
        return None
    source = _Progress.unpack(data).source
    return InputError(f"{name} is the unfinished copy of {source}: run the same 'afresh store copy' again")


def _start(
    source: SqlTables[Any], target: SqlTables[Any], own: dict[str, bytes], counters: Counters
) -> _Progress:
    """Return the progress to start from; raise unless the target is empty or a copy of this source."""
    problem = unfinished_copy_error(own.get(PROGRESS), source.name)
    if problem is not None:
        raise problem
    # Every use of a store changes one of these: the numbers given, the polls made or the values set.
    digest = blake2b(json.dumps(dict(counters), sort_keys=True).encode(), digest_size=16)
    for name, data in own.items():
        digest.update(f"{name} {len(data)} ".encode() + data)
    fingerprint = digest.hexdigest()
    beginning = _Progress(source.name, fingerprint, next(iter(TABLES)), None, 0)
    with target.snapshot() as there:
        values = _values(target, there)
        empty = not any(target.rows(there, table, None) for table in ("name", "item", "value"))
    if PROGRESS in values:
        progress = _Progress.unpack(values[PROGRESS])
        if progress.source != source.name:
            raise InputError(
                f"{target.name} is the unfinished copy of {progress.source}: finish that, or give another"
            )
        if progress.fingerprint == fingerprint:
            return progress
        target.clear()
    elif not empty:
        raise InputError(f"{target.name} is not empty: a store can only be copied to a new one")
    return beginning


def _values(tables: SqlTables[Any], connection: object) -> dict[str, bytes]:
    found: list[Row] = []
    while rows := tables.rows(connection, "value", found[-1][:1] if found else None):
        found += rows
    return dict(found)
