"""Whole hosts belong to shards; few of them move when shards come and go."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.cluster.host_hashing import assign_hosts, large_hosts

HOSTS = [f"www.site-{number}.example" for number in range(3000)]


@given(st.sets(st.integers(0, 200), min_size=2, max_size=12))
def test_only_the_hosts_of_a_removed_shard_move(shards: set[int]) -> None:
    gone = min(shards)
    before, after = assign_hosts(HOSTS, sorted(shards)), assign_hosts(HOSTS, sorted(shards - {gone}))
    assert all(old == new for old, new in zip(before, after, strict=True) if old != gone)


def test_shards_get_equally_many_hosts() -> None:
    counts = Counter(assign_hosts(HOSTS, range(10)))
    assert min(counts.values()) > 220
    assert max(counts.values()) < 380


def test_the_order_of_the_shards_does_not_matter() -> None:
    assert assign_hosts(HOSTS, [2, 0, 1]) == assign_hosts(HOSTS, [0, 1, 2])


def test_the_assignment_never_changes_between_versions() -> None:
    """If it did, a new version would move every item."""
    hosts = ["example.org", "10.0.0.1:8080", "ä.example", "", "source:books"]
    assert assign_hosts(hosts, range(16)) == [10, 10, 14, 9, 6]


def test_large_hosts_are_named_the_largest_first() -> None:
    assert large_hosts({"a": 10, "b": 50, "c": 60, "d": 5}, 3) == ["c", "b"]


def test_without_shards_nothing_can_be_assigned() -> None:
    with pytest.raises(ValueError, match="no shards"):
        assign_hosts(["a"], [])
