"""Views of a real PostgreSQL under a steady load: their mean age by policy at the same cost, and target lags.

Every policy has the same writes and the same budget: after a refresh of d seconds the next may begin
d/share later. ``afresh`` is ``afresh run`` with ``seconds`` of refreshing: it learns rates on the way. The
others refresh all views in turn, in proportion to their true rates, or in turn those that are stale, and look
as often as they like. The writer reports its counters at once, where PostgreSQL would within a second or so:
the load is some hundred times as fast as that of a warehouse. One draw of the writes lasts a minute, and
ages are means over four; ``view_simulation`` makes more of the same world in virtual time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Thread

import numpy as np
import psycopg
from tests.servers.postgres import PostgresServer, running_postgres

from afresh.sources.capabilities import StalenessReport
from afresh.sources.context import SourceContext
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.source import ViewSource
from afresh.values.lease import Lease
from bench.rows import Row
from bench.view_engine import COUNTER_LAG_S, Clock, NotedViews, Ran, run_engine
from bench.view_world import LOADS, UPSTREAM, VIEWS, Array, Load, Refresh, Writer, lags, make

SHARE = 0.2  # of the time may be spent refreshing
SCARCE_SHARE = 0.03
ROWS = 400  # of each table at first
LOOK_EVERY_S = 0.25
DRAWS = 4  # of the writes, for each load
CASES = (*LOADS, "targets")
TARGETS = dict.fromkeys(VIEWS, 10.0) | {"public.dear": 25.0, "public.wide": 25.0, "public.top": 15.0}


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
    """The result of a policy: mean age and mean staleness of the views, and the seconds of refreshing."""

    age_s: float
    stale: float
    spent_s: float


async def run(url: str, policy: Policy, load: Load) -> Result:
    """Run one policy on a new database."""
    settings = ViewSettings(name="house", url=url, look_every=LOOK_EVERY_S)
    writer, refreshes, threads = Writer(url, load.writes(), prompt=True), list[Refresh](), list[Thread]()
    source = NotedViews(settings, SourceContext(), refreshes, writer.now_s)

    def begin() -> None:
        refreshes.clear()
        threads.append(writer.begin())

    spent_s = await run_policy(source, policy, load, begin, writer.now_s)
    await asyncio.to_thread(threads[0].join)
    return result_of(refreshes, writer.committed, load, spent_s)


async def run_policy(
    source: ViewSource, policy: Policy, load: Load, begin: Callable[[], None], now_s: Clock
) -> float:
    """Refresh all views once, begin the load, and refresh what the policy chooses while the load lasts.
    ``now_s`` counts from the beginning of the load. Return the seconds of refreshing."""
    for view in VIEWS:
        await _refresh(source, view)
    seen, free_s, spent_s = Situation(load), 0.0, 0.0
    begin()
    while (time_s := now_s()) < load.seconds:
        _ = [one async for one in source.listings()]
        seen.told, seen.now_s = source.staleness_reports(), time_s
        chosen = policy(seen) if time_s >= free_s else None
        if chosen is None:
            wait_s = free_s - now_s() if free_s > now_s() else LOOK_EVERY_S
            await asyncio.sleep(min(LOOK_EVERY_S, max(wait_s, 0.01)))
            continue
        begun_s = now_s()
        done = await _refresh(source, chosen)
        ended_s = now_s()
        spent_s += ended_s - begun_s
        free_s = begun_s + (ended_s - begun_s) / SHARE
        seen.last_s |= dict.fromkeys(done, ended_s)
    await source.close()
    return spent_s


async def _refresh(source: ViewSource, view: str) -> list[str]:
    """Refresh a view and those below it, and return the names of all in this order."""
    fetched = await source.poll(Lease(0, view, "house", "house", 1, 1e12), conditional=False)
    assert fetched.content is not None, fetched.problem
    done: list[str] = json.loads(fetched.content)["refreshed"]
    return done


def result_of(
    refreshes: list[Refresh], committed: Mapping[str, list[float]], load: Load, spent_s: float
) -> Result:
    found = lags(refreshes, committed, load.seconds)
    age_s = float(np.mean([lag.mean() for lag in found.values()]))
    return Result(age_s, float(np.mean([(lag > 0).mean() for lag in found.values()])), spent_s)


def rows(*, quick: bool, cases: Sequence[str] = CASES) -> list[Row]:
    """Measure the mean age of each policy on each load, whether targets are kept, and rate intervals; or
    only what begins with one of ``cases``, which are the names of the loads and ``targets``."""
    found: list[Row] = []
    with running_postgres() as server:
        for name, load in list(LOADS.items())[: 1 if quick else None]:
            if name.startswith(tuple(cases)):
                found += _compared(server, name, replace(load, seconds=2.0) if quick else load, quick=quick)
        if not "targets".startswith(tuple(cases)):
            return found
        load = LOADS["as named"]
        found += _kept_targets(server.url(), replace(load, seconds=2.0) if quick else load, quick=quick)
        found += _named_targets(server.url(), replace(load, seconds=2.0 if quick else 20.0), quick=quick)
    return found


def _compared(server: PostgresServer, name: str, load: Load, *, quick: bool) -> list[Row]:
    """Compare the mean over several draws of the writes: the age in one draw of a minute varies by a tenth,
    by when writes come just before or after a refresh."""
    rivals = dict(list(POLICIES.items())[: 1 if quick else None])
    seeds = range(1 if quick else DRAWS)
    draws = [draw_writes(server, replace(load, seed=100 * load.seed + at), rivals) for at in seeds]
    ours = mean_result([draw.ours for draw in draws])
    found = [
        Row(f"load {name}: mean age, afresh", ours.age_s, "s"),
        Row("stale, afresh", ours.stale, "of time"),
        Row("refreshing, afresh", ours.spent_s, "s"),
    ]
    for other in rivals:
        theirs = mean_result([draw.rivals[other] for draw in draws])
        ratio = ours.age_s / theirs.age_s if theirs.age_s else 1.0
        wanted = None if quick else 1.0
        found.append(Row(f"mean age, {other}", theirs.age_s, "s", ratio=ratio, at_most=wanted))
        found.append(Row(f"stale, {other}", theirs.stale, "of time"))
        found.append(Row(f"refreshing, {other}", theirs.spent_s, "s"))
    held = [each for draw in draws for each in draw.held]
    found.append(Row("true rates within their intervals", sum(held), f"of {len(held)}"))
    return found


@dataclass(frozen=True, slots=True)
class Draw:
    """What each policy made of one draw of the writes, and whether true rates were in afresh's intervals."""

    ours: Result
    rivals: dict[str, Result]
    held: list[bool]


def mean_result(results: Sequence[Result]) -> Result:
    table = np.array([(one.age_s, one.stale, one.spent_s) for one in results])
    return Result(*table.mean(axis=0).tolist())


def draw_writes(server: PostgresServer, load: Load, rivals: Mapping[str, Policy]) -> Draw:
    """Run all policies side by side, each in a database of its own, so that other programs disturb all alike;
    each of them mostly waits."""
    urls = {policy: _new_database(server, f"view_world_{at}") for at, policy in enumerate(rivals)}
    make_world(server.url(), ROWS)
    with ThreadPoolExecutor(len(rivals)) as threads:
        running = {
            other: threads.submit(asyncio.run, run(urls[other], policy, load))
            for other, policy in rivals.items()
        }
        ran = run_engine(server.url(), load, SHARE, look_every_s=LOOK_EVERY_S)
    ours = result_of(ran.refreshes, ran.committed, load, ran.spent_s)
    return Draw(ours, {other: future.result() for other, future in running.items()}, within(ran, load))


def _new_database(server: PostgresServer, name: str) -> str:
    """Make a database with the tables and views, and return its address."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    make_world(server.url(name), ROWS)
    return server.url(name)


def _kept_targets(url: str, load: Load, *, quick: bool) -> list[Row]:
    """Measure how long views are within their targets, where these fit the budget. Time is compressed twelve
    times: a target of 10 s stands for two minutes."""
    make_world(url, ROWS)
    ran = run_engine(url, load, SHARE, look_every_s=LOOK_EVERY_S, targets=_target_settings(TARGETS))
    held = [float((lag <= TARGETS[view]).mean()) for view, lag in lags_of(ran, load).items()]
    found = ran.status.target_lags
    assert found is not None
    return [
        Row("targets that fit: needed", found.needed_s, f"of {found.allowed_s:g} s an hour"),
        Row("of them said not to fit", len(found.unfit), "targets", at_most=None if quick else 0),
        Row("samples within their targets", float(np.mean(held)), "", at_least=None if quick else 0.99),
        Row("of the view that keeps its target worst", min(held), ""),
    ]


def _named_targets(url: str, load: Load, *, quick: bool) -> list[Row]:
    """Measure whether the targets that do not fit are named at 3 % of the time: those of views that
    would wait too long for the expensive one."""
    make_world(url, ROWS)
    ran = run_engine(url, load, SCARCE_SHARE, look_every_s=LOOK_EVERY_S, targets=_target_settings(TARGETS))
    found = ran.status.target_lags
    assert found is not None
    costs = {view.item: view.cost_s for view in ran.status.views}
    expected = unfit_by_hand(costs, load, SCARCE_SHARE)
    named = {each.item for each in found.unfit}
    missing = max((each.missing_s for each in found.unfit), default=0.0)
    return [
        Row("targets that do not fit: named", len(named), f"of {len(expected)} by hand"),
        Row("named rightly", float(named == expected), "", at_least=None if quick else 1.0),
        Row("seconds an hour said to be missing, at most", missing, "s", at_least=None if quick else 1.0),
        Row("budget said to do", found.needed_s, "s an hour"),
    ]


def unfit_by_hand(costs: Mapping[str, float], load: Load, share: float) -> set[str]:
    """Work out from costs and the true rates which targets do not fit, with the heaviest demand left out
    first: those that would have to wait too long for another refresh, and those beyond the budget."""
    chain = {view: sum(costs[each] for each in (view, *_below(view))) for view in VIEWS}
    unfit = set()
    for view, target_s in _inherited().items():
        related = {view, *_below(view), *(each for each in VIEWS if view in _below(each))}
        other = max(chain[each] for each in VIEWS if each not in related)
        if target_s < chain[view] + LOOK_EVERY_S + COUNTER_LAG_S + other / share:
            unfit.add(view)
    left, inherited = share, _inherited()
    demand = {view: costs[view] / (inherited[view] + 1 / load.rate_of(view)) for view in VIEWS}
    for view in sorted(set(VIEWS) - unfit, key=lambda each: demand[each]):
        left -= demand[view]
        if left < 0:
            unfit.add(view)
    return unfit


def _below(view: str) -> set[str]:
    direct = UPSTREAM.get(view, ())
    return {*direct, *(each for one in direct for each in _below(one))}


def _inherited() -> dict[str, float]:
    """Return the targets, with those of the views above."""
    return {
        view: min(TARGETS[each] for each in VIEWS if each == view or view in _below(each)) for view in VIEWS
    }


def _target_settings(targets: Mapping[str, float]) -> str:
    return (
        f"target_lags = {{ {', '.join(f'{json.dumps(view)} = {lag_s}' for view, lag_s in targets.items())} }}"
    )


def lags_of(ran: Ran, load: Load) -> dict[str, Array]:
    return lags(ran.refreshes, ran.committed, load.seconds)


def within(ran: Ran, load: Load) -> list[bool]:
    """Return whether the true rate of each view lies in its interval, for those that have one."""
    views = [view for view in ran.status.views if view.low_per_s >= 0]
    return [view.low_per_s <= load.rate_of(view.item) <= view.high_per_s for view in views]


def make_world(url: str, size: int) -> None:
    """Make the tables and views again."""
    with psycopg.connect(url, autocommit=True) as connection:
        make(connection, size)
