"""The contract of every store. One suite of tests holds all backends to it.

**Atomic.** Every call is one transaction unless it says otherwise: it happens completely or, if it raises,
not at all. ``commit`` joins everything that a group of polls changes. ``StoredItems.add``, ``Plan.save`` and
``Observations.add`` take millions of rows and write them in batches.

**Durable.** When a writing call returns, its effect survives kill -9; except for leases it survives power
loss too. If a lease is lost to a power loss, a poll may be repeated, as any poll that was in flight.

**Errors.** Calls raise only ``StoreError`` and its subclasses for what may happen to a store (locked, full,
read-only, damaged), and ``InputError`` for wrong values. After any of them the store is as it was before the
call, stays open, and works again when the cause is gone. Iterators may raise them at every step.

**Time** is always an argument, in Unix seconds; a store has no clock. Times of observations are kept to the
microsecond, all others exactly. A due time of infinity means never.

**Threads and processes.** Any thread may call; writers take turns, readers do not wait for them. Any number
of processes may open one store (except the one in memory). An iterator is for one thread, and each batch that
it yields is a snapshot of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from afresh.values.arrays import Float64s
from afresh.values.clock import Clock
from afresh.values.errors import InputError
from afresh.values.items import Item, ItemChange, ItemCount, ItemPage, ItemQuery, NewItem
from afresh.values.lease import Lease
from afresh.values.outcome import Outcome, Refusal, Spent
from afresh.values.stored import (
    Claim,
    Copy,
    Edits,
    Event,
    Ids,
    LedgerRow,
    Notice,
    ObservationColumns,
    PolicyColumns,
    RequestWindow,
    StoreStats,
    Version,
    Worker,
)

PLANNER = "role:planner"
"""The claim whose holder plans for all workers; ``group_claim`` names the claims on politeness groups."""

EDITS_KEPT = 100_000
"""How many edits a store remembers; a reader that is further behind must read all items again."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept: ``versions`` and at least ``observations`` per item, at least ``audits`` in all."""

    versions: int = 5
    observations: int = 1000
    audits: int = 100_000

    def __post_init__(self) -> None:
        """Refuse a store that would drop what was just written."""
        for name in ("versions", "observations", "audits"):
            if getattr(self, name) < 1:
                raise InputError(f"retention of {name} is {getattr(self, name)}: must be 1 or more")


class StoredItems(Protocol):
    """Which items there are. Ids grow and are never used twice; a key names one item."""

    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        """Add the items whose key is unknown, due at once, and return how many. Each batch is atomic."""

    def change(self, keys: Sequence[str], change: ItemChange) -> tuple[str, ...]:
        """Apply one change to these items, to all or none, and return the keys that are unknown."""

    def remove(self, keys: Sequence[str], now_s: float, *, announce: bool = False) -> tuple[str, ...]:
        """Remove these items and their copies, and return the keys that are unknown.

        With ``announce`` an event is queued for each item.
        """

    def get(self, key: str) -> Item | None:
        """Return an item by its key, or None."""

    def by_id(self, ids: Sequence[int]) -> list[Item]:
        """Return items by id, in the order given, without the unknown ones."""

    def ids(self, keys: Sequence[str]) -> dict[str, int]:
        """Return the ids of the keys that are known."""

    def page(self, query: ItemQuery, limit: int, cursor: str | None = None) -> ItemPage:
        """Return a page of items; ``cursor`` is that of the page before, of the same query.

        A store may bound how many items it looks at. Then a page of a search or filter may have fewer items
        than ``limit``, even none, and still a cursor for the next page.
        """

    def due(self, now_s: float, limit: int) -> list[int]:
        """Return the ids of active items that are due and not leased, the longest due first."""

    def counts(self) -> list[ItemCount]:
        """Return the number of items per source, group and status, quickly however many there are."""

    def edits(self, after: int) -> Edits:
        """Return what ``change`` and ``remove`` did after edit ``after``; start with ``edits(0).number``."""


class Leases(Protocol):
    """Who polls what. An item has at most one lease that has not expired."""

    def take(
        self,
        ids: Sequence[int],
        now_s: float,
        duration_s: float,
        *,
        any_status: bool = False,
        worker: str = "",
    ) -> list[Lease]:
        """Lease these items, except those leased, unknown or (unless ``any_status``) not active.

        The longest due comes first. A lease expires at its ``until_s``, by the ``now_s`` of other calls, or
        when the ``worker`` that holds it leaves the fleet.
        """

    def take_due(
        self, now_s: float, limit: int, duration_s: float, *, source: str | None = None
    ) -> list[Lease]:
        """Lease the active items that have been due longest, at most ``limit``."""

    def release(self, leases: Sequence[Lease]) -> None:
        """Give leases back unused; those that others have taken since stay theirs."""

    def open(self, now_s: float) -> list[tuple[int, float]]:
        """Return the leases that have not expired: the item and when it was leased, oldest first."""

    def until_s(self, item_id: int, now_s: float) -> float | None:
        """Return when the lease of an item expires; None if it has no lease."""


class Copies(Protocol):
    """The copies. Equal bytes are stored once, under their hash."""

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        """Return the newest copy, or one version; None if there is none or it was not retained."""

    def versions(self, item_id: int) -> list[Version]:
        """Return the versions that are kept, newest first."""


class Plan(Protocol):
    """What a policy remembers between runs."""

    def columns(
        self, *, after_id: int = 0, batch: int = 8192, aside: bool = False
    ) -> Iterator[PolicyColumns]:
        """Yield all items with an id above ``after_id``, in batches, by id.

        ``aside`` says that other threads are busy, and the caller should not have to wait for the interpreter
        at every row.
        """

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        """Return the same of some items, by id, without the unknown ones."""

    def names(self) -> dict[int, str]:
        """Return the names that the codes of sources and groups stand for."""

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        """Keep due times (and beliefs) of many items, in batches; unknown ids are ignored."""


class Observations(Protocol):
    """Every poll that told something, so that a policy can learn from all of them again."""

    def read(self, ids: Sequence[int] | None = None) -> Iterator[ObservationColumns]:
        """Yield the observations of these items (or all), by item and time; a batch has whole items."""

    def add(self, observations: ObservationColumns) -> None:
        """Add polls that were made elsewhere or long ago, in batches of whole items.

        Counts, ``polled_s`` and ``changed_s`` only grow; due time and belief stay. A repeated call adds its
        rows again. Unknown ids are refused before anything is added.
        """

    def audits(self, since_s: float) -> ObservationColumns:
        """Return the audits since a time, of all items (removed ones too), in the order of their commits."""


class Events(Protocol):
    """Changes to be delivered to hooks, each at least once, in the order of their commits."""

    def take(self, now_s: float, limit: int, retry_s: float) -> list[Event]:
        """Return the next events due; each comes again after ``retry_s`` unless it is done before."""

    def done(self, ids: Sequence[int]) -> None:
        """Drop events that were delivered."""

    def defer(self, ids: Sequence[int], until_s: float) -> None:
        """Try these events again at ``until_s``; infinity keeps them without another attempt."""

    def waiting(self) -> int:
        """Return how many events are not done."""


class StoredNotices(Protocol):
    """Hints that items changed, one row per item, open until a poll that was leased later is committed."""

    def add(self, ids: Sequence[int], time_s: float) -> None:
        """Add a hint about each of these items; unknown ones are ignored."""

    def open(self, after: int = 0) -> list[Notice]:
        """Return the notices with a number above ``after``, in order."""


class Ledger(Protocol):
    """What polling cost, per minute and source. ``commit`` writes here too."""

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        """Add what was spent outside polls: robots.txt, sitemaps."""

    def total(self, since_s: float, until_s: float) -> Spent:
        """Return the sum over the minutes that start in [since, until)."""

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        """Return the same row by row, by time and source."""

    def forget(self, before_s: float) -> None:
        """Drop the minutes that start before this time."""


class State(Protocol):
    """Small named values: the engine's state, priors, settings."""

    def get(self, name: str) -> bytes | None:
        """Return a value, or None."""

    def set(self, values: Mapping[str, bytes | None]) -> None:
        """Set these values in one transaction; None drops a name."""

    def names(self) -> list[str]:
        """Return all names, sorted."""


class Fleet(Protocol):
    """What workers on one store share: who they are, what each has claimed, when requests may start.

    **Whose clock.** The clocks of machines differ, and claims, leases and windows are compared between
    machines. So all times that the workers of a fleet pass to a store are of one clock, that of
    ``SharedClock``: the machine's own, shifted by ``ahead_s``, which asks the database. A store on one
    machine is 0 s ahead.
    """

    def beat(self, worker: Worker) -> None:
        """Note that this worker is alive; ``started_s`` and ``host`` are kept from its first call."""

    def leave(self, worker: str) -> None:
        """Remove a worker, its claims and its leases."""

    def workers(self, since_s: float) -> list[Worker]:
        """Return the workers seen since a time, by name."""

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Claim each of these names that nobody else holds, and return those held now, in the order given.

        A claim expires at ``now_s + duration_s``, by the ``now_s`` of other calls; claiming a name again
        renews it. A worker that takes over a politeness group must wait its delay before the first request:
        the last holder may have sent one just before.
        """

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Renew all claims that others have not taken since, and return what is still held, sorted."""

    def release(self, names: Sequence[str], worker: str) -> None:
        """Give up these claims, where they are the worker's own."""

    def claims(self, now_s: float) -> list[Claim]:
        """Return the claims that have not expired, by name."""

    def reserve(self, count: int, spacing_s: float, slack_s: float, now_s: float) -> RequestWindow:
        """Return the next window in which one worker may start ``count`` requests, ``spacing_s`` apart.

        The windows of all workers follow each other, each at least ``spacing_s`` after the end of the one
        before and after all debts are paid, none before ``now_s``. If every worker starts requests only in
        its windows, ``spacing_s`` apart, all together keep the budget, however late one of them is: what it
        cannot start before the window's end it must reserve again. ``slack_s`` makes the window longer than
        its requests need, for those that start late. Time that nobody reserved is lost, and so is a window
        whose worker died.
        """

    def owe(self, owed_s: float, now_s: float) -> float:
        """Add a debt: no window begins before it is paid. Return when all debts will be paid."""

    def ahead_s(self, clock: Clock) -> float:
        """Return how far the store's clock is ahead of ``clock``; 0 if it is too little to be measured."""


def group_claim(group: str) -> str:
    """Return the name of the claim on a politeness group.

    >>> group_claim("example.org")
    'group:example.org'
    """
    return f"group:{group}"


class Upkeep(Protocol):
    """Care for the store as a whole. All methods may run while an engine works."""

    def check(self, sample: int | None = None) -> list[str]:
        """Return what is wrong, one line each. Hashes all contents again, or about ``sample`` of them."""

    def vacuum(self) -> None:
        """Give free space back to the operating system."""

    def backup(self, target: Path) -> None:
        """Write a consistent copy as a file that can be opened as a store; an older file is replaced."""

    def stats(self) -> StoreStats:
        """Return the sizes of the store."""


class Store(Protocol):
    """A store, open until ``close``; the module says what it promises."""

    @property
    def items(self) -> StoredItems: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def copies(self) -> Copies: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def observations(self) -> Observations: ...
    @property
    def events(self) -> Events: ...
    @property
    def notices(self) -> StoredNotices: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def state(self) -> State: ...
    @property
    def fleet(self) -> Fleet: ...
    @property
    def upkeep(self) -> Upkeep: ...

    def commit(
        self, outcomes: Sequence[Outcome], state: Mapping[str, bytes | None] | None = None
    ) -> list[Refusal]:
        """Commit these outcomes, all in one transaction, and set the values ``state`` as ``State.set`` does.

        An outcome counts if its lease is still the item's newest, even if it has expired. One whose lease was
        lost to another worker, or whose item was removed, is returned as refused. Nothing of it is kept,
        since the other worker's observation covers the same time, except what it spent, which has been paid.

        Per item: the lease ends; ``polls`` grows by one; with an observation ``polled_s`` (and ``changed_s``,
        ``changes``) move and it is remembered; a new copy becomes the newest version unless its bytes are
        the newest already; versions beyond the retention go, and contents that nothing refers to; an item
        that a user paused meanwhile stays paused; notices older than the lease are answered; the event is
        queued.
        """

    def close(self) -> None:
        """Close the store; a second call does nothing."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class ClosedOnExit(ABC):
    """Closes the store when a ``with`` block ends."""

    @abstractmethod
    def close(self) -> None:
        """Close the store; see ``Store.close``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
