"""The change feed of a store in a SQL database: written by commits, read by cursors; and its consumers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import afresh.stores.store as contract
from afresh.stores.cursors import check_limit
from afresh.stores.rows import Row
from afresh.stores.sql.dialect import ConnectionT, SqlPart
from afresh.values.changes import (
    Consumer,
    FeedCursor,
    FeedEntry,
    FeedPage,
    check_of_change,
    foreign_cursor_error,
    old_cursor_error,
    read_feed_cursor,
)
from afresh.values.errors import InputError
from afresh.values.storable_text import check_storable, is_storable

_TRIMMED_AT_ONCE = 10_000
_BEGINNING = 0  # the number before the first change


class SqlFeed(SqlPart[ConnectionT], contract.Feed):
    """Implements ``Feed``, except how a database numbers changes."""

    file = "feed"

    @abstractmethod
    def append(self, connection: ConnectionT, table: Sequence[Row]) -> None:
        """Write changes to the feed, as the last statement of the transaction: then the counter of changes
        is locked for a short time. A row is (item id, key, source id, kind, version, time_s, changed_s, size,
        previous_size, change_size, 1 if hooks are told of it or 0)."""

    def read(self, after: str | None = None, limit: int = 1000, source: str | None = None) -> FeedPage:
        check_limit(limit)
        place = None if after is None else read_feed_cursor(after)
        return self._database.snapshot(lambda connection: self._read(connection, place, limit, source))

    def newest(
        self, limit: int = 50, source: str | None = None, before: str | None = None
    ) -> list[FeedEntry]:
        check_limit(limit)
        place = None if before is None else read_feed_cursor(before)

        def work(connection: ConnectionT) -> list[FeedEntry]:
            epoch, last, _ = self._ends(connection)
            if place is not None and (place.epoch != epoch or place.number > last):
                raise foreign_cursor_error()
            given = {"limit": limit, "before": last + 1 if place is None else place.number}
            rows: list[Row] = []
            if source is None:
                rows = self._rows(connection, "newest", given)
            elif is_storable(source):
                for (source_id,) in self._rows(connection, "source_id", {"text": source}):
                    rows = self._rows(connection, "newest_of_source", given | {"source_id": source_id})
            return [_entry(epoch, row) for row in rows]

        return self._database.snapshot(work)

    def cursor(self) -> str:
        return self._database.snapshot(lambda connection: str(self._end(connection)))

    def start(self) -> str:
        def work(connection: ConnectionT) -> str:
            epoch, _, oldest = self._ends(connection)
            number = _BEGINNING if oldest in (None, 1) else int(oldest or 0)
            return str(FeedCursor(epoch, number, self._check_at(connection, number) or 0))

        return self._database.snapshot(work)

    def last(self) -> int:
        return int(self._fetch("last")[0][0])

    def trim(self, before_s: float) -> int:
        trimmed, dropped = 0, _TRIMMED_AT_ONCE
        while dropped == _TRIMMED_AT_ONCE:
            dropped = self._database.write(lambda connection: self._trim(connection, before_s))
            trimmed += dropped
        return trimmed

    def consumers(self) -> list[Consumer]:
        def work(connection: ConnectionT) -> list[Consumer]:
            ((last,),) = self._rows(connection, "last", {})
            return [
                Consumer(name, source, cursor, max(0, last - read_feed_cursor(cursor).number), moved_s)
                for name, source, cursor, moved_s in self._rows(connection, "consumers", {})
            ]

        return self._database.snapshot(work)

    def move(self, name: str, cursor: str, now_s: float, source: str = "") -> None:
        if not name:
            raise InputError("a consumer needs a name")
        check_storable("a consumer's name", [name])
        check_storable("the name of a source", [source])
        place = read_feed_cursor(cursor)

        def work(connection: ConnectionT) -> None:
            self._check(connection, place)
            given = {"name": name, "source": source, "cursor": cursor, "now_s": now_s}
            self._rows(connection, "move", given)

        self._database.write(work)

    def drop(self, name: str) -> bool:
        return is_storable(name) and bool(self._execute("drop", name=name))

    def _read(
        self, connection: ConnectionT, place: FeedCursor | None, limit: int, source: str | None
    ) -> FeedPage:
        epoch = self._ends(connection)[0]
        if place is not None:
            self._check(connection, place)
        given = {"after": _BEGINNING if place is None else place.number, "limit": limit + 1}
        rows: list[Row] = []
        if source is None:
            rows = self._rows(connection, "after", given)
        elif is_storable(source):
            for (source_id,) in self._rows(connection, "source_id", {"text": source}):
                rows = self._rows(connection, "after_of_source", given | {"source_id": source_id})
        entries = [_entry(epoch, row) for row in rows[:limit]]
        if len(rows) > limit:
            return FeedPage(entries, entries[-1].cursor, False)
        return FeedPage(entries, str(self._end(connection)), True)

    def _ends(self, connection: ConnectionT) -> tuple[int, int, int | None]:
        """Return a tuple: the epoch, the last number that was given, and the oldest one that is kept."""
        ((epoch, last, oldest),) = self._rows(connection, "ends", {})
        return epoch, last, oldest

    def _end(self, connection: ConnectionT) -> FeedCursor:
        epoch, last, _ = self._ends(connection)
        return FeedCursor(epoch, last, self._check_at(connection, last) or 0)

    def _check_at(self, connection: ConnectionT, number: int) -> int | None:
        """Return the check of the change with this number, None if it is not kept."""
        found = self._rows(connection, "identity", {"number": number})
        return check_of_change(*found[0]) if found else None

    def _check(self, connection: ConnectionT, place: FeedCursor) -> None:
        """Raise ``CursorError`` if the feed cannot be followed from ``place``."""
        epoch, last, oldest = self._ends(connection)
        if place.epoch != epoch or place.number > last:
            raise foreign_cursor_error()
        if place.number == _BEGINNING:
            if oldest not in (None, 1):
                raise old_cursor_error()
            return
        if oldest is None or place.number < oldest:
            raise old_cursor_error()
        if self._check_at(connection, place.number) != place.check:
            raise foreign_cursor_error()

    def _trim(self, connection: ConnectionT, before_s: float) -> int:
        """Drop at most ``_TRIMMED_AT_ONCE`` of the oldest changes; return how many."""
        rows = self._rows(connection, "oldest", {"limit": _TRIMMED_AT_ONCE + 1})
        old = 0
        while old < len(rows) and rows[old][1] < before_s:
            old += 1
        if old < 2:
            return 0
        anchor = rows[old - 1][0]  # it stays: its cursor is valid, because all later changes are kept
        ((untold,),) = self._rows(connection, "first_untold", {})
        anchor = anchor if untold is None else min(anchor, untold)
        self._rows(connection, "trim", {"anchor": anchor})
        return max(0, int(anchor - rows[0][0]))


def _entry(epoch: int, row: Row) -> FeedEntry:
    number, item_id, key, source, kind, version, time_s, *rest = row
    check = check_of_change(item_id, kind, version, time_s)
    cursor = f"{epoch:x}-{number}-{check:08x}"
    return FeedEntry(cursor, item_id, key, source, kind, version, time_s, *rest)
