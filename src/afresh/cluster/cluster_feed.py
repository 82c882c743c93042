"""The change feed of a cluster: the feeds of its shards as one. It implements ``ChangeFeed``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice

from afresh.cluster.cluster_cursor import format_cursor, merge_pages, parse_cursor
from afresh.cluster.shard_reader import ShardReader
from afresh.engine.engine import Engine
from afresh.engine.feed.feed_reader import ChangePage, ChangeQuery
from afresh.values.changes import FeedEntry
from afresh.values.errors import CursorError

_FEWEST_READ = 20


class ClusterFeed:
    """The changes of all shards that ``readers`` returns. Any thread may use it."""

    def __init__(self, readers: Callable[[], Mapping[int, ShardReader]]) -> None:
        self._readers = readers

    def page(self, since: str | None, limit: int = 1000, query: ChangeQuery | None = None) -> ChangePage:
        """Return at most ``limit`` changes after the cursor ``since`` (None: from the oldest kept)."""
        places = {} if since is None else parse_cursor(since)
        pages = {
            shard: reader.ask(_page, places.get(shard), limit, query)
            for shard, reader in self._readers().items()
        }
        return merge_pages(places, pages, limit)

    def cursor(self) -> str:
        """Return the cursor of the newest change."""
        return format_cursor({shard: reader.ask(_cursor) for shard, reader in self._readers().items()})

    def newest(self, limit: int, source: str | None = None, before: str | None = None) -> Sequence[FeedEntry]:
        """Return at most ``limit`` changes, the newest first; with the cursor ``before``, only those before
        its places. The cursor of each begins with the place in its own shard."""
        places = {} if before is None else parse_cursor(before)
        readers = self._readers()
        size = max(_FEWEST_READ, 2 * limit // len(readers))
        feeds = [
            _newest_of(shard, reader, source, places.get(shard), size) for shard, reader in readers.items()
        ]
        found = []
        for shard, entry in islice(merge(*feeds, key=lambda one: -one[1].time_s), limit):
            places = {shard: entry.cursor} | {
                other: place for other, place in places.items() if other != shard
            }
            cursor = ".".join(format_cursor({each: place}) for each, place in places.items())
            found.append(entry._replace(cursor=cursor))
        return found

    def diff(self, entry: FeedEntry, most_lines: int) -> str:
        """Return at most ``most_lines`` lines of the difference that a change made; empty if not known."""
        shard, cursor = next(iter(parse_cursor(entry.cursor).items()))
        reader = self._readers().get(shard)
        if reader is None:
            raise CursorError(f"there is no shard {shard} any more: its items have moved to others")
        return reader.ask(_diff, entry._replace(cursor=cursor), most_lines)

    def last(self) -> int:
        """Return a number that grows with every change."""
        return sum(reader.ask(_last) for reader in self._readers().values())


def _page(engine: Engine, since: str | None, limit: int, query: ChangeQuery | None) -> ChangePage:
    return engine.feed.page(since, limit, query)


def _cursor(engine: Engine) -> str:
    return engine.feed.cursor()


def _newest(engine: Engine, limit: int, source: str | None, before: str | None) -> Sequence[FeedEntry]:
    return engine.feed.newest(limit, source, before)


def _newest_of(
    shard: int, reader: ShardReader, source: str | None, before: str | None, size: int
) -> Iterator[tuple[int, FeedEntry]]:
    """Yield the changes of a shard, the newest first, which are read ``size`` at once."""
    while True:
        entries = reader.ask(_newest, size, source, before)
        yield from ((shard, entry) for entry in entries)
        if len(entries) < size:
            return
        before = entries[-1].cursor


def _diff(engine: Engine, entry: FeedEntry, most_lines: int) -> str:
    return engine.feed.diff(entry, most_lines)


def _last(engine: Engine) -> int:
    return engine.feed.last()
