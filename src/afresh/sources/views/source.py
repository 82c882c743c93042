"""The view source: items are the materialised views of a PostgreSQL database.

A poll is a REFRESH of one view. It first refreshes the stale views that this view depends on. A refresh does
not block readers if the view has a suitable unique index (CONCURRENTLY). The copy describes the parts of the
view at that moment; a change means that a part changed since the last refresh. Between polls, the change
counters of the tables show staleness and rates, at the cost of three small queries (see ``capabilities``).

PostgreSQL sessions report their writes to the counters with a delay: up to a second while they are busy, up
to ten seconds after the last transaction (PostgreSQL 15 and later). So a change may be detected that much
later. If a refresh already contains a write that is reported after it, one unnecessary refresh follows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import blake2b

from afresh.sources.capabilities import Capabilities, GroupBackoff, StalenessReport
from afresh.sources.change_detection import content_hash
from afresh.sources.context import SourceContext
from afresh.sources.secrets import Secret
from afresh.sources.source import SingleGroupSource
from afresh.sources.sql.connection_thread import GRACE_S, ConnectionThread
from afresh.sources.sql.connections import PostgresConnection
from afresh.sources.sql.database_url import usable_address
from afresh.sources.sql.errors import SqlError
from afresh.sources.views.catalogue import Catalogue, CatalogueRelation, Stamp, State, is_known, is_stale
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.tracker import ViewTracker
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing, ListingEntry

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
_READING_S = 60.0  # time-out of a reading


class ViewSession(PostgresConnection):
    """A connection with the statements of the source. All methods may raise ``SqlError``."""

    def __init__(self, address: Secret, settings: ViewSettings, *, read_only: bool) -> None:
        super().__init__(
            address, timeout_s=settings.timeout, lock_s=settings.lock_timeout, read_only=read_only
        )
        self._settings = settings

    def catalogue(self, time_s: float) -> Catalogue:
        """Read all tables and views at the time ``time_s``. Raise ``SqlError`` on a standby server."""
        standby, counts, reset = self.query(_ABOUT)[0]
        if standby or not counts:
            raise SqlError(_STANDBY if standby else _UNCOUNTED, is_connection_lost=True)
        # Read the dependencies first; a relation created after that has none until the next reading.
        edges = self.query(_BELOW)
        names: dict[int, str] = {}
        relations: dict[str, CatalogueRelation] = {}
        for oid, name, kind, populated, changes, version, indexed in self.query(_RELATIONS):
            names[oid] = name
            relations[name] = CatalogueRelation(name, kind, Stamp(changes, version or 0), populated, indexed)
        below: dict[str, list[str]] = {}
        for whole, part in edges:
            if whole in names and part in names:
                below.setdefault(names[whole], []).append(names[part])
        parts = {name: tuple(sorted(found)) for name, found in below.items()}
        return Catalogue(relations, parts, self._settings.selects, reset, time_s)

    def refresh(self, view: CatalogueRelation) -> int:
        """Refresh a view, without blocking readers if possible. Return the number of its new file."""
        concurrently = "CONCURRENTLY " if view.indexed and view.populated else ""
        self.run(f"REFRESH MATERIALIZED VIEW {concurrently}{view.name}")
        found = self.query(_VERSION, (view.name,))
        return int(found[0][0]) if found else 0


class ViewSource(SingleGroupSource):
    """A ``StalenessSource`` for materialised views, which form one group. Refreshes use one connection,
    readings of the change counters use another. ``tracker`` knows what was read and refreshed."""

    def __init__(self, settings: ViewSettings, context: SourceContext) -> None:
        super().__init__(settings)
        self._settings, self._context = settings, context
        address, path = usable_address(settings.name, settings.url, context.resolver)
        if path is not None:
            raise UsageError(f"source {settings.name!r}, url: SQLite has no materialised views")
        self._refreshes: ConnectionThread[ViewSession] = ConnectionThread(
            settings.name, lambda: ViewSession(address, settings, read_only=False), context.clock
        )
        self._readings: ConnectionThread[ViewSession] = ConnectionThread(
            settings.name, lambda: ViewSession(address, settings, read_only=True), context.clock
        )
        self.tracker = ViewTracker()
        self._warned: set[str] = set()
        self.capabilities = Capabilities(staleness=self, state=self)

    def ready_s(self, group: str, now_s: float) -> float:
        """Return when windows and back-off allow a poll (Unix seconds); infinite while a refresh runs."""
        del group
        return max(self._windows.next_opening_s(now_s), self._refreshes.ready_s(now_s))

    def staleness_reports(self) -> Mapping[str, StalenessReport]:
        return self.tracker.reports()

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """Return nothing, because every process tries to connect by itself."""
        return ()

    def save_state(self) -> bytes:
        """Return what was learned, as bytes. After loading it, views polled since then count as stale."""
        return self.tracker.pack()

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        del backoffs
        self.tracker = ViewTracker.unpack(state)

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Refresh one view. If ``conditional`` is True and no part of the view has changed, do nothing."""
        clock = self._context.clock
        async with self._refreshes.lock:
            await self._context.admit(lease.group)
            start_s = clock.elapsed_s()
            try:
                seen = await self.read_catalogue(self._refreshes)
                if lease.key not in seen.views:
                    words = "there is no such materialised view among those selected: names are schema.view"
                    return Fetched("gone", problem=words, requests=1, seconds=clock.elapsed_s() - start_s)
                chain = self._chain(lease.key, seen, conditional=conditional)
                for view in chain:
                    await self._refresh(view, seen)
            except SqlError as error:
                backoff_s = self._refreshes.backoff_s() if error.is_connection_lost else None
                return Fetched(
                    "failed",
                    problem=str(error),
                    requests=1,
                    seconds=clock.elapsed_s() - start_s,
                    retry_after_s=backoff_s,
                )
            return self._result(lease, seen, chain, clock.elapsed_s() - start_s)

    async def listings(self) -> AsyncIterator[Listing]:
        """Read the change counters and list the views. A mark is a hash of the stamps of a view's parts."""
        now_s = self._context.clock.now_s()
        if self._readings.ready_s(now_s) > now_s:
            return
        async with self._readings.lock:
            await self._context.admit_reading(self._settings.name)
            start_s = self._context.clock.elapsed_s()
            problem, entries = "", []
            try:
                seen = await self.read_catalogue()
            except SqlError as error:
                problem = str(error)
            else:
                self.tracker.record_reading(seen)
                entries = [ListingEntry(view, _mark(view, seen)) for view in seen.views]
                problem = self._warning(seen)
        yield Listing(
            self._settings.name,
            "catalogue",
            tuple(entries),
            complete=not problem or bool(entries),
            requests=1,
            seconds=self._context.clock.elapsed_s() - start_s,
            problem=problem,
        )

    async def close(self) -> None:
        await self._refreshes.close()
        await self._readings.close()

    async def read_catalogue(self, thread: ConnectionThread[ViewSession] | None = None) -> Catalogue:
        """Read the catalogue and the change counters, by default on the connection for readings."""
        now_s, thread = self._context.clock.now_s(), thread or self._readings
        return await thread.run(lambda session: session.catalogue(now_s), _READING_S, retry=True)

    def _chain(self, view: str, seen: Catalogue, *, conditional: bool) -> list[str]:
        """Return the views to refresh: the stale views that ``view`` depends on, then ``view`` itself. The
        list is empty if ``conditional`` is True and nothing has changed."""
        states = self.tracker.states
        below = [name for name in seen.views if name in seen.upstream(view)]
        stale = [name for name in below if is_stale(name, seen, states.get(name))]
        own = states.get(view)
        if conditional and not stale and is_known(view, seen, own) and not is_stale(view, seen, own):
            return []
        return [*stale, view]

    async def _refresh(self, view: str, seen: Catalogue) -> None:
        clock, relation = self._context.clock, seen.relations[view]
        start_s = clock.elapsed_s()
        timeout_s = self._settings.timeout + GRACE_S
        version = await self._refreshes.run(lambda session: session.refresh(relation), timeout_s, retry=False)
        self.tracker.record_refresh(view, seen, version, clock.elapsed_s() - start_s)

    def _result(self, lease: Lease, seen: Catalogue, refreshed: list[str], seconds: float) -> Fetched:
        state = self.tracker.states[lease.key]
        cost = self.tracker.costs.get(lease.key)
        note = {
            "view": lease.key,
            "bases": seen.bases(lease.key),
            "rows_written": {name: state[name].changes for name in seen.bases(lease.key) if name in state},
            "refreshed": refreshed,
            "refresh_seconds": round(cost.mean, 6) if cost else None,
        }
        content = json.dumps(note, indent=1).encode()
        found = content_hash(_state_text(state))
        changed = found != lease.content_hash
        return Fetched(
            "content" if changed else "unchanged",
            content=content if changed else None,
            media_type="application/json",
            normal_hash=found,
            comparable=lease.content_hash is None or lease.validators.get("reset") == seen.reset,
            validators={"reset": seen.reset},
            requests=1,
            bytes=len(content),
            seconds=seconds,
        )

    def _warning(self, seen: Catalogue) -> str:
        """Return a warning if no view is selected, or if a refresh of a new view would block readers."""
        if not seen.views:
            asked = f" like {', '.join(self._settings.views)}" if self._settings.views else ""
            return f"there is no materialised view{asked}: names are schema.view"
        found = [view for view in seen.views if not seen.relations[view].indexed and view not in self._warned]
        self._warned.update(found)
        if not found:
            return ""
        return (
            f"no unique index on {', '.join(found)}: a refresh locks out readers; "
            "CREATE UNIQUE INDEX on plain columns lets them read on"
        )


def _mark(view: str, seen: Catalogue) -> str:
    """Return a short hash of the stamps of a view's parts. The engine takes a new hash as a notice."""
    state = {name: seen.relations[name].stamp for name in seen.parts(view)}
    return blake2b(_state_text(state), digest_size=8).hexdigest()


def _state_text(state: State) -> bytes:
    return repr(sorted((name, one.changes, one.version) for name, one in state.items())).encode()
