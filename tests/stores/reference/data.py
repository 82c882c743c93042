"""Everything that a store in memory holds, under one lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import RLock

from afresh.stores.shared_time import ReservationState
from afresh.values.changes import FeedEntry
from afresh.values.errors import StoreError
from afresh.values.items import Item
from afresh.values.lease import Lease
from afresh.values.outcome import Answer, Observation, Spent
from afresh.values.stored import Claim, Copy, Event, Notice, Worker


@dataclass(slots=True)
class ItemRecord:
    """One item and what belongs to it; copies are sorted from the oldest to the newest."""

    item: Item
    belief: bytes = b""
    validators: Mapping[str, str] = field(default_factory=dict)
    lease: Lease | None = None
    listed: bool = False
    copies: list[Copy] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)


@dataclass(slots=True)
class ReferenceData:
    """All items by id, and what is not about one item. Used as a context it holds the lock."""

    records: dict[int, ItemRecord] = field(default_factory=dict)
    ids: dict[str, dict[str, int]] = field(default_factory=dict)  # by key, then by source
    names: dict[str, int] = field(default_factory=dict)
    edits: list[int] = field(default_factory=list)
    audits: list[Observation] = field(default_factory=list)
    feed: list[FeedEntry | None] = field(default_factory=list)
    consumers: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    events: dict[int, tuple[float, Event]] = field(default_factory=dict)
    event_problems: dict[int, str] = field(default_factory=dict)
    notices: dict[tuple[int, str], Notice] = field(default_factory=dict)
    ledger: dict[tuple[int, str], Spent] = field(default_factory=dict)
    values: dict[str, bytes] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    answers: dict[tuple[int, int], Answer] = field(default_factory=dict)
    texts: dict[tuple[bytes, str], str] = field(default_factory=dict)
    reservations: ReservationState = field(default_factory=ReservationState)
    lock: RLock = field(default_factory=RLock)
    closed: bool = False

    def __enter__(self) -> None:
        self.lock.acquire()
        if self.closed:
            self.lock.release()
            raise StoreError("the store in memory is closed")

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    def next_number(self, counter: str) -> int:
        self.counters[counter] = self.counters.get(counter, 0) + 1
        return self.counters[counter]

    def code(self, name: str) -> int:
        """Return the code of a source's or group's name, a new one if it is new."""
        return self.names.setdefault(name, len(self.names) + 1)

    def is_free(self, record: ItemRecord, now_s: float) -> bool:
        """Return whether nobody holds a lease of the item that has not run out."""
        return record.lease is None or record.lease.until_s <= now_s


class ReferenceGroup:
    """One group of a store's methods, on the data that all groups share."""

    def __init__(self, data: ReferenceData) -> None:
        self._data = data
