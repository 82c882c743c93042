"""Copies one store (the source) to another (the target), in the same or in another SQL database.

Database rows are copied in batches, and each batch also saves the progress in the target. So copying that was
interrupted continues where it stopped, or starts again if the source was used in the meantime. Until the copy
is complete, the target cannot be opened as a store.
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
"""A function that is called with two numbers: the rows copied so far, and all rows to copy."""


class _Progress(NamedTuple):
    """How far copying has come: ``done`` rows were copied, the last one to ``table``, with the key ``after``.
    ``source`` is the name of the store that is copied."""

    source: str
    fingerprint: str  # identifies the state of the source
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
    """Copy all data of ``source`` to an empty ``target``, and return the number of rows copied."""
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
                after, done = rows[-1][: len(TABLES[table])], done + len(rows)
                progress = start._replace(table=table, after=after, done=done)
                columns = source.columns(connection, table)
                target.load(table, columns, rows, {PROGRESS: progress.pack()})
                on_rows(done, total)
            after = None
        target.finish(counters, {PROGRESS: None})
    return done


def unfinished_copy_error(data: bytes | None, name: str) -> InputError | None:
    """Return the error to raise when the store ``name`` is an unfinished copy, or None if it is complete.

    ``data`` is the store's value of ``PROGRESS``; None means that the store is complete."""
    if data is None:
        return None
    source = _Progress.unpack(data).source
    return InputError(f"{name} is the unfinished copy of {source}: run the same 'afresh store copy' again")


def _start(
    source: SqlTables[Any], target: SqlTables[Any], own: dict[str, bytes], counters: Counters
) -> _Progress:
    """Return the progress from which copying starts or continues.

    ``own`` are all named values of the source. Raise ``InputError`` unless the target is empty or an
    unfinished copy of this source."""
    problem = unfinished_copy_error(own.get(PROGRESS), source.name)
    if problem is not None:
        raise problem
    # Every use of a store changes its counters or its named values, so together they identify its state.
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
