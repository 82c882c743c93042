"""The view source: items are materialised views, or any tables and models that something can rebuild.

A poll is a refresh of one view: by PostgreSQL, by a command or by a function of the user. It first refreshes
the stale views that this view depends on. The copy describes the parts of the view at that moment; a change
means that a part changed since the last refresh. Between polls, the change counters of the tables, or the
query or function ``stale_when``, show staleness and rates, at a small cost (see ``capabilities``)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from afresh.sources.capabilities import Capabilities, GroupBackoff, StalenessReport
from afresh.sources.change_detection import content_hash
from afresh.sources.context import SourceContext
from afresh.sources.source import SingleGroupSource
from afresh.sources.sql.connection_thread import GRACE_S, ConnectionThread
from afresh.sources.sql.database_url import open_any_address
from afresh.sources.sql.errors import SqlError
from afresh.sources.views.catalogue import Catalogue, State, is_known, is_stale
from afresh.sources.views.dbt_artifacts import DbtTarget
from afresh.sources.views.dbt_catalogue import contain_loads, project_catalogue
from afresh.sources.views.named_views import add_named_views, add_statements
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.tracker import ViewTracker
from afresh.sources.views.user_refresh import UserRefresh
from afresh.sources.views.view_session import ViewSession, session_opener
from afresh.values.errors import InputError, UsageError
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing, ListingEntry

_READING_S = 60.0  # time-out of a reading


class ViewSource(SingleGroupSource):
    """A ``StalenessSource`` for views, which form one group. Refreshes use one connection, readings of the
    change counters use another. ``tracker`` knows what was read and refreshed."""

    def __init__(self, settings: ViewSettings, context: SourceContext) -> None:
        super().__init__(settings)
        self._settings, self._context = settings, context
        address, kind = None, None
        if settings.url:
            address, kind = open_any_address(settings.name, settings.url, context.resolver)
        if kind != "postgresql" and settings.refresh_with is None:
            raise UsageError(f"source {settings.name!r}: only PostgreSQL refreshes views itself: set refresh")
        opener = session_opener(address, kind, settings)
        self._refreshes: ConnectionThread[ViewSession] = ConnectionThread(
            settings.name, lambda: opener(False), context.clock
        )
        self._readings: ConnectionThread[ViewSession] = ConnectionThread(
            settings.name, lambda: opener(True), context.clock
        )
        # While a process writes a DuckDB file nobody reads it, so that a reading would only wait.
        self._is_exclusive = kind == "duckdb"
        self._user = UserRefresh(settings)
        self._dbt = DbtTarget(Path(settings.dbt)) if settings.dbt else None
        self.tracker = ViewTracker()
        self._warned: set[str] = set()
        self.capabilities = Capabilities(staleness=self, state=self)

    def ready_s(self, group: str, now_s: float) -> float:
        """Return when windows and back-off allow a poll (Unix seconds); infinite while a refresh runs."""
        del group
        if self._user.is_running or (self._is_exclusive and self._readings.is_busy):
            return float("inf")
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
                    words = words if not self._user.can_refresh else "the settings name no such view"
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
        if self._readings.ready_s(now_s) > now_s or (self._is_exclusive and self._refreshes.lock.locked()):
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
                self.tracker.record_reading(seen, keeps_old=self._dbt is not None and not self._settings.url)
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
        await self._user.close()
        await self._refreshes.close()
        await self._readings.close()

    async def read_catalogue(self, thread: ConnectionThread[ViewSession] | None = None) -> Catalogue:
        """Read the catalogue, the change counters and what ``stale_when`` states, by default on the
        connection for readings."""
        now_s, thread, settings = self._context.clock.now_s(), thread or self._readings, self._settings
        if self._dbt is not None:
            return await self._read_models(self._dbt, thread, now_s)
        named = settings.named_views
        names = {*named, *(base for bases in named.values() for base in bases)}
        seen = await thread.run(lambda session: session.catalogue(now_s, names), _READING_S, retry=True)
        seen = add_named_views(seen, named, settings.selects)
        stated = await self._user.read_statements(seen.views, thread, _READING_S)
        if not stated:
            return seen
        seen = add_statements(seen, stated, self.tracker.stamps, self.tracker.states)
        for view in (view for view, stated_stale in stated.items() if not stated_stale):
            self.tracker.confirm_fresh(view, seen)
        return seen

    async def _read_models(
        self, target: DbtTarget, thread: ConnectionThread[ViewSession], now_s: float
    ) -> Catalogue:
        """Read the models of a dbt project, with what the database or the freshness of sources shows."""
        try:
            project, freshness = await asyncio.to_thread(target.read)
        except InputError as error:
            raise SqlError(str(error)) from None
        if self._settings.url:
            names = [node.relation for node in project.nodes.values() if node.holds_rows]
            seen = await thread.run(lambda session: session.catalogue(now_s, names), _READING_S, retry=True)
            return project_catalogue(project, seen, None, self._settings.selects, now_s)
        time_s = now_s if freshness is None else freshness.time_s
        found = project_catalogue(project, None, freshness, self._settings.selects, time_s)
        contain_loads(self.tracker, found, {} if freshness is None else freshness.loaded_s)
        return found

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
        version: int | None = None  # that of the next reading
        if self._user.can_refresh:
            if self._dbt is not None:  # the reading is as old as the freshness of the sources
                seen = Catalogue(seen.relations, seen.below, seen.selects, seen.reset, clock.now_s())
            await self._user.refresh(view)
        else:
            version = await self._refreshes.run(
                lambda session: session.refresh(relation), timeout_s, retry=False
            )
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
        """Return a warning if no view is selected, if a target lag fits none, if a refresh of a new view
        would block readers, or if a table is missing or has no change counter."""
        uncounted = self._uncounted(seen)
        if uncounted:
            return uncounted
        if not seen.views:
            asked = f" like {', '.join(self._settings.views)}" if self._settings.views else ""
            return f"there is no materialised view{asked}: names are schema.view"
        unmatched = [one for one in self._settings.unmatched_lags(seen.views) if one not in self._warned]
        if unmatched:
            self._warned.update(unmatched)
            return f"target_lags: no view is named like {', '.join(unmatched)}"
        found = [view for view in seen.views if not seen.relations[view].indexed and view not in self._warned]
        self._warned.update(found)
        if not found or self._user.can_refresh:
            return ""
        return (
            f"no unique index on {', '.join(found)}: a refresh locks out readers; "
            "CREATE UNIQUE INDEX on plain columns lets them read on"
        )

    def _uncounted(self, seen: Catalogue) -> str:
        """Return a warning about tables of named views that are missing or have no change counter."""
        bases = {base for view in self._settings.named_views for base in seen.parts(view)}
        found = sorted(base for base in bases - self._warned if not seen.relations[base].has_counters)
        self._warned.update(found)
        missing = [base for base in found if not seen.relations[base].populated]
        if missing:
            return f"depends_on: the database has no table {', '.join(missing)}"
        if not found or not self._settings.url:
            return ""
        words = "staleness of the views above is not known: set stale_when"
        if self._settings.url.startswith("sqlite:"):
            words += ", or count_writes = true, which creates triggers"
        return f"no change counter for {', '.join(found)}: {words}"


def _mark(view: str, seen: Catalogue) -> str:
    """Return a short hash of the stamps of a view's parts. The engine takes a new hash as a notice."""
    state = {name: seen.relations[name].stamp for name in seen.parts(view)}
    return blake2b(_state_text(state), digest_size=8).hexdigest()


def _state_text(state: State) -> bytes:
    return repr(sorted((name, one.changes, one.version) for name, one in state.items())).encode()
