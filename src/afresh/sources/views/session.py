"""One connection that reads the catalogue and the counters of a database, or refreshes its views."""

from __future__ import annotations

from afresh.sources.secrets import Secret
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.postgres_connection import PostgresConnection
from afresh.sources.views.catalogue import Catalogue, CatalogueRelation, Stamp
from afresh.sources.views.settings import ViewSettings

# A crash sets all counters back and leaves the database's own note of resets empty; the archiver's tells.
_ABOUT = """
    SELECT pg_is_in_recovery(), current_setting('track_counts') = 'on',
        concat_ws(' ', d.stats_reset::text, a.stats_reset::text)
    FROM pg_stat_database d, pg_stat_archiver a WHERE d.datname = current_database()
"""
# A unique index on plain columns over all rows is what REFRESH … CONCURRENTLY asks for.
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
_STANDBY = "the server is a standby, which lags behind and refreshes nothing: give the primary's address"
_UNCOUNTED = "the server counts no rows, so that no change is seen: set track_counts to on"
_VERSION = "SELECT relfilenode::bigint FROM pg_class WHERE oid = %s::regclass"


class ViewSession:
    """Used by one thread at a time, but for ``interrupt``; every method may raise ``SqlError``."""

    def __init__(self, address: Secret, settings: ViewSettings, *, read_only: bool) -> None:
        self._settings = settings
        self._connection = PostgresConnection(
            address, timeout_s=settings.timeout, lock_s=settings.lock_timeout, read_only=read_only
        )

    def catalogue(self, time_s: float) -> Catalogue:
        """All tables and views as they are now; refuses a standby, where nothing can be refreshed."""
        standby, counts, reset = self._connection.rows(_ABOUT)[0]
        if standby or not counts:
            raise SqlError(_STANDBY if standby else _UNCOUNTED, lost=True)
        # The edges first: what is made in between is then a relation that nothing stands on yet.
        edges = self._connection.rows(_BELOW)
        names: dict[int, str] = {}
        relations: dict[str, CatalogueRelation] = {}
        for oid, name, kind, populated, changes, version, indexed in self._connection.rows(_RELATIONS):
            names[oid] = name
            relations[name] = CatalogueRelation(name, kind, Stamp(changes, version or 0), populated, indexed)
        below: dict[str, list[str]] = {}
        for whole, part in edges:
            if whole in names and part in names:
                below.setdefault(names[whole], []).append(names[part])
        parts = {name: tuple(sorted(found)) for name, found in below.items()}
        return Catalogue(relations, parts, self._settings.selects, reset, time_s)

    def refresh(self, view: CatalogueRelation) -> int:
        """Refresh a view, beside its readers where that is possible; the version of its file afterwards."""
        beside = "CONCURRENTLY " if view.indexed and view.populated else ""
        self._connection.run(f"REFRESH MATERIALIZED VIEW {beside}{view.name}")
        found = self._connection.rows(_VERSION, (view.name,))
        return int(found[0][0]) if found else 0

    def interrupt(self) -> None:
        """End the statement under way."""
        self._connection.interrupt()

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()
