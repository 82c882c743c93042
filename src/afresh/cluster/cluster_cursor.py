"""The change feed of a cluster: the feeds of all shards, merged; its cursor holds a place in each of them.

The changes of one shard keep their order, so that those of one item are in order. The changes of different
shards are merged by the time at which they were seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from afresh.engine.feed.feed_reader import ChangePage
from afresh.values.changes import Change
from afresh.values.errors import CursorError

_MOST_DIGITS = 9  # of the number of a shard


def parse_cursor(cursor: str) -> dict[int, str]:
    """Return the place in the feed of each shard.

    >>> parse_cursor("0=a1-7-0c.3=b2-9-0d")
    {0: 'a1-7-0c', 3: 'b2-9-0d'}
    """
    found: dict[int, str] = {}
    for part in cursor.split("."):
        shard, equals, place = part.partition("=")
        if not (equals and shard.isdecimal() and len(shard) <= _MOST_DIGITS and place):
            raise CursorError(
                f"{cursor[:60]!r} is no cursor of a cluster: use one from 'afresh cluster changes'"
            )
        found[int(shard)] = place
    return found


def format_cursor(places: Mapping[int, str]) -> str:
    """Return the cursor of these places in the feeds of shards.

    >>> format_cursor({3: "b2-9-0d", 0: "a1-7-0c"})
    '0=a1-7-0c.3=b2-9-0d'
    """
    return ".".join(f"{shard}={places[shard]}" for shard in sorted(places))


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
