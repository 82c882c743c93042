"""Events, notices, the ledger and named values in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from afresh.stores.memory.data import MemoryGroup
from afresh.stores.store import Events, Ledger, State, StoredNotices
from afresh.values.outcome import NOTHING_SPENT, Spent
from afresh.values.stored import Event, LedgerRow, Notice, minute_of


class MemoryEvents(MemoryGroup, Events):
    """Implements ``Events``."""

    def take(self, now_s: float, limit: int, retry_s: float) -> list[Event]:
        with self._data:
            events = self._data.events
            numbers = [number for number, (due_s, _) in sorted(events.items()) if due_s <= now_s][:limit]
            for number in numbers:
                event = events[number][1]
                events[number] = (now_s + retry_s, replace(event, attempts=event.attempts + 1))
            return [events[number][1] for number in numbers]

    def done(self, ids: Sequence[int]) -> None:
        with self._data:
            for number in ids:
                self._data.events.pop(number, None)

    def defer(self, ids: Sequence[int], until_s: float) -> None:
        with self._data:
            for number in ids:
                if number in self._data.events:
                    self._data.events[number] = (until_s, self._data.events[number][1])

    def waiting(self) -> int:
        with self._data:
            return len(self._data.events)


class MemoryNotices(MemoryGroup, StoredNotices):
    """Implements ``StoredNotices``."""

    def add(self, ids: Sequence[int], time_s: float) -> None:
        with self._data:
            for item_id in ids:
                if item_id in self._data.records:
                    old = self._data.notices.get(item_id) or Notice(0, item_id, time_s, 0)
                    number = self._data.next_number("notice")
                    time = max(old.time_s, time_s)
                    self._data.notices[item_id] = Notice(number, item_id, time, old.count + 1)

    def open(self, after: int = 0) -> list[Notice]:
        with self._data:
            notices = sorted(self._data.notices.values(), key=lambda notice: notice.number)
        return [notice for notice in notices if notice.number > after]


class MemoryLedger(MemoryGroup, Ledger):
    """Implements ``Ledger``."""

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        with self._data:
            place = (minute_of(time_s), source)
            self._data.ledger[place] = self._data.ledger.get(place, NOTHING_SPENT) + spent

    def total(self, since_s: float, until_s: float) -> Spent:
        return reduce(add, (row.spent for row in self.rows(since_s, until_s)), NOTHING_SPENT)

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        with self._data:
            rows = sorted((place, spent) for place, spent in self._data.ledger.items())
        found = [LedgerRow(minute * 60.0, source, spent) for (minute, source), spent in rows]
        return [row for row in found if since_s <= row.start_s < until_s]

    def forget(self, before_s: float) -> None:
        with self._data:
            for place in [place for place in self._data.ledger if place[0] * 60.0 < before_s]:
                del self._data.ledger[place]


class MemoryState(MemoryGroup, State):
    """Implements ``State``."""

    def get(self, name: str) -> bytes | None:
        with self._data:
            return self._data.values.get(name)

    def set(self, values: Mapping[str, bytes | None]) -> None:
        with self._data:
            for name, data in values.items():
                if data is None:
                    self._data.values.pop(name, None)
                else:
                    self._data.values[name] = data

    def names(self) -> list[str]:
        with self._data:
            return sorted(self._data.values)
