"""A cluster of engines on two nodes of Ray: the budget, a lost node, shards that come and go, and reading."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.cluster.ray_cluster import RayCluster, ray_cluster
from tests.engine.living import LivingSite
from tests.stores.backends import schema_url

from afresh.cluster.actors import coordinator_name, shard_name
from afresh.cluster.cluster_feed import ClusterFeed
from afresh.cluster.cluster_project import open_cluster
from afresh.cluster.cluster_run import ClusterRun, CoordinatorLostError
from afresh.cluster.coordinator import SAVED
from afresh.cluster.ray_session import ClusterError, ray_session
from afresh.cluster.shard_reader import RemoteShard, ShardUnreachableError, StoredShard
from afresh.cluster.shard_settings import ShardSpec, project_name
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.values.clock import SystemClock
from afresh.values.errors import UnknownItemError
from afresh.values.items import ItemQuery

pytestmark = [
    pytest.mark.waits(together="ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves its pipes to the end of the process
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
PAGES, HOSTS, BUDGET = 48, 8, 24.0
SETTINGS = """
[store]
url = "sqlite:project.db"
[budget]
requests = "{budget}/s"
[cluster]
store = "{store}"
share = "8s"
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


def no_secret(_name: str) -> str | None:
    return None


@pytest.fixture(scope="module")
def site() -> Iterator[LivingSite]:
    rates = np.geomspace(0.01, 1.0, PAGES).tolist()
    with LivingSite(rates, hosts=HOSTS, lasts_s=1200.0) as started:
        yield started


class Project:
    """A project folder, and its clusters one after the other."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder, self.text = folder, SETTINGS.format(budget=BUDGET, store=store)

    def spec(self, shards: int) -> ShardSpec:
        numbers = tuple(range(shards))
        return ShardSpec(-1, numbers, self.text, {}, str(self.folder), project_name(str(self.folder)))

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        with make_engine(self.spec(1).parse(), self.folder) as engine:
            yield engine

    @contextmanager
    def running(self, nodes: RayCluster, shards: int) -> Iterator[ClusterRun]:
        with self.engine() as engine, ray_session(nodes.address) as ray:
            run = ClusterRun(ray, engine, self.spec(shards), no_secret)
            run.start()
            try:
                yield run
            finally:
                run.stop(30.0)


def step_until(run: ClusterRun, condition: object, what: str, limit_s: float = 240.0) -> None:
    """Look after the cluster until ``condition`` is true."""
    assert callable(condition)
    end_s = CLOCK.elapsed_s() + limit_s
    while not condition():
        assert CLOCK.elapsed_s() < end_s, f"waited in vain: {what}"
        run.step()
        asyncio.run(asyncio.sleep(0.2))


def served_since(site: LivingSite, begin_s: float) -> set[str]:
    return {path for time_s, path in list(site.requests) if time_s >= begin_s}


def kept(project: Project, shards: int) -> dict[str, tuple[int, int]]:
    """By key, the polls of each item and the number of its newest version, from the stores of the shards."""
    found: dict[str, tuple[int, int]] = {}
    with project.engine() as engine, ExitStack() as stack:
        cluster = open_cluster(engine, project.spec(shards), stack)
        for reader in cluster.readers.values():
            assert isinstance(reader, StoredShard)
            store = reader.engine.store
            assert store.upkeep.check() == []
            for item in store.items.page(ItemQuery(), 1000).items:
                assert item.key not in found
                found[item.key] = item.polls, item.version
    return found


def most_over_budget(times: list[float], jitter_s: float) -> float:
    """The largest excess over rate·(T + jitter) + burst in any window, as the site counts it."""
    when = np.sort(np.array(times))
    level = np.arange(when.size) - BUDGET * when
    worst = float(np.max(level - np.minimum.accumulate(level))) + 1.0
    return worst - BUDGET * (jitter_s + 1.0)  # the burst is one second's requests


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_lost_node_and_more_shards(site: LivingSite, tmp_path: Path, postgres_url: str) -> None:
    with ray_cluster() as nodes:
        check_that_nothing_is_lost(nodes, site, tmp_path, postgres_url)


def check_that_nothing_is_lost(
    nodes: RayCluster, site: LivingSite, tmp_path: Path, postgres_url: str
) -> None:
    store = schema_url(postgres_url, tmp_path) + "_{shard}"
    project = Project(tmp_path, store)
    began_s = CLOCK.now_s()
    with project.engine() as engine:
        engine.add(site.urls())
    with project.running(nodes, 3) as run:
        step_until(run, lambda: len(served_since(site, began_s)) == PAGES, "every page is polled once")
        with project.engine() as engine:
            assert engine.store.items.counts() == []  # all items are in their shards
            assert problem_of_a_second_run(nodes, project) == "a run of this project goes on in this cluster"
        view = run.step().view
        assert view is not None
        assert sum(shard.rate_per_s for shard in view.shards) <= BUDGET * (1 + 1e-9)
        before = kept(project, 3)
        assert len(before) == PAGES

        nodes.kill_worker()
        killed_s = CLOCK.now_s()
        step_until(
            run, lambda: len(served_since(site, killed_s)) == PAGES, "all pages are polled again", 240.0
        )
        after = kept(project, 3)
        assert all(after[key] >= polled for key, polled in before.items())  # nothing is lost
    times = [time_s for time_s, _ in site.requests if time_s >= began_s]
    assert most_over_budget(times, 0.5) <= 0.0

    before = kept(project, 3)
    with project.running(nodes, 4):  # some hosts move to the new shard, with all that is known
        pass
    moved = kept(project, 4)
    assert moved.keys() == before.keys()
    assert all(moved[key] >= before[key] for key in before)
    with project.engine() as engine, ExitStack() as stack:
        cluster = open_cluster(engine, project.spec(4), stack)
        assert cluster.status().items == PAGES
        key = site.urls()[5]
        assert cluster.why(key).item.key == key
        copy = cluster.get(key)
        assert copy is not None
        assert copy.content.startswith(b"page 5 version")


def problem_of_a_second_run(nodes: RayCluster, project: Project) -> str:
    """What a second run of the project is told."""
    with project.engine() as engine, ray_session(nodes.address) as ray, pytest.raises(ClusterError) as error:
        ClusterRun(ray, engine, project.spec(3), no_secret).start()
    return str(error.value).partition(" already")[0]


@pytest.mark.timeout(600)
def test_a_second_coordinator_ends_the_run(ray_nodes: RayCluster, site: LivingSite, tmp_path: Path) -> None:
    project = Project(tmp_path, "sqlite:shards/{shard}.db")
    began_s = CLOCK.now_s()
    with project.engine() as engine:
        engine.add(site.urls()[:8])
    with project.running(ray_nodes, 2) as run:
        step_until(run, lambda: len(served_since(site, began_s)) == 8, "every page is polled once")
        check_processes_answer(run, project)
        with project.engine() as engine:
            packed = engine.store.state.get(SAVED)
            assert packed is not None
            engine.store.state.set({SAVED: b"another\n" + packed.partition(b"\n")[2]})
        with pytest.raises(CoordinatorLostError, match="another coordinator has taken over"):
            step_until(run, lambda: False, "the run ends")
    assert len(kept(project, 2)) == 8
    with ray_session(ray_nodes.address) as ray, pytest.raises(ValueError, match="look up actor"):
        ray.get_actor(coordinator_name(project.spec(2).project), namespace="afresh")


def check_processes_answer(run: ClusterRun, project: Project) -> None:
    """The processes of the shards answer as their stores do; commands on other machines ask them."""
    with ray_session(None) as ray:  # the one that the run has connected to
        name = project.spec(2).project
        readers = [RemoteShard(lambda: ray, shard, shard_name(name, shard)) for shard in run.shards]
        feed = ClusterFeed(lambda: dict(enumerate(readers)))
        step_until(run, lambda: len(feed.newest(20)) >= 8, "all changes are committed")
        assert sum(reader.ask(Engine.overview).status.items for reader in readers) == 8
        entry = feed.newest(1)[0]
        shard = int(entry.cursor.partition("=")[0])
        assert readers[shard].ask(Engine.detail, entry.key, source="web").why.item.key == entry.key
        with pytest.raises(UnknownItemError, match="there is no item"):
            readers[1 - shard].ask(Engine.get, entry.key)
        gone = RemoteShard(lambda: ray, 9, shard_name(name, 9))
        with pytest.raises(ShardUnreachableError, match="shard 9 is not running now"):
            gone.ask(Engine.status)


def test_a_cluster_that_is_not_there_is_named() -> None:
    words = "the Ray cluster at 127.0.0.1:9 cannot be reached: Connection refused"
    with pytest.raises(ClusterError, match=words), ray_session("127.0.0.1:9"):
        pass
