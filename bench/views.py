"""Views of a real PostgreSQL under a steady load: how long they are stale, by policy, at the same cost.

Every policy has the same writes and the same budget: after a refresh of d seconds the next may begin
d/share later. ``afresh`` refreshes what the counters call stale and gains the most fresh time for its
cost, rates and costs learned on the way. The others refresh all views in turn, in proportion to their
true rates, or in turn those that are stale. The writer reports its counters at once, where PostgreSQL
would within a second or so: the load is some hundred times as fast as that of a warehouse.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import psycopg
from tests.servers.postgres import running_postgres

from afresh.allocation.watched import gains_now
from afresh.sources.evidence import Evidence
from afresh.sources.surroundings import Surroundings
from afresh.sources.view_settings import ViewSettings
from afresh.sources.view_source import ViewSource
from afresh.values.lease import Lease
from bench.rows import Row
from bench.view_world import RATES, TABLES, VIEWS, Refresh, Writer, load, make, staleness

_SHARE = 0.05


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


def afresh(seen: Situation) -> str | None:
    """What is stale and gains the most for its cost, unless paying it off costs the others more."""
    names = [view for view, told in seen.told.items() if told.rate_per_s is not None and told.cost_s]
    if not names:
        return stale_in_turn(seen)
    costs = np.array([seen.told[view].cost_s or 0.0 for view in names])
    rates = [seen.told[view].rate_per_s or 0.0 for view in names]
    gains = gains_now([not seen.told[view].fresh for view in names], rates, _SHARE, costs=costs)
    best = int(np.argmax(gains / costs))
    return names[best] if gains[best] > 0 else None


POLICIES: dict[str, Policy] = {
    "afresh": afresh,
    "in turn": in_turn,
    "in proportion": proportional,
    "in turn, if stale": stale_in_turn,
}


def true_rate(view: str) -> float:
    """The load's rate of the tables below a view, at pace 1."""
    return sum(RATES[TABLES.index(table)] for table in VIEWS[view])


@dataclass(frozen=True, slots=True)
class Result:
    """How a policy fared: mean staleness of the views, refresh seconds spent, what it learned."""

    stale: float
    spent_s: float
    told: Mapping[str, Evidence]


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
    told = source.evidence()
    await source.close()
    stale = staleness(refreshes, writer.committed, seconds)
    return Result(float(np.mean(list(stale.values()))), spent_s, told)


async def _refresh(source: ViewSource, view: str) -> list[str]:
    """Refresh a view; the names of all that were, those below it first."""
    fetched = await source.poll(Lease(0, view, "house", "house", 1, 1e12), conditional=False)
    assert fetched.content is not None, fetched.problem
    done: list[str] = json.loads(fetched.content)["refreshed"]
    return done


def rows(*, quick: bool) -> list[Row]:
    """Mean staleness of each policy; how many of the true rates lie in their 90 % intervals."""
    seconds, pace, size = (1.5, 6.0, 400) if quick else (60.0, 1.0, 4000)
    found: list[Row] = []
    results: dict[str, Result] = {}
    with running_postgres() as server:
        for name, policy in list(POLICIES.items())[: 2 if quick else None]:
            with psycopg.connect(server.url(), autocommit=True) as connection:
                make(connection, size)
            results[name] = asyncio.run(run(server.url(), policy, seconds, pace, 1, prompt=True))
    ours = results["afresh"]
    for name, result in results.items():
        wanted = None if quick or name in ("afresh", "in turn, if stale") else 1.0
        ratio = ours.stale / result.stale if result.stale else 1.0
        found.append(Row(f"stale, {name}", result.stale, "of time", ratio=ratio, at_most=wanted))
        found.append(Row(f"refreshing, {name}", result.spent_s, "s"))
    held = [
        told.low_per_s <= true_rate(view) * pace <= told.high_per_s
        for view, told in ours.told.items()
        if told.low_per_s is not None and told.high_per_s is not None
    ]
    found.append(Row("true rates within their intervals", sum(held), f"of {len(held)} views"))
    return found
