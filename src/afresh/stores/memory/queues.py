"""Events, notices, the ledger and named values in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from afresh.stores.memory.world import World
from afresh.stores.minutes import minute_of
from afresh.values.outcome import NOTHING_SPENT, Spent
from afresh.values.stored import Event, LedgerRow, Notice


class MemoryEvents:
    """``Events`` in memory."""

    def __init__(self, world: World) -> None:
        """In one world."""
        self._world = world

    def take(self, now_s: float, limit: int, retry_s: float) -> list[Event]:
        """The next ones."""
        with self._world:
            events = self._world.events
            numbers = [number for number, (due_s, _) in sorted(events.items()) if due_s <= now_s][:limit]
            for number in numbers:
                event = events[number][1]
                events[number] = (now_s + retry_s, replace(event, attempts=event.attempts + 1))
            return [events[number][1] for number in numbers]

    def done(self, ids: Sequence[int]) -> None:
        """Delivered."""
        with self._world:
            for number in ids:
                self._world.events.pop(number, None)

    def defer(self, ids: Sequence[int], until_s: float) -> None:
        """Not delivered."""
        with self._world:
            for number in ids:
                if number in self._world.events:
                    self._world.events[number] = (until_s, self._world.events[number][1])

    def waiting(self) -> int:
        """Not done."""
        with self._world:
            return len(self._world.events)


class MemoryNotices:
    """``Notices`` in memory."""

    def __init__(self, world: World) -> None:
        """In one world."""
        self._world = world

    def add(self, ids: Sequence[int], time_s: float) -> None:
        """Hints about items."""
        with self._world:
            for item_id in ids:
                if item_id in self._world.records:
                    old = self._world.notices.get(item_id) or Notice(0, item_id, time_s, 0)
                    number = self._world.next_number("notice")
                    time = max(old.time_s, time_s)
                    self._world.notices[item_id] = Notice(number, item_id, time, old.count + 1)

    def open(self, after: int = 0) -> list[Notice]:
        """Those not answered."""
        with self._world:
            notices = sorted(self._world.notices.values(), key=lambda notice: notice.number)
        return [notice for notice in notices if notice.number > after]


class MemoryLedger:
    """``Ledger`` in memory."""

    def __init__(self, world: World) -> None:
        """In one world."""
        self._world = world

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        """Outside any poll."""
        with self._world:
            place = (minute_of(time_s), source)
            self._world.ledger[place] = self._world.ledger.get(place, NOTHING_SPENT) + spent

    def total(self, since_s: float, until_s: float) -> Spent:
        """A sum."""
        return reduce(add, (row.spent for row in self.rows(since_s, until_s)), NOTHING_SPENT)

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        """Row by row."""
        with self._world:
            rows = sorted((place, spent) for place, spent in self._world.ledger.items())
        found = [LedgerRow(minute * 60.0, source, spent) for (minute, source), spent in rows]
        return [row for row in found if since_s <= row.start_s < until_s]

    def forget(self, before_s: float) -> None:
        """Drop the old."""
        with self._world:
            for place in [place for place in self._world.ledger if place[0] * 60.0 < before_s]:
                del self._world.ledger[place]


class MemoryState:
    """``State`` in memory."""

    def __init__(self, world: World) -> None:
        """In one world."""
        self._world = world

    def get(self, name: str) -> bytes | None:
        """One value."""
        with self._world:
            return self._world.values.get(name)

    def set(self, values: Mapping[str, bytes | None]) -> None:
        """Several, together."""
        with self._world:
            for name, data in values.items():
                if data is None:
                    self._world.values.pop(name, None)
                else:
                    self._world.values[name] = data

    def names(self) -> list[str]:
        """All names."""
        with self._world:
            return sorted(self._world.values)
