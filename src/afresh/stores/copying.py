"""Copies one store to another, whatever SQL databases they are in.

Rows go in batches, and with each batch the target remembers how far it came. So a copy that was killed goes
on where it stopped, and starts again if the source has been used in the meantime. Until the copy is complete
nobody else can open the target.
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
"""The named value that a target has while it is being filled: how far the copy has come."""

OnRows = Callable[[int, int], None]
"""Called with the number of rows copied and the number of all rows."""


class _Progress(NamedTuple):
    """``table`` is filled up to the key ``after``, the tables before it completely: ``done`` rows in all."""

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
    """Copy ``source``, as it is at this moment, to an empty ``target``, and return the number of rows."""
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
    """Return the error to raise for a store that is an unfinished copy, or None."""
    if data is None:
        return None
    source = _Progress.unpack(data).source
    return InputError(f"{name} is the unfinished copy of {source}: run the same 'afresh store copy' again")


def _start(
    source: SqlTables[Any], target: SqlTables[Any], own: dict[str, bytes], counters: Counters
) -> _Progress:
    """Return where to start; the target must be empty, or an unfinished copy of the same source."""
    problem = unfinished_copy_error(own.get(PROGRESS), source.name)
    if problem is not None:
        raise problem
    # What changes when a store is used: numbers given, polls made, values set.
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
