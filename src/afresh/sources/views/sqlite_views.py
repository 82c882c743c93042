"""The tables of a SQLite database that views depend on. Triggers count their writes.

SQLite itself counts only the changes of a whole file, and every refresh of a view in the same file is one of
them. With the setting ``count_writes``, each table that a view depends on gets three triggers that count its
writes in the table ``afresh_writes``. Without it, staleness is known only by ``stale_when``. The tables that
a plain view reads are found by SQLite itself: it reports them when it compiles a query."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from afresh.sources.sql.connections import SqliteConnection, translate_errors
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.sessions import quote_identifier
from afresh.sources.views.catalogue import PLAIN, Catalogue, CatalogueRelation, Stamp
from afresh.sources.views.named_views import catalogue_of, short_hash
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.view_session import truth_of

COUNTS = "afresh_writes"
_BUSY_S = 5.0
_EVENTS = ("insert", "update", "delete")
_COUNTS_TABLE = f"""
    CREATE TABLE IF NOT EXISTS {COUNTS} (
        name TEXT PRIMARY KEY, changes INTEGER NOT NULL, version INTEGER NOT NULL
    )
"""
# A table that was created again has no triggers: then its counter starts again, with another version.
_NEW_COUNT = f"""
    INSERT INTO {COUNTS} VALUES (?, 0, 1) ON CONFLICT (name) DO UPDATE SET version = version + 1
"""
_SCHEMA = "SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view')"


class SqliteViews(SqliteConnection):
    """A ``ViewSession`` for SQLite. It reads only, but for the triggers."""

    def __init__(self, path: Path, settings: ViewSettings) -> None:
        super().__init__(path)
        self._path, self._settings = path, settings

    def catalogue(self, time_s: float, names: Collection[str]) -> Catalogue:
        """Return the tables and views of ``names`` and the tables that plain views among them read."""
        schema = {name: (kind, sql) for name, kind, sql in self.table(_SCHEMA, ())[1]}
        below = {}
        waiting = [name for name in names if schema.get(name, ("",))[0] == "view"]
        while waiting:
            view = waiting.pop()
            below[view] = self._tables_read_by(view) & schema.keys()
            waiting += [name for name in below[view] - below.keys() if schema[name][0] == "view"]
        known = {*names, *(table for tables in below.values() for table in tables)}
        views = self._settings.named_views.keys()
        tables = sorted(name for name in known if schema.get(name, ("",))[0] == "table")
        if self._settings.count_writes:
            self._count_writes([name for name in tables if name not in views])
        counts = self._counts()
        stamps: dict[str, Stamp | None] = dict.fromkeys(known)
        for name in tables:
            if name in counts:
                changes, version = counts[name]
                stamps[name] = Stamp(changes, short_hash(version, schema[name][1]))
        found = catalogue_of(stamps, known - schema.keys(), "", time_s)
        plain = {
            view: CatalogueRelation(view, PLAIN, Stamp(0, short_hash(schema[view][1]))) for view in below
        }
        parts = {view: tuple(sorted(tables)) for view, tables in below.items()}
        return Catalogue({**found.relations, **plain}, parts, found.selects, "", time_s)

    def is_true(self, query: str) -> bool:
        return truth_of(self.table(query, ())[1])

    def refresh(self, view: CatalogueRelation) -> int:
        raise SqlError(f"{view.name}: SQLite has no materialised views: set refresh")

    def _tables_read_by(self, view: str) -> set[str]:
        """Return the tables and views that a plain view reads, as SQLite reports them when it compiles."""
        found: set[str] = set()

        def note(action: int, table: str | None, *_: object) -> int:
            if action == sqlite3.SQLITE_READ and table:
                found.add(table)
            return sqlite3.SQLITE_OK

        self._raw.set_authorizer(note)
        try:
            self.table(f"EXPLAIN SELECT * FROM {quote_identifier(view)}", ())
        finally:
            self._raw.set_authorizer(None)
        return found - {view}

    def _counts(self) -> dict[str, tuple[int, int]]:
        if not self.table("SELECT 1 FROM sqlite_schema WHERE name = ?", (COUNTS,))[1]:
            return {}
        rows = self.table(f"SELECT name, changes, version FROM {COUNTS}", ())[1]
        triggers = {
            name for (name,) in self.table("SELECT name FROM sqlite_schema WHERE type = 'trigger'", ())[1]
        }
        return {
            name: (changes, version)
            for name, changes, version in rows
            if triggers.issuperset(_triggers(name))
        }

    def _count_writes(self, tables: list[str]) -> None:
        """Create the triggers of the tables that have none yet. A virtual table cannot have any."""
        counts = self._counts()
        missing = [name for name in tables if name not in counts and name != COUNTS]
        virtual = {
            name
            for (name,) in self.table("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'", ())[
                1
            ]
        }
        if not set(missing) - virtual:
            return
        with translate_errors(), closing(sqlite3.connect(self._path, timeout=_BUSY_S)) as writer, writer:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute(_COUNTS_TABLE)
            for name in (name for name in missing if name not in virtual):
                writer.execute(_NEW_COUNT, (name,))
                text = "'" + name.replace("'", "''") + "'"
                for event, trigger in zip(_EVENTS, _triggers(name), strict=True):
                    quoted = quote_identifier(trigger)
                    writer.execute(f"DROP TRIGGER IF EXISTS {quoted}")
                    writer.execute(
                        f"CREATE TRIGGER {quoted} AFTER {event} ON {quote_identifier(name)} "
                        f"BEGIN UPDATE {COUNTS} SET changes = changes + 1 WHERE name = {text}; END"
                    )


def _triggers(table: str) -> list[str]:
    return [f"afresh_{event}_{table}" for event in _EVENTS]
