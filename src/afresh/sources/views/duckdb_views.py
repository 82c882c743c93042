"""The tables of a DuckDB file that views depend on. A hash of their rows shows whether they changed.

DuckDB has no change counters, but it hashes millions of rows per second: the stamp of a table is the number
of its rows and the sum of their hashes. The file is read only after it was written. DuckDB lets either one
process write a file or several read it, so the file is open only during a reading, and a reading waits up to
``lock_timeout`` for a process that writes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.sessions import quote_identifier
from afresh.sources.views.catalogue import PLAIN, Catalogue, CatalogueRelation, Stamp
from afresh.sources.views.named_views import catalogue_of, short_hash
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.view_session import truth_of
from afresh.values.formatting import one_line

if TYPE_CHECKING:
    import duckdb

_TRY_EVERY_S = 0.05
_TABLE = re.compile(r'"Table": "([^"]*)"')
_RELATIONS = """
    SELECT schema_name, table_name, '' FROM duckdb_tables() WHERE NOT internal
    UNION ALL SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal
"""


class DuckdbViews:
    """A ``ViewSession`` for a DuckDB file."""

    def __init__(self, path: Path, settings: ViewSettings) -> None:
        self._path, self._settings = path, settings
        self._raw: duckdb.DuckDBPyConnection | None = None
        self._given_up = Event()
        self._last: tuple[object, Catalogue] | None = None

    def catalogue(self, time_s: float, names: Collection[str]) -> Catalogue:
        """Return the tables and views of ``names``, and the tables that plain views among them read."""
        mark = (_file_mark(self._path), frozenset(names))
        if self._last is not None and self._last[0] == mark:
            last = self._last[1]
            return Catalogue(last.relations, last.below, last.selects, last.reset, time_s)
        with self._open() as raw:
            found = _read(raw, names, time_s)
        # If another process wrote the file during the reading, it is read again the next time.
        self._last = (mark, found) if _file_mark(self._path) == mark[0] else None
        return found

    def is_true(self, query: str) -> bool:
        with self._open() as raw:
            return truth_of(raw.execute(query).fetchmany(1))

    def refresh(self, view: CatalogueRelation) -> int:
        raise SqlError(f"{view.name}: DuckDB has no materialised views: set refresh")

    def interrupt(self) -> None:
        self._given_up.set()
        raw = self._raw
        if raw is not None:
            raw.interrupt()

    def close(self) -> None:
        """Do nothing, because no connection is left open."""

    @contextmanager
    def _open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        import duckdb

        self._given_up.clear()
        try:
            with self._connect() as raw:
                self._raw = raw
                yield raw
        except duckdb.InterruptException:
            raise SqlError("took longer than its time-out allows") from None
        except duckdb.Error as error:
            raise SqlError(
                one_line(error), is_connection_lost=isinstance(error, duckdb.IOException)
            ) from None
        finally:
            self._raw = None

    def _connect(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        waited_s = 0.0
        while True:
            try:
                return duckdb.connect(str(self._path), read_only=True)
            except duckdb.IOException as error:
                is_locked = "lock" in str(error)
                if not is_locked:
                    raise
                if waited_s >= self._settings.lock_timeout:
                    words = "another process writes the file, and DuckDB lets nobody read it meanwhile"
                    raise SqlError(words, is_connection_lost=True) from None
            if self._given_up.wait(_TRY_EVERY_S):
                raise SqlError("the poll of this statement has ended")
            waited_s += _TRY_EVERY_S


def _read(raw: duckdb.DuckDBPyConnection, names: Collection[str], time_s: float) -> Catalogue:
    known: dict[str, tuple[str, str]] = {}
    for schema, name, sql in raw.execute(_RELATIONS).fetchall():
        place = f"{quote_identifier(schema)}.{quote_identifier(name)}"
        known[f"{schema}.{name}"] = (place, sql)
        if schema == "main" or name not in known:
            known[name] = (place, sql)
    plain, below, wanted = {}, {}, list(names)
    stamps: dict[str, Stamp | None] = {}
    while wanted:
        name = wanted.pop()
        place, sql = known.get(name, ("", ""))
        if sql and name not in plain:
            definition = _definition(sql, {view: text for view, (_, text) in known.items() if text})
            plain[name] = CatalogueRelation(name, PLAIN, Stamp(0, short_hash(definition)))
            below[name] = _tables_read_by(raw, place)
            wanted += below[name]
        elif name not in stamps and name not in plain:
            stamps[name] = _stamp(raw, place) if place else None
    # Another version of DuckDB may compute other hashes.
    version = str(raw.execute("SELECT version()").fetchall()[0][0])
    found = catalogue_of(stamps, stamps.keys() - known.keys(), version, time_s)
    return Catalogue({**found.relations, **plain}, below, found.selects, found.reset, time_s)


def _tables_read_by(raw: duckdb.DuckDBPyConnection, view: str) -> tuple[str, ...]:
    """Return the tables that a plain view reads, also through others: those of its plan."""
    raw.execute("SET explain_output = 'all'")
    plans = dict(raw.execute(f"EXPLAIN (FORMAT json) SELECT * FROM {view}").fetchall())
    # The plan before it is optimised has all tables, each written database.schema.table.
    return tuple(sorted({".".join(found.split(".")[-2:]) for found in _TABLE.findall(plans["logical_plan"])}))


def _definition(sql: str, views: Mapping[str, str]) -> list[str]:
    """Return the definition of a view and those of all views that it may read: whose names it contains."""
    found, waiting = [sql], [sql]
    while waiting:
        text = waiting.pop()
        more = {sql for name, sql in views.items() if re.search(rf"\b{re.escape(name)}\b", text)} - set(found)
        found += sorted(more)
        waiting += more
    return found


def _stamp(raw: Any, place: str) -> Stamp:
    rows, total = raw.execute(f"SELECT count(*), sum(hash(t)) FROM {place} AS t").fetchall()[0]
    return Stamp(0, short_hash(int(rows), int(total or 0)))


def _file_mark(path: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """Return what shows that a file or its write-ahead log was written."""
    found: list[tuple[int, int, int] | None] = []
    for each in (path, path.with_name(f"{path.name}.wal")):
        try:
            stat = each.stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)
