"""The view source: materialised views of a PostgreSQL database, refreshed where it buys the most fresh time.

A poll is a REFRESH; its copy is a note of what the view stood on at that moment, and a change is that
something below moved since the last one. Looks at the counters of the tables tell staleness and rates in
between, at the cost of three small queries (see ``evidence``). A view that stands on another stale one is
refreshed after it, in one poll. Where a unique index allows it readers are not locked out (CONCURRENTLY).

Counters reach the statistics when a session reports them: within a second while it is busy, up to ten after
its last transaction (PostgreSQL 15 and later). So a change may be seen so much late, and a write that was
reported after the refresh that already held it makes one refresh too many.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from hashlib import blake2b

from afresh.sources.content import content_hash
from afresh.sources.context import SourceContext
from afresh.sources.single_group import SingleGroupSource
from afresh.sources.sql.connection_thread import ConnectionThread
from afresh.sources.sql.database_url import usable_address
from afresh.sources.sql.errors import SqlError
from afresh.sources.staleness import StalenessReport
from afresh.sources.views.catalogue import Catalogue
from afresh.sources.views.session import ViewSession
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.staleness import State, is_known, is_stale
from afresh.sources.views.tracker import ViewTracker
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listed, Listing

_GRACE_S = 5.0  # beyond the server's own time-out
_LOOK_S = 60.0


class ViewSource(SingleGroupSource):
    """See ``WitnessSource``. One group for all views; refreshes on one connection, looks on another."""

    def __init__(self, settings: ViewSettings, context: SourceContext) -> None:
        super().__init__(settings)
        self._settings, self._context = settings, context
        address, path = usable_address(settings.name, settings.url, context.resolver)
        if path is not None:
            raise UsageError(f"source {settings.name!r}, url: SQLite has no materialised views")
        self._refreshes: ConnectionThread[ViewSession] = ConnectionThread(
            settings.name, lambda: ViewSession(address, settings, read_only=False), context.clock
        )
        self._looks: ConnectionThread[ViewSession] = ConnectionThread(
            settings.name, lambda: ViewSession(address, settings, read_only=True), context.clock
        )
        self._memory = ViewTracker()
        self._warned: set[str] = set()

    def ready_s(self, group: str, now_s: float) -> float:
        """When a window opens, the database has rested, and the refresh before has ended."""
        del group
        return max(self._hours.next_opening_s(now_s), self._refreshes.ready_s(now_s))

    def evidence(self) -> Mapping[str, StalenessReport]:
        """See ``WitnessSource``."""
        return self._memory.evidence()

    def memory(self) -> bytes:
        """See ``WitnessSource``."""
        return self._memory.pack()

    def recall(self, memory: bytes) -> None:
        """See ``WitnessSource``."""
        self._memory = ViewTracker.unpack(memory)

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Refresh one view, unless nothing below it moved; ``conditional=False``: in any case."""
        clock = self._context.clock
        async with self._refreshes.turn:
            await self._context.admit(lease.group)
            start_s = clock.elapsed_s()
            try:
                seen = await self._catalogue(self._refreshes)
                if lease.key not in seen.views:
                    return _missing(clock.elapsed_s() - start_s)
                chain = self._chain(lease.key, seen, conditional=conditional)
                for view in chain:
                    await self._refresh(view, seen)
            except SqlError as trouble:
                return Fetched(
                    "failed",
                    problem=str(trouble),
                    requests=1,
                    seconds=clock.elapsed_s() - start_s,
                    retry_after_s=self._rest_s() if trouble.lost else None,
                )
            return self._fetched(lease, seen, chain, clock.elapsed_s() - start_s)

    async def listings(self) -> AsyncIterator[Listing]:
        """One look: the views there are, each marked by the state of its tables; none while it rests."""
        now_s = self._context.clock.now_s()
        if self._looks.ready_s(now_s) > now_s:
            return
        async with self._looks.turn:
            await self._context.admit(self._settings.name)
            start_s = self._context.clock.elapsed_s()
            problem, entries = "", []
            try:
                seen = await self._catalogue(self._looks)
            except SqlError as trouble:
                problem = str(trouble)
            else:
                self._memory.looked(seen)
                entries = [Listed(view, _mark(view, seen)) for view in seen.views]
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
        """Let go of both connections; a refresh under way is ended."""
        await self._refreshes.close()
        await self._looks.close()

    async def _catalogue(self, lane: ConnectionThread[ViewSession]) -> Catalogue:
        now_s = self._context.clock.now_s()
        return await lane.run(lambda session: session.catalogue(now_s), _LOOK_S, again=True)

    def _chain(self, view: str, seen: Catalogue, *, conditional: bool) -> list[str]:
        """What to refresh: stale views below first, then the view itself; nothing where nothing moved."""
        states = self._memory.states
        below = [name for name in seen.views if name in seen.upstream(view)]
        stale = [name for name in below if is_stale(name, seen, states.get(name))]
        own = states.get(view)
        if conditional and not stale and is_known(view, seen, own) and not is_stale(view, seen, own):
            return []
        return [*stale, view]

    async def _refresh(self, view: str, seen: Catalogue) -> None:
        clock, relation = self._context.clock, seen.relations[view]
        start_s = clock.elapsed_s()
        timeout_s = self._settings.timeout + _GRACE_S
        version = await self._refreshes.run(lambda session: session.refresh(relation), timeout_s, again=False)
        self._memory.refreshed(view, seen, version, clock.elapsed_s() - start_s)

    def _fetched(self, lease: Lease, seen: Catalogue, refreshed: list[str], seconds: float) -> Fetched:
        state = self._memory.states[lease.key]
        cost = self._memory.costs.get(lease.key)
        note = {
            "view": lease.key,
            "bases": seen.bases(lease.key),
            "rows_written": {name: state[name].changes for name in seen.bases(lease.key) if name in state},
            "refreshed": refreshed,
            "refresh_seconds": round(cost.mean, 6) if cost else None,
        }
        content = json.dumps(note, indent=1).encode()
        found = content_hash(_text(state))
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

    def _rest_s(self) -> float | None:
        now_s = self._context.clock.now_s()
        rest_s = self._refreshes.ready_s(now_s) - now_s
        return rest_s if 0 < rest_s < float("inf") else None

    def _warning(self, seen: Catalogue) -> str:
        """Where no view is selected; and once for each view whose refreshes lock out its readers."""
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


def _missing(seconds: float) -> Fetched:
    words = "there is no such materialised view among those selected: names are schema.view"
    return Fetched("gone", problem=words, requests=1, seconds=seconds)


def _mark(view: str, seen: Catalogue) -> str:
    """A short name for the state of what the view stands on: another mark is a notice."""
    state = {name: seen.relations[name].stamp for name in seen.parts(view)}
    return blake2b(_text(state), digest_size=8).hexdigest()


def _text(state: State) -> bytes:
    return repr(sorted((name, one.changes, one.version) for name, one in state.items())).encode()
