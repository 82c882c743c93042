"""Events, notices, the ledger, named values and the fleet (threads of one process) in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from tests.stores.reference.data import ReferenceGroup

from afresh.stores.store import Events, Fleet, Ledger, State, StoredNotices
from afresh.values.clock import Clock
from afresh.values.outcome import NOTHING_SPENT, Spent
from afresh.values.storable_text import check_storable
from afresh.values.stored import (
    Claim,
    DueEvents,
    Event,
    FailedEvent,
    LedgerRow,
    Notice,
    RequestWindow,
    Worker,
    minute_of,
)


class ReferenceEvents(ReferenceGroup, Events):
    def due(self, now_s: float) -> dict[str, DueEvents]:
        with self._data:
            found: dict[str, list[float]] = {}
            for due_s, event in self._data.events.values():
                if due_s <= now_s:
                    found.setdefault(event.source, []).append(event.time_s)
            return {source: DueEvents(len(times), min(times)) for source, times in found.items()}

    def take(self, now_s: float, limit: int, retry_s: float, source: str | None = None) -> list[Event]:
        with self._data:
            events = self._data.events
            held_up = {
                event.item_id: number
                for number, (due_s, event) in sorted(events.items(), reverse=True)
                if now_s < due_s < math.inf
            }
            numbers = [
                number
                for number, (due_s, event) in sorted(events.items())
                if due_s <= now_s
                and source in (None, event.source)
                and number < held_up.get(event.item_id, number + 1)
            ][:limit]
            for number in numbers:
                event = events[number][1]
                events[number] = (now_s + retry_s, replace(event, attempts=event.attempts + 1))
            return [events[number][1] for number in numbers]

    def done(self, ids: Sequence[int]) -> None:
        with self._data:
            for number in ids:
                self._data.events.pop(number, None)
                self._data.event_problems.pop(number, None)

    def defer(self, ids: Sequence[int], until_s: float, problem: str = "") -> None:
        with self._data:
            for number in ids:
                if number in self._data.events:
                    self._data.events[number] = (until_s, self._data.events[number][1])
                    self._data.event_problems[number] = problem

    def put_back(self, ids: Sequence[int], until_s: float) -> None:
        with self._data:
            for number in ids:
                if number in self._data.events and self._data.events[number][1].attempts > 0:
                    event = self._data.events[number][1]
                    self._data.events[number] = (until_s, replace(event, attempts=event.attempts - 1))

    def waiting(self) -> int:
        with self._data:
            return sum(due_s < math.inf for due_s, _ in self._data.events.values())

    def failed(self, limit: int) -> list[FailedEvent]:
        with self._data:
            found = [
                FailedEvent(self._data.events[number][1], problem, self._data.events[number][0])
                for number, problem in sorted(self._data.event_problems.items())
                if problem
            ]
        return sorted(found, key=lambda one: not one.is_given_up)[:limit]

    def given_up(self) -> int:
        with self._data:
            return sum(due_s == math.inf for due_s, _ in self._data.events.values())

    def retry(self, now_s: float, ids: Sequence[int] | None = None) -> int:
        with self._data:
            failed = [number for number, problem in self._data.event_problems.items() if problem]
            chosen = [number for number in failed if ids is None or number in ids]
            for number in chosen:
                event = self._data.events[number][1]
                self._data.events[number] = (now_s, replace(event, attempts=0))
                del self._data.event_problems[number]
            return len(chosen)

    def retell(self, after: int, source: str) -> int:
        with self._data:
            found = [e for e in self._data.feed[after:] if e is not None and e.source == source]
            for entry in found:
                number = self._data.next_number("event")
                place = (entry.item_id, entry.key, entry.source, entry.kind, entry.version, entry.time_s)
                self._data.events[number] = (entry.time_s, Event(number, *place, 0))
            return len(found)


class ReferenceNotices(ReferenceGroup, StoredNotices):
    def add(self, ids: Sequence[int], time_s: float | Sequence[float], origin: str = "") -> None:
        times = time_s if isinstance(time_s, Sequence) else [time_s] * len(ids)
        with self._data:
            for item_id, own_s in zip(ids, times, strict=True):
                if item_id in self._data.records:
                    old = self._data.notices.get((item_id, origin)) or Notice(0, item_id, own_s, 0, origin)
                    number, time = self._data.next_number("notice"), max(old.time_s, own_s)
                    new = Notice(number, item_id, time, old.count + 1, origin)
                    self._data.notices[item_id, origin] = new

    def open(self, after: int = 0) -> list[Notice]:
        with self._data:
            notices = sorted(self._data.notices.values(), key=lambda notice: notice.number)
        return [notice for notice in notices if notice.number > after]


class ReferenceLedger(ReferenceGroup, Ledger):
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


class ReferenceState(ReferenceGroup, State):
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

    def replace(self, name: str, before: bytes | None, after: bytes) -> bool:
        with self._data:
            if self._data.values.get(name) != before:
                return False
            self._data.values[name] = after
            return True

    def names(self) -> list[str]:
        with self._data:
            return sorted(self._data.values)


class ReferenceFleet(ReferenceGroup, Fleet):
    def beat(self, worker: Worker) -> None:
        check_storable("a worker's name", [worker.name, worker.host])
        with self._data:
            known = self._data.workers.get(worker.name, worker)
            self._data.workers[worker.name] = replace(known, seen_s=worker.seen_s)

    def leave(self, worker: str) -> None:
        with self._data:
            self._data.workers.pop(worker, None)
            mine = [name for name, claim in self._data.claims.items() if claim.worker == worker]
            for name in mine:
                del self._data.claims[name]
            for record in self._data.records.values():
                if record.lease is not None and record.lease.worker == worker:
                    record.lease = None

    def workers(self, since_s: float) -> list[Worker]:
        with self._data:
            workers = sorted(self._data.workers.items())
        return [worker for _, worker in workers if worker.seen_s >= since_s]

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        check_storable("a claim's name", [*names, worker])
        held = []
        with self._data:
            for name in dict.fromkeys(names):
                claim = self._data.claims.get(name)
                if claim is None or claim.worker == worker or claim.until_s <= now_s:
                    self._data.claims[name] = Claim(name, worker, now_s + duration_s)
                    held.append(name)
        return tuple(held)

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        with self._data:
            mine = sorted(name for name, claim in self._data.claims.items() if claim.worker == worker)
            return self.take(mine, worker, now_s, duration_s)

    def release(self, names: Sequence[str], worker: str) -> None:
        with self._data:
            for name in names:
                claim = self._data.claims.get(name)
                if claim is not None and claim.worker == worker:
                    del self._data.claims[name]

    def claims(self, now_s: float) -> list[Claim]:
        with self._data:
            claims = sorted(self._data.claims.items())
        return [claim for _, claim in claims if claim.until_s > now_s]

    def reserve(
        self, count: int, spacing_s: float, slack_s: float, now_s: float, late_s: float = 0.0
    ) -> RequestWindow:
        with self._data:
            window, self._data.reservations = self._data.reservations.reserve(
                count, spacing_s, slack_s, now_s, late_s
            )
        return window

    def give_back(self, until_s: float, last_s: float) -> None:
        with self._data:
            self._data.reservations = self._data.reservations.give_back(until_s, last_s)

    def next_slot_s(self, spacing_s: float, now_s: float, late_s: float) -> float:
        with self._data:
            return self._data.reservations.next_slot_s(spacing_s, now_s, late_s)

    def owe(self, owed_s: float, now_s: float) -> float:
        with self._data:
            self._data.reservations = self._data.reservations.owe(owed_s, now_s)
            return self._data.reservations.debt_s

    @property
    def has_own_clock(self) -> bool:
        return False

    def ahead_s(self, clock: Clock) -> float:
        del clock
        return 0.0
