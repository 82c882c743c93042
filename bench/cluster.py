"""Four shards on two nodes of Ray against one engine, on the same living site; then one node is lost.

Both keep the same pages with the same budget for the same time, one after the other, on a site that changes
in the same way. The site counts the requests and knows which copies are right.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tests.cluster.ray_cluster import RayCluster, ray_cluster
from tests.engine.living import LivingSite
from tests.servers.postgres import running_postgres

from afresh.cluster.cluster_run import ClusterRun
from afresh.cluster.ray_session import ray_session
from afresh.cluster.shard_settings import ShardSpec, project_name
from afresh.engine.app import make_engine
from afresh.values.clock import SystemClock
from bench.rows import Row

BUDGET, SHARDS, HOSTS = 40.0, 4, 24
JITTER_S = 0.25  # the way from the gate to the site's log is not always as long
SETTINGS = """
[budget]
requests = "{budget:g}/s"
[plan]
audit_share = 0
[cluster]
store = "{store}"
share = "10s"
report = "1s"
[[source]]
name = "web"
delay = 0
concurrency = 4
min_interval = 0
respect_robots = false
allow_private = true
"""
CLOCK = SystemClock()


def rows(*, quick: bool) -> list[Row]:
    pages, settle_s, measured_s = (60, 5.0, 10.0) if quick else (240, 60.0, 120.0)
    judged = not quick
    rates = np.geomspace(0.01, 1.0, pages).tolist()
    with _site(rates, settle_s + measured_s) as site:
        alone = _freshness(site, settle_s, measured_s, lambda: _one_engine(site, settle_s + measured_s))
    with (
        running_postgres() as server,
        ray_cluster() as nodes,
        tempfile.TemporaryDirectory() as folder,
        _site(rates, settle_s + measured_s) as site,
        _running(Path(folder), server.url(), site, nodes) as run,
    ):
        together = _freshness(site, settle_s, measured_s, lambda: _steps(run, settle_s + measured_s))
        excess = _most_in_a_second(site) - 2 * BUDGET  # rate·1 s + burst
        nodes.kill_worker()
        killed_s = CLOCK.now_s()
        lost_s = _until(run, lambda: len(_served(site, killed_s)) == pages, 240.0)
    return [
        Row("freshness of one engine", alone, ""),
        Row("freshness of four shards", together, ""),
        Row("one engine is fresher by", alone - together, "", at_most=0.02 if judged else None),
        Row("requests over the budget, worst second", max(excess, 0.0), "", at_most=BUDGET * JITTER_S),
        Row("after a lost node, all pages polled again", lost_s, "s", at_most=60.0 if judged else None),
    ]


@contextmanager
def _site(rates: list[float], lasts_s: float) -> Iterator[LivingSite]:
    with LivingSite(rates, hosts=HOSTS, lasts_s=lasts_s + 600.0) as site:
        yield site


def _freshness(site: LivingSite, settle_s: float, measured_s: float, work: Callable[[], None]) -> float:
    """Return the expected freshness of the copies after they were settled, while ``work`` goes on."""
    work()
    begin_s = min(time_s for time_s, _ in site.requests) + settle_s
    return site.expected_freshness(begin_s, begin_s + measured_s)


def _one_engine(site: LivingSite, lasts_s: float) -> None:
    spec = ShardSpec(0, (0,), SETTINGS.format(budget=BUDGET, store="sqlite:{shard}"), {}, ".", "bench")
    with tempfile.TemporaryDirectory() as folder, make_engine(spec.parse(), folder, seed=1) as engine:
        engine.add(site.urls())
        engine.run(for_s=lasts_s + 1.0)


@contextmanager
def _running(folder: Path, database: str, site: LivingSite, nodes: RayCluster) -> Iterator[ClusterRun]:
    store = f"{database}{'&' if '?' in database else '?'}schema=shard_{{shard}}"
    text = SETTINGS.format(budget=BUDGET, store=store)
    spec = ShardSpec(-1, tuple(range(SHARDS)), text, {}, str(folder), project_name(str(folder)))
    with make_engine(spec.parse(), folder) as engine, ray_session(nodes.address) as ray:
        engine.add(site.urls())
        run = ClusterRun(ray, engine, spec, no_secret)
        run.start()
        try:
            yield run
        finally:
            run.stop(30.0)


def no_secret(_name: str) -> str | None:
    return None


def _steps(run: ClusterRun, lasts_s: float) -> None:
    _until(run, lambda: False, lasts_s + 10.0)


def _until(run: ClusterRun, condition: Callable[[], bool], limit_s: float) -> float:
    """Look after the cluster until ``condition`` is true, or for ``limit_s`` seconds; return how long."""
    began_s = CLOCK.elapsed_s()
    while not condition() and CLOCK.elapsed_s() < began_s + limit_s:
        run.step()
        threading.Event().wait(0.5)
    return CLOCK.elapsed_s() - began_s


def _served(site: LivingSite, since_s: float) -> set[str]:
    return {path for time_s, path in list(site.requests) if time_s >= since_s}


def _most_in_a_second(site: LivingSite) -> float:
    """Return the largest number of requests in any second, as the site counted them."""
    times = np.sort(np.array([time_s for time_s, _ in site.requests]))
    return float(np.max(np.searchsorted(times, times + 1.0) - np.arange(times.size)))
