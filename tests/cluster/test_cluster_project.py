"""A cluster answers as one project: over stores of shards that are opened here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.shards_in_files import FileShards, file_shards, opened_cluster
from tests.slow_cases import with_slow_cases
from tests.sources.polling import SetClock

from afresh.cluster.cluster_project import ClusterProject
from afresh.cluster.ray_session import ClusterError
from afresh.engine.external_polls import Reported
from afresh.engine.feed.feed_reader import ChangeQuery
from afresh.engine.project_interface import ShardedProject
from afresh.values.errors import AmbiguousKeyError, CursorError, InputError, UnknownItemError, UsageError
from afresh.values.items import SORTS, Item, ItemQuery

URLS = [f"https://site-{number}.example/page" for number in range(12)]
NOW_S = SetClock().now_s()


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[FileShards]:
    """Three shards with the items of their hosts."""
    with file_shards(tmp_path, clock=SetClock()) as made:
        for url in URLS:
            made.add(url)
        yield made


@pytest.fixture
def cluster(shards: FileShards) -> Iterator[ClusterProject]:
    with opened_cluster(shards) as opened:
        yield opened


def poll(shards: FileShards, url: str, *contents: bytes, source: str = "web") -> None:
    """Report polls of an item to its shard, a minute apart; the last one was a minute ago."""
    for age, content in zip(range(len(contents), 0, -1), contents, strict=True):
        shards.add(url, source).observe([Reported(url, NOW_S - 60.0 * age, content=content)])


def test_a_cluster_is_a_project(cluster: ClusterProject) -> None:
    project: ShardedProject = cluster
    status = project.status()
    assert (status.items, status.by_status, status.limits.requests) == (12, {"active": 12}, 9.0)
    for url in URLS:
        assert project.why(url).item.key == url
        assert project.detail(url).estimate.plan == "new"
        assert project.get(url) is None
        assert project.versions(url) == []
    assert project.changes().is_last
    project.check_store()
    assert project.source_names() == ["web", "mirror"]


def test_unknown_items_and_items_of_two_sources_are_named(
    cluster: ClusterProject, shards: FileShards
) -> None:
    with pytest.raises(UnknownItemError, match=r"no item 'https://nobody\.example/' in any shard"):
        cluster.why("https://nobody.example/")
    shards.add(URLS[0], "mirror")
    with pytest.raises(AmbiguousKeyError, match="mirror, web"):
        cluster.get(URLS[0])
    assert cluster.why(URLS[0], source="mirror").item.source == "mirror"


def test_a_cluster_does_not_poll_for_get(cluster: ClusterProject) -> None:
    with pytest.raises(UsageError, match="--max-age works with one engine only"):
        cluster.get(URLS[0], max_age_s=60.0)


@pytest.mark.parametrize("descending", with_slow_cases([True, False], kept=1))
def test_a_list_of_all_shards_is_sorted_and_whole(
    cluster: ClusterProject, shards: FileShards, descending: bool
) -> None:
    for number, url in enumerate(URLS[:6]):
        poll(shards, url, b"one", b"two %d" % (number % 2))
    for sort in SORTS:
        query = ItemQuery(sort=sort, descending=descending)
        found: list[Item] = []
        cursor: str | None = None
        while True:
            listed = cluster.list_items(query, 5, cursor)
            assert len(listed.estimates) == len(listed.page.items) <= 5
            found += listed.page.items
            cursor = listed.page.cursor
            if cursor is None:
                break
            assert len(cursor) < 120
        assert sorted(item.key for item in found) == sorted(URLS)
        values = [getattr(item, {"due": "due_s", "changed": "changed_s"}.get(sort, sort)) for item in found]
        known = [-math.inf if value is None else value for value in values]
        assert known == sorted(known, reverse=descending)


def test_a_wrong_cursor_of_a_list_is_refused(cluster: ClusterProject) -> None:
    for cursor in ("x", "[1]", '["a", 1, 2]', "[1, 2, null]"):
        with pytest.raises(InputError, match="is no cursor of this list"):
            cluster.list_items(ItemQuery(), 5, cursor)


def test_changes_of_all_shards_come_in_order(cluster: ClusterProject, shards: FileShards) -> None:
    for url in URLS[:6]:
        poll(shards, url, b"old", b"new " + url.encode())
    end = cluster.feed.cursor()
    page = cluster.feed.page(None, 100, ChangeQuery(content="raw"))
    assert len(page.changes) == 12
    assert page.changes[-1].content.startswith(b"new https://")
    newest = cluster.feed.newest(4)
    assert newest[0].kind == "changed"
    older = cluster.feed.newest(100, before=newest[-1].cursor)
    assert sorted(entry.key for entry in [*newest, *older]) == sorted(URLS[:6] * 2)
    assert "+new https://" in cluster.feed.diff(newest[0], 10)
    older = cluster.feed.newest(3, None, newest[-1].cursor)
    seen = {
        (entry.key, entry.kind)
        for entry in [*newest, *older, *cluster.feed.newest(9, "web", older[-1].cursor)]
    }
    assert len(seen) == 12
    last = cluster.feed.last()
    assert list(cluster.changes(end).changes) == []
    poll(shards, URLS[7], b"later")
    assert cluster.feed.last() == last + 1
    assert [change.item for change in cluster.changes(end, source="web").changes] == [URLS[7]]
    shards.place((5,))
    with pytest.raises(CursorError, match="no shard"):
        cluster.feed.diff(newest[0], 10)


def test_the_overview_adds_up_what_shards_show(cluster: ClusterProject, shards: FileShards) -> None:
    for url in URLS:
        poll(shards, url, b"one", b"two")
    seen = cluster.overview()
    assert (seen.status.items, seen.status.copies, seen.status.budget_per_s) == (12, 12, 9.0)
    assert seen.pulse is None
    assert seen.course.size == 0
    assert seen.failing == ()


def test_shards_that_cannot_be_read_are_named(cluster: ClusterProject, shards: FileShards) -> None:
    assert cluster.cluster_status().is_running is False
    shards.seen(1, problems=((2, "waits for node far"),))
    status = cluster.cluster_status()
    assert status.is_running
    assert status.price == 0.25
    words = [shard.problem for shard in status.shards]
    assert words == ["", "nothing is heard of it", "waits for node far"]
    assert sum(shard.items for shard in status.shards) == 12
    shards.place((0, 1, 2, 7), ("", "", "", "far"))  # the store of shard 7 is elsewhere, where Ray is not
    status = cluster.cluster_status()
    assert "the Ray cluster at 127.0.0.1:9 cannot be reached" in status.shards[-1].problem
    assert cluster.overview().status.items == 12  # of the shards that can be read
    with pytest.raises(ClusterError, match="cannot be reached"):
        cluster.status()


def test_without_a_run_a_shard_elsewhere_is_out_of_reach(cluster: ClusterProject, shards: FileShards) -> None:
    shards.place((0,), ("far",))
    with pytest.raises(ClusterError, match="does not run, and the store of shard 0 is on node far"):
        cluster.status()
    shards.place((9,))
    with pytest.raises(ClusterError, match="shard 9: "):
        cluster.status()


def test_a_host_larger_than_a_shard_is_reported(cluster: ClusterProject, shards: FileShards) -> None:
    assert cluster.cluster_status().large_hosts == ()
    engine = shards.add("https://large.example/0")
    engine.add([f"https://large.example/{number}" for number in range(1, 30)], source="web")
    (host,) = cluster.cluster_status().large_hosts
    assert (host.host, host.items) == ("large.example", 30)
    assert shards.engines[host.shard] is engine
