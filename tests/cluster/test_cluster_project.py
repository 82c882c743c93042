"""A cluster answers as one project: over stores of shards that are opened here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from afresh.cluster.cluster_project import ClusterProject, OpenedShard
from afresh.cluster.host_hashing import assign_hosts
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.project_interface import Project
from afresh.engine.settings.parsing import parse_settings
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.values.errors import AmbiguousKeyError, UsageError

SETTINGS = parse_settings("[budget]\nrequests = '9/s'\n[[source]]\nname = 'web'\n[[source]]\nname = 'mirror'")
URLS = [f"https://site-{number}.example/page" for number in range(12)]
SHARDS = (0, 1, 2)


@pytest.fixture
def engines() -> Iterator[dict[int, Engine]]:
    """The engines of three shards, with the items of their hosts."""
    found = {shard: make_engine(SETTINGS, store=MemoryStore()) for shard in SHARDS}
    for url, shard in zip(URLS, assign_hosts([url.split("/")[2] for url in URLS], SHARDS), strict=True):
        found[shard].add([url], source="web")
    yield found
    for engine in found.values():
        engine.close()


@pytest.fixture
def cluster(engines: dict[int, Engine]) -> ClusterProject:
    return ClusterProject(SETTINGS, {shard: OpenedShard(engine) for shard, engine in engines.items()})


def test_a_cluster_is_a_project(cluster: ClusterProject) -> None:
    project: Project = cluster
    status = project.status()
    assert (status.items, status.by_status, status.limits.requests) == (12, {"active": 12}, 9.0)
    for url in URLS:
        assert project.why(url).item.key == url
        assert project.get(url) is None
        assert project.versions(url) == []
    assert project.changes().is_last
    assert list(project.newest()) == []


def test_unknown_items_and_items_of_two_sources_are_named(
    cluster: ClusterProject, engines: dict[int, Engine]
) -> None:
    with pytest.raises(UsageError, match=r"no item 'https://nobody\.example/' in any shard"):
        cluster.why("https://nobody.example/")
    engines[cluster.shard_of_item(URLS[0])].add([URLS[0]], source="mirror")
    with pytest.raises(AmbiguousKeyError, match="mirror, web"):
        cluster.get(URLS[0])
    assert cluster.why(URLS[0], source="mirror").item.source == "mirror"


def test_a_cluster_does_not_poll_for_get(cluster: ClusterProject) -> None:
    with pytest.raises(UsageError, match="--max-age works with one engine only"):
        cluster.get(URLS[0], max_age_s=60.0)
