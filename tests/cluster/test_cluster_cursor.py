"""The feeds of shards are merged: every change once, those of one shard in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.cluster.cluster_cursor import merge_pages, parse_cursor
from afresh.engine.feed.feed_reader import ChangePage
from afresh.values.changes import Change
from afresh.values.errors import CursorError

Feed = list[float]


def page(feed: Feed, shard: int, since: str | None, limit: int) -> ChangePage:
    """A page of a feed whose changes were seen at these times; its cursors are 1-N-0."""
    first = 0 if since is None else int(since.split("-")[1])
    some = feed[first : first + limit]
    changes = [
        Change(f"{shard}/{first + place}", "web", "changed", 1, time_s, cursor=f"1-{first + place + 1}-00")
        for place, time_s in enumerate(some)
    ]
    end = first + len(some)
    return ChangePage(changes, f"1-{end}-00", end == len(feed))


@given(st.lists(st.lists(st.floats(0, 100), max_size=12), min_size=1, max_size=4), st.integers(1, 7))
def test_every_change_comes_once_and_in_order(times: list[list[float]], limit: int) -> None:
    feeds = [sorted(each) for each in times]
    found: list[Change] = []
    since: str | None = None
    for _ in range(100):
        places = {} if since is None else parse_cursor(since)
        pages = {shard: page(feed, shard, places.get(shard), limit) for shard, feed in enumerate(feeds)}
        merged = merge_pages(places, pages, limit)
        assert len(merged.changes) <= limit
        found += merged.changes
        # Whoever stops after any change continues from its cursor.
        since = merged.changes[-1].cursor if merged.changes else merged.cursor
        if merged.is_last and not merged.changes:
            break
    names = [change.item for change in found]
    assert sorted(names) == sorted(
        f"{shard}/{n}" for shard, feed in enumerate(feeds) for n in range(len(feed))
    )
    for shard in range(len(feeds)):
        own = [int(name.split("/")[1]) for name in names if name.startswith(f"{shard}/")]
        assert own == sorted(own)


@pytest.mark.parametrize(
    "text", ["", "1-2-3", "0=", "x=1-2-3", "0=1-2-3..", pytest.param("9" * 5000 + "=1-1-00", id="digits")]
)
def test_other_cursors_are_refused(text: str) -> None:
    with pytest.raises(CursorError, match="no cursor of a cluster"):
        parse_cursor(text)
