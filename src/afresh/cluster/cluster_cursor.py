"""The change feed of a cluster: the feeds of all shards, merged; its cursor holds a place in each of them.

The changes of one shard keep their order, so that those of one item are in order. The changes of different
shards are merged by the time at which they were seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from afresh.engine.feed.feed_reader import ChangePage
from afresh.values.changes import Change, FeedEntry
from afresh.values.errors import CursorError


def parse_cursor(cursor: str) -> dict[int, str]:
    """Return the place in the feed of each shard.

    >>> parse_cursor("0=a1-7-0c.3=b2-9-0d")
    {0: 'a1-7-0c', 3: 'b2-9-0d'}
    """
    found: dict[int, str] = {}
    for part in cursor.split("."):
        shard, equals, place = part.partition("=")
        if not (equals and shard.isdecimal() and place):
            raise CursorError(f"{cursor!r} is no cursor of a cluster: use one from 'afresh cluster changes'")
        found[int(shard)] = place
    return found


def format_cursor(places: Mapping[int, str]) -> str:
    """Return the cursor of these places in the feeds of shards.

    >>> format_cursor({3: "b2-9-0d", 0: "a1-7-0c"})
    '0=a1-7-0c.3=b2-9-0d'
    """
    return _join(dict(sorted(places.items())))


def merge_pages(before: Mapping[int, str], pages: Mapping[int, ChangePage], limit: int) -> ChangePage:
    """Return the first ``limit`` changes of the pages of all shards, each with the cursor after it.
    ``before`` are the places where the pages begin, without shards that are read from their oldest change."""
    left = {shard: list(page.changes) for shard, page in pages.items()}
    places = {shard: place for shard, place in before.items() if shard in pages}
    found: list[Change] = []
    while len(found) < limit:
        waiting = [shard for shard, changes in left.items() if changes]
        if not waiting:
            break
        shard = min(waiting, key=lambda each: (left[each][0].time_s, each))
        change = left[shard].pop(0)
        places[shard] = change.cursor
        found.append(replace(change, cursor=format_cursor(places)))
    for shard, page in pages.items():
        if not left[shard]:
            places[shard] = page.cursor  # also if it has no change
    is_last = all(page.is_last and not left[shard] for shard, page in pages.items())
    return ChangePage(found, format_cursor(places), is_last)


def merge_newest(
    before: Mapping[int, str], newest: Mapping[int, Sequence[FeedEntry]], limit: int
) -> list[FeedEntry]:
    """Return the newest ``limit`` changes of all shards, the newest first, each with the cursor before which
    the search continues: its own shard is the first in it. ``newest`` are those of each shard, ``before`` the
    cursors before which they are, without shards that are read from their end."""
    left = {shard: list(reversed(entries)) for shard, entries in newest.items()}
    places = {shard: place for shard, place in before.items() if shard in newest}
    found: list[FeedEntry] = []
    while len(found) < limit and any(left.values()):
        shard = max((each for each in left if left[each]), key=lambda each: (left[each][-1].time_s, -each))
        entry = left[shard].pop()
        places = {shard: entry.cursor} | {other: place for other, place in places.items() if other != shard}
        found.append(replace(entry, cursor=_join(places)))
    return found


def _join(places: Mapping[int, str]) -> str:
    return ".".join(f"{shard}={place}" for shard, place in places.items())
