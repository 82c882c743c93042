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
from dataclasses import dataclass, field

import numpy as np
import psycopg
from tests.servers.postgres import running_postgres

from afresh.sources.evidence import Evidence
from afresh.sources.surroundings import Surroundings
from afresh.sources.view_settings import ViewSettings
from afresh.sources.view_source import ViewSource
from afresh.values.lease import Lease
from bench.rows import Row
from bench.view_engine import run_engine
from bench.view_world import RATES, TABLES, VIEWS, Refresh, Writer, load, make, staleness

_SHARE, _SEED = 0.05, 1


@dataclass
class Situation:
    """What a policy may know: what the source tells, the time, and when it refreshed what."""

    told: Mapping[str, Evidence] = field(default_factory=dict)
    now_s: float = 0.0
    last_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(VIEWS, 0.0))


Policy = Callable[[Situation], str | None]


def in_turn(seen: Situation) -> str | None:
    """The view not refreshed for longest."""
    return min(VIEWS, key=lambda view: seen.last_s[view])


def stale_in_turn(seen: Situation) -> str | None:
    """The stale view not refreshed for longest."""
    stale = [view for view in VIEWS if view in seen.told and not seen.told[view].fresh]
    return min(stale, key=lambda view: seen.last_s[view], default=None)


def proportional(seen: Situation) -> str | None:
    """The view with the most changes expected since its refresh: as often as they change."""
    return max(VIEWS, key=lambda view: (seen.now_s - seen.last_s[view]) * true_rate(view))


POLICIES: dict[str, Policy] = {
    "in turn": in_turn,
    "in proportion": proportional,
    "in turn, if stale": stale_in_turn,
}


def true_rate(view: str) -> float:
    """The load's rate of the tables below a view, at pace 1."""
    return sum(RATES[TABLES.index(table)] for table in VIEWS[view])


@dataclass(frozen=True, slots=True)
class Result:
    """How a policy fared: mean staleness of the views, and refresh seconds spent."""

    stale: float
    spent_s: float


async def run(url: str, policy: Policy, seconds: float, pace: float, seed: int, *, prompt: bool) -> Result:
    """One policy on a database as new."""
    settings = ViewSettings(name="house", url=url, look_every=0.25)
    source = ViewSource(settings, Surroundings())
    writer = Writer(url, load(seconds, pace, seed), prompt)
    for view in VIEWS:
        await _refresh(source, view)
    refreshes: list[Refresh] = []
    seen, free_s, spent_s = Situation(), 0.0, 0.0
    thread = writer.begin()
    while (now_s := writer.now_s()) < seconds:
        _ = [one async for one in source.listings()]
        seen.told, seen.now_s = source.evidence(), now_s
        chosen = policy(seen) if now_s >= free_s else None
        if chosen is None:
            await asyncio.sleep(settings.look_every)
            continue
        begun_s = writer.now_s()
        done = await _refresh(source, chosen)
        ended_s = writer.now_s()
        refreshes += [Refresh(view, begun_s, ended_s) for view in done]
        spent_s += ended_s - begun_s
        free_s = begun_s + (ended_s - begun_s) / _SHARE
        seen.last_s |= dict.fromkeys(done, ended_s)
    await asyncio.to_thread(thread.join)
    await source.close()
    stale = staleness(refreshes, writer.committed, seconds)
    return Result(float(np.mean(list(stale.values()))), spent_s)


async def _refresh(source: ViewSource, view: str) -> list[str]:
    """Refresh a view; the names of all that were, those below it first."""
    fetched = await source.poll(Lease(0, view, "house", "house", 1, 1e12), conditional=False)
    assert fetched.content is not None, fetched.problem
    done: list[str] = json.loads(fetched.content)["refreshed"]
    return done


def rows(*, quick: bool) -> list[Row]:
    """Mean staleness of each policy; how many of the true rates lie in their 90 % intervals."""
    seconds, pace, size = (1.5, 6.0, 400) if quick else (60.0, 1.0, 4000)
    with running_postgres() as server:
        _make(server.url(), size)
        ran = run_engine(server.url(), seconds, pace, _SEED, _SHARE, look_every_s=0.25)
        stale = staleness(ran.refreshes, ran.committed, seconds)
        spent_s = sum(one.end_s - one.start_s for one in ran.refreshes)
        results = {"afresh": Result(float(np.mean(list(stale.values()))), spent_s)}
        for name, policy in list(POLICIES.items())[: 1 if quick else None]:
            _make(server.url(), size)
            results[name] = asyncio.run(run(server.url(), policy, seconds, pace, _SEED, prompt=True))
    found: list[Row] = []
    for name, result in results.items():
        wanted = None if quick or name in ("afresh", "in turn, if stale") else 1.0
        ratio = results["afresh"].stale / result.stale if result.stale else 1.0
        found.append(Row(f"stale, {name}", result.stale, "of time", ratio=ratio, at_most=wanted))
        found.append(Row(f"refreshing, {name}", result.spent_s, "s"))
    held = [
        view.low_per_s <= true_rate(view.item) * pace <= view.high_per_s
        for view in ran.status.views
        if view.low_per_s >= 0
    ]
    found.append(Row("true rates within their intervals", sum(held), f"of {len(held)} views"))
    return found


def _make(url: str, size: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        make(connection, size)
