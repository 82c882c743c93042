"""Views of a real PostgreSQL under a steady load: how long they are stale, by policy, at the same cost.

Every policy has the same writes and the same budget: after a refresh of d seconds the next may begin
d/share later. ``afresh`` is ``afresh run`` with ``seconds`` of refreshing: it learns rates and costs on the
way, and its looks wait while refreshes are paid off. The others refresh all views in turn, in proportion to
their true rates, or in turn those that are stale, and look as often as they like. The writer reports its
counters at once, where PostgreSQL would within a second or so: the load is some hundred times as fast as that
of a warehouse.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import psycopg
from tests.servers.postgres import running_postgres

from afresh.sources.capabilities import StalenessReport
from afresh.sources.context import SourceContext
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.source import ViewSource
from afresh.values.lease import Lease
from bench.rows import Row
from bench.view_engine import Ran, run_engine
from bench.view_world import LOADS, VIEWS, Load, Refresh, Writer, make, staleness

SHARE = 0.05  # of the time may be spent refreshing


@dataclass
class Situation:
    """What a policy may know: the answers of the source, the time, its own refreshes, and the true rates."""

    load: Load
    told: Mapping[str, StalenessReport] = field(default_factory=dict)
    now_s: float = 0.0
    last_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(VIEWS, 0.0))


Policy = Callable[[Situation], str | None]


def in_turn(seen: Situation) -> str | None:
    """Choose the view that was not refreshed for longest."""
    return min(VIEWS, key=lambda view: seen.last_s[view])


def stale_in_turn(seen: Situation) -> str | None:
    """Choose the stale view that was not refreshed for longest."""
    stale = [view for view in VIEWS if view in seen.told and not seen.told[view].fresh]
    return min(stale, key=lambda view: seen.last_s[view], default=None)


def proportional(seen: Situation) -> str | None:
    """Choose the view with the most changes expected since its refresh: in proportion to the rates."""
    return max(VIEWS, key=lambda view: (seen.now_s - seen.last_s[view]) * seen.load.rate_of(view))


POLICIES: dict[str, Policy] = {
    "in turn": in_turn,
    "in proportion": proportional,
    "in turn, if stale": stale_in_turn,
}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a policy: the mean staleness of the views, and the seconds of refreshing."""

    stale: float
    spent_s: float


async def run(url: str, policy: Policy, load: Load) -> Result:
    """Run one policy on a new database."""
    settings = ViewSettings(name="house", url=url, look_every=0.25)
    source = ViewSource(settings, SourceContext())
    writer = Writer(url, load.writes(), prompt=True)
    for view in VIEWS:
        await _refresh(source, view)
    refreshes: list[Refresh] = []
    seen, free_s, spent_s = Situation(load), 0.0, 0.0
    thread = writer.begin()
    while (now_s := writer.now_s()) < load.seconds:
        _ = [one async for one in source.listings()]
        seen.told, seen.now_s = source.staleness_reports(), now_s
        chosen = policy(seen) if now_s >= free_s else None
        if chosen is None:
            await asyncio.sleep(settings.look_every)
            continue
        begun_s = writer.now_s()
        done = await _refresh(source, chosen)
        ended_s = writer.now_s()
        refreshes += [Refresh(view, begun_s, ended_s) for view in done]
        spent_s += ended_s - begun_s
        free_s = begun_s + (ended_s - begun_s) / SHARE
        seen.last_s |= dict.fromkeys(done, ended_s)
    await asyncio.to_thread(thread.join)
    await source.close()
    stale = staleness(refreshes, writer.committed, load.seconds)
    return Result(float(np.mean(list(stale.values()))), spent_s)


async def _refresh(source: ViewSource, view: str) -> list[str]:
    """Refresh a view and those below it, and return the names of all in this order."""
    fetched = await source.poll(Lease(0, view, "house", "house", 1, 1e12), conditional=False)
    assert fetched.content is not None, fetched.problem
    done: list[str] = json.loads(fetched.content)["refreshed"]
    return done


def rows(*, quick: bool) -> list[Row]:
    """Measure the mean staleness of each policy on each load, and the coverage of 90 % intervals."""
    found: list[Row] = []
    with running_postgres() as server:
        for name, load in list(LOADS.items())[: 1 if quick else None]:
            found += _compared(server.url(), name, replace(load, seconds=2.0) if quick else load, quick=quick)
    return found


def _compared(url: str, name: str, load: Load, *, quick: bool) -> list[Row]:
    size = 400 if quick else 4000
    make_world(url, size)
    ran = run_engine(url, load, SHARE, look_every_s=0.25)
    ours = result_of(ran, load)
    found = [
        Row(f"load {name}: stale, afresh", ours.stale, "of time"),
        Row("refreshing, afresh", ours.spent_s, "s"),
    ]
    for other, policy in list(POLICIES.items())[: 1 if quick else None]:
        make_world(url, size)
        theirs = asyncio.run(run(url, policy, load))
        wanted = None if quick or policy is stale_in_turn else 1.0
        ratio = ours.stale / theirs.stale if theirs.stale else 1.0
        found.append(Row(f"stale, {other}", theirs.stale, "of time", ratio=ratio, at_most=wanted))
        found.append(Row(f"refreshing, {other}", theirs.spent_s, "s"))
    held = within(ran, load)
    found.append(Row("true rates within their intervals", sum(held), f"of {len(held)} views"))
    return found


def result_of(ran: Ran, load: Load) -> Result:
    """Measure the result of the engine."""
    stale = staleness(ran.refreshes, ran.committed, load.seconds)
    return Result(float(np.mean(list(stale.values()))), sum(one.end_s - one.start_s for one in ran.refreshes))


def within(ran: Ran, load: Load) -> list[bool]:
    """Return whether the true rate of each view lies in its interval, for those that have one."""
    views = [view for view in ran.status.views if view.low_per_s >= 0]
    return [view.low_per_s <= load.rate_of(view.item) <= view.high_per_s for view in views]


def make_world(url: str, size: int) -> None:
    """Make the tables and views again."""
    with psycopg.connect(url, autocommit=True) as connection:
        make(connection, size)
