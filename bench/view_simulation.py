"""Views under load in virtual time, with many seeds: the mean age by policy, with its standard error.

The world is that of ``views``: the same tables, writes, dependencies and costs, here without a database, so
that no other program on the machine disturbs it. A reading of the catalogue and a refresh take as much longer
than the queries of the views as with a real database. ``afresh`` is the whole engine, ``afresh run`` with a
source whose readings and refreshes are answered from memory. Every policy has the same writes and the same
budget, and every policy looks as often. Each seed is another draw of the times of the writes.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.virtual_time import VirtualTime

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import Settings
from afresh.sources.context import SourceContext
from afresh.sources.registry import BUILT_IN, SourceKind
from afresh.sources.sql.connection_thread import ConnectionThread
from afresh.sources.views.catalogue import MATERIALISED, TABLE, Catalogue, CatalogueRelation, Stamp
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.source import ViewSource
from afresh.sources.views.view_session import ViewSession
from bench.rows import Row
from bench.view_world import COSTS_S, LOADS, TABLES, UPSTREAM, VIEWS, Load, Refresh
from bench.views import LOOK_EVERY_S, POLICIES, SHARE, Result, result_of, run_policy

SEEDS, SECONDS = 12, 120.0
READING_S, BESIDE_QUERY_S = 0.006, 0.01  # medians of ``views``: reading the catalogue, the rest of a refresh
ERRORS = 2.0  # the lead must be so many standard errors
REFRESH = "bench.view_simulation:refuse"


def refuse(view: str) -> None:
    """Stand for a refresh in the settings; ``VirtualViews`` refreshes by itself."""
    raise AssertionError(view)


class VirtualWorld:
    """The writes of a load, which begin when ``start_s`` is set, and the refreshes."""

    def __init__(self, load: Load) -> None:
        self.time, self.load, self.start_s = VirtualTime(), load, float("inf")
        writes = load.writes()
        self.committed = {
            table: [write.time_s for write in writes if write.table == table] for table in TABLES
        }
        self._rows = {
            table: np.cumsum([0, *(write.rows for write in writes if write.table == table)])
            for table in TABLES
        }
        self.refreshes: list[Refresh] = []

    def now_s(self) -> float:
        """Return the seconds since the load began; −∞ before."""
        return self.time.elapsed_s() - self.start_s

    def begin(self) -> None:
        """Begin the load; refreshes before do not count."""
        self.start_s = self.time.elapsed_s()
        self.refreshes.clear()

    def result(self) -> Result:
        """Return what the refreshes achieved."""
        spent_s = sum(one.end_s - one.start_s for one in self.refreshes)
        return result_of(self.refreshes, self.committed, self.load, spent_s)

    def catalogue(self) -> Catalogue:
        """Return what a reading of the catalogue shows now."""
        now_s, relations = self.now_s(), dict[str, CatalogueRelation]()
        for table, times in self.committed.items():
            count = int(self._rows[table][np.searchsorted(times, now_s, "right")])
            relations[table] = CatalogueRelation(table, TABLE, Stamp(count, 1))
        below = dict[str, tuple[str, ...]]()
        for view, tables in VIEWS.items():
            relations[view] = CatalogueRelation(view, MATERIALISED, Stamp(0, 1), indexed=True)
            lower = UPSTREAM.get(view, ())
            below[view] = (
                *lower,
                *(table for table in tables if all(table not in VIEWS[one] for one in lower)),
            )
        return Catalogue(relations, below, lambda _: True, "", self.time.now_s())


class VirtualViews(ViewSource):
    """The view source over a virtual world: a refresh waits for as long as the query of its view does."""

    def __init__(self, settings: ViewSettings, context: SourceContext, world: VirtualWorld) -> None:
        super().__init__(settings, context)
        self._world = world

    async def read_catalogue(self, thread: ConnectionThread[ViewSession] | None = None) -> Catalogue:
        del thread
        seen = self._world.catalogue()
        await asyncio.sleep(READING_S)
        return seen

    async def _refresh(self, view: str, seen: Catalogue) -> None:
        world, cost_s = self._world, COSTS_S[view.removeprefix("public.")] + BESIDE_QUERY_S
        start_s = world.now_s()
        await asyncio.sleep(cost_s)
        self.tracker.record_refresh(view, seen, None, cost_s)
        world.refreshes.append(Refresh(view, start_s, world.now_s()))


def settings_of(world: VirtualWorld, share: float) -> Settings:
    """Return the settings of a project of all views, which may refresh for a share of the time."""
    kind = SourceKind(ViewSettings, lambda own, context: VirtualViews(own, context, world))
    text = f"""
        [budget]
        requests = "50/s"
        seconds = "{share * 3600:g}s/h"
        [[source]]
        name = "house"
        kind = "view"
        refresh = "{REFRESH}"
        views = {list(VIEWS)}
        look_every = {LOOK_EVERY_S}
        counter_lag = 0
    """
    return parse_settings(text, kinds={**BUILT_IN, "view": kind})


def run_afresh(load: Load) -> Result:
    """Refresh all views once; then begin the load, and run the engine."""
    world = VirtualWorld(load)
    with tempfile.TemporaryDirectory() as name:
        with _engine(world, Path(name), 1.0) as engine:
            engine.run(once=True)
        with _engine(world, Path(name), SHARE) as engine:
            world.begin()
            engine.run(for_s=load.seconds)
    return world.result()


def _engine(world: VirtualWorld, folder: Path, share: float) -> Engine:
    settings, time = settings_of(world, share), world.time
    return make_engine(settings, folder, clock=time, seed=1, new_loop=time.new_loop)


def run_rival(name: str, load: Load) -> Result:
    """Run one of the other policies."""
    world = VirtualWorld(load)
    settings = ViewSettings(name="house", refresh=REFRESH, views=tuple(VIEWS), look_every=LOOK_EVERY_S)
    source = VirtualViews(settings, SourceContext(clock=world.time), world)
    world.time.run(run_policy(source, POLICIES[name], load, world.begin, world.now_s))
    return world.result()


def rows(*, quick: bool, cases: Sequence[str] = tuple(LOADS)) -> list[Row]:
    """Measure the mean age of each policy over many draws of the writes, on each load that begins with one of
    ``cases``."""
    found: list[Row] = []
    for name, load in LOADS.items():
        if not name.startswith(tuple(cases)):
            continue
        seeds = range(2 if quick else SEEDS)
        loads = [replace(load, seed=100 * load.seed + at, seconds=20.0 if quick else SECONDS) for at in seeds]
        ours = [run_afresh(each) for each in loads]
        theirs = {other: [run_rival(other, each) for each in loads] for other in POLICIES}
        found += _compared(name, ours, theirs, quick=quick)
    return found


def _compared(load: str, ours: list[Result], theirs: Mapping[str, list[Result]], *, quick: bool) -> list[Row]:
    age_s = np.array([one.age_s for one in ours])
    spent_s = float(np.mean([one.spent_s for one in ours]))
    found = [
        Row(f"load {load}: mean age, afresh", float(age_s.mean()), "s"),
        Row("refreshing, afresh", spent_s, "s"),
    ]
    for other, results in theirs.items():
        their_age_s = np.array([one.age_s for one in results])
        ratio = age_s / their_age_s
        error = float(ratio.std(ddof=1) / np.sqrt(ratio.size))
        found += [
            Row(f"mean age, {other}", float(their_age_s.mean()), "s"),
            Row(f"refreshing, {other}", float(np.mean([one.spent_s for one in results])), "s"),
            Row(
                f"mean age against {other}, with {ERRORS:g} standard errors",
                float(ratio.mean()),
                f"± {error:.2g}",
                ratio=float(ratio.mean()) + ERRORS * error,
                at_most=None if quick else 1.0,
            ),
        ]
    return found
