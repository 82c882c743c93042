"""Materialised views of PostgreSQL: their dependencies, the counters of their tables, and their refresh.

PostgreSQL sessions report their writes to the counters with a delay: up to a second while they are busy, up
to ten seconds after the last transaction (PostgreSQL 15 and later). So a change may be detected that much
later. If a refresh already contains a write that is reported after it, one unnecessary refresh follows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from afresh.sources.secrets import Secret
from afresh.sources.sql.connections import PostgresConnection
from afresh.sources.sql.errors import SqlError
from afresh.sources.views.catalogue import FOREIGN, Catalogue, CatalogueRelation, Stamp
from afresh.sources.views.named_views import UNCOUNTED
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.view_session import truth_of

# A crash resets all counters but not the reset time of the database; the archiver's reset time changes.
_ABOUT = """
    SELECT pg_is_in_recovery(), current_setting('track_counts') = 'on',
        concat_ws(' ', d.stats_reset::text, a.stats_reset::text)
    FROM pg_stat_database d, pg_stat_archiver a WHERE d.datname = current_database()
"""
# REFRESH … CONCURRENTLY requires a unique index on plain columns that covers all rows.
_RELATIONS = """
    SELECT c.oid::bigint, format('%%I.%%I', n.nspname, c.relname), c.relkind::text, c.relispopulated,
        coalesce(s.n_tup_ins + s.n_tup_upd + s.n_tup_del, 0)::bigint,
        CASE c.relkind WHEN 'v' THEN r.xmin::text::bigint ELSE c.relfilenode::bigint END,
        EXISTS (
            SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am a ON a.oid = x.relam
            WHERE i.indrelid = c.oid AND c.relkind = 'm' AND i.indisunique AND i.indimmediate AND i.indisvalid
                AND i.indpred IS NULL AND i.indexprs IS NULL AND a.amname = 'btree'
        )
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
    LEFT JOIN pg_rewrite r ON r.ev_class = c.oid AND c.relkind = 'v' AND r.rulename = '_RETURN'
    WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""
_BELOW = """
    SELECT DISTINCT r.ev_class::bigint, d.refobjid::bigint
    FROM pg_rewrite r
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class
    JOIN pg_class c ON c.oid = r.ev_class AND c.relkind IN ('v', 'm')
    UNION SELECT inhparent::bigint, inhrelid::bigint FROM pg_inherits
"""
_STANDBY = "the server is a standby, which cannot refresh views: give the primary's address"
_UNCOUNTED = "the server does not count rows, so no change can be detected: set track_counts to on"
_VERSION = "SELECT relfilenode::bigint FROM pg_class WHERE oid = %s::regclass"


class PostgresViews(PostgresConnection):
    """A ``ViewSession`` for PostgreSQL, whose materialised views it can refresh itself."""

    def __init__(self, address: Secret, settings: ViewSettings, *, read_only: bool) -> None:
        super().__init__(
            address, timeout_s=settings.timeout, lock_s=settings.lock_timeout, read_only=read_only
        )
        self._settings = settings

    def catalogue(self, time_s: float, names: Collection[str]) -> Catalogue:
        """Read all tables and views at the time ``time_s``. Raise ``SqlError`` on a standby server. Those of
        ``names`` that have no schema are tables and views of the schema ``public``."""
        standby, counts, reset = self.query(_ABOUT)[0]
        if standby or not counts:
            raise SqlError(_STANDBY if standby else _UNCOUNTED, is_connection_lost=True)
        # Read the dependencies first; a relation created after that has none until the next reading.
        edges = self.query(_BELOW)
        by_oid: dict[int, str] = {}
        relations: dict[str, CatalogueRelation] = {}
        for oid, name, kind, populated, changes, version, indexed in self.query(_RELATIONS):
            by_oid[oid] = name
            relations[name] = CatalogueRelation(name, kind, Stamp(changes, version or 0), populated, indexed)
        below: dict[str, list[str]] = {}
        for whole, part in edges:
            if whole in by_oid and part in by_oid:
                below.setdefault(by_oid[whole], []).append(by_oid[part])
        parts = {name: tuple(sorted(found)) for name, found in below.items()}
        for name in (name for name in names if name not in relations):
            if (full := f"public.{name}") in relations:
                relations[name], parts[name] = replace(relations[full], name=name), parts.get(full, ())
            else:
                relations[name] = CatalogueRelation(name, FOREIGN, UNCOUNTED, populated=False)
        return Catalogue(relations, parts, self._settings.selects, reset, time_s)

    def is_true(self, query: str) -> bool:
        """Return the truth that a query gives; see ``truth_of``."""
        return truth_of(self.query(query.replace("%", "%%")))

    def refresh(self, view: CatalogueRelation) -> int:
        """Refresh a view, without blocking readers if possible. Return the number of its new file."""
        concurrently = "CONCURRENTLY " if view.indexed and view.populated else ""
        self.run(f"REFRESH MATERIALIZED VIEW {concurrently}{view.name}")
        found = self.query(_VERSION, (view.name,))
        return int(found[0][0]) if found else 0
