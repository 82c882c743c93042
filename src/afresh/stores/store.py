"""The contract of every store. One suite of tests checks that all backends keep it.

**Atomic.** Every call is one transaction unless it says otherwise: it happens completely or, if it raises,
not at all. ``commit`` writes all changes of the outcomes that it is given. ``StoredItems.add``, ``Plan.save``
and ``Observations.add`` accept millions of rows and write them in batches.

**Durable.** When a writing call returns, its effect survives kill -9. It also survives power loss, except
that a store in SQLite may lose leases and claims. If a lease is lost, its poll may be repeated, like any poll
that runs during a power loss.

**Errors.** Calls raise ``StoreError`` or a subclass if the store cannot be used (locked, full, read-only,
damaged), ``InputError`` for wrong values, and nothing else. After an error the store is as it was before the
call, stays open, and works again when the cause is gone. Iterators may raise these errors at every step.

**Time** is always an argument, in Unix seconds, because a store has no clock. Times of observations are
stored to the microsecond, all others exactly. A due time of infinity means never.

**Threads and processes.** Any thread may call. Writers wait for each other, but readers do not wait for
writers. Any number of processes may open one store, except a store in memory. An iterator is for one thread,
and each batch that it yields is a snapshot of its own.
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
"""The claim whose holder plans for all workers; ``group_claim`` returns the names of claims on groups."""

EDITS_KEPT = 100_000
"""How many edits a store remembers. A reader that missed more of them must read all items again."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What a store keeps: ``versions`` and at least ``observations`` per item, at least ``audits`` in all."""

    versions: int = 5
    observations: int = 1000
    audits: int = 100_000

    def __post_init__(self) -> None:
        """Raise ``InputError`` for 0, with which a store would drop what was just written."""
        for name in ("versions", "observations", "audits"):
            if getattr(self, name) < 1:
                raise InputError(f"retention of {name} is {getattr(self, name)}: must be 1 or more")


class StoredItems(Protocol):
    """The items of the store. Ids grow and are never used twice; a key names one item."""

    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        """Add the items whose key is unknown, due at ``now_s``, and return how many. Each batch is atomic."""

    def change(self, keys: Sequence[str], change: ItemChange) -> tuple[str, ...]:
        """Apply one change to these items, to all or to none, and return the keys that are unknown."""

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
        """Return a page of items; ``cursor`` comes from the previous page of the same query.

        A store may limit how many items it reads for a page. So a page of a search or filter may have fewer
        items than ``limit``, even none, and still have a cursor for the next page.
        """

    def due(self, now_s: float, limit: int) -> list[int]:
        """Return the ids of active items that are due and not leased, the earliest due time first."""

    def counts(self) -> list[ItemCount]:
        """Return the number of items per source, group and status, without counting the items."""

    def edits(self, after: int) -> Edits:
        """Return the items that ``change`` and ``remove`` edited after edit ``after``.

        A reader starts with ``edits(0).number``.
        """


class Leases(Protocol):
    """Which worker polls which item. An item has at most one lease that has not expired."""

    def take(
        self,
        ids: Sequence[int],
        now_s: float,
        duration_s: float,
        *,
        any_status: bool = False,
        worker: str = "",
    ) -> list[Lease]:
        """Lease these items, except items that are leased, unknown or (unless ``any_status``) not active.

        Leases are returned in the order of due times. A lease expires when another call's ``now_s`` reaches
        its ``until_s``, or when the ``worker`` that holds it leaves the fleet.
        """

    def take_due(
        self, now_s: float, limit: int, duration_s: float, *, source: str | None = None
    ) -> list[Lease]:
        """Lease the active items that have been due longest, at most ``limit``."""

    def release(self, leases: Sequence[Lease]) -> None:
        """End these leases without a poll, unless another worker has leased the item since."""

    def open(self, now_s: float) -> list[tuple[int, float]]:
        """Return (item id, time of the lease) of the leases that have not expired, the oldest first."""

    def until_s(self, item_id: int, now_s: float) -> float | None:
        """Return the time when the lease of an item expires, or None if the item is not leased."""


class Copies(Protocol):
    """The copies of items. Equal bytes are stored once, under their hash."""

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        """Return the newest copy, or version ``number``; None if it does not exist or is no longer kept."""

    def versions(self, item_id: int) -> list[Version]:
        """Return the versions that are kept, newest first."""


class Plan(Protocol):
    """The state of a policy between runs: due times and beliefs of items."""

    def columns(
        self, *, after_id: int = 0, batch: int = 8192, whole_batches: bool = False
    ) -> Iterator[PolicyColumns]:
        """Yield all items with an id above ``after_id``, in batches, by id.

        With ``whole_batches``, a store reads a batch in one step, so that in a process with busy threads the
        caller does not wait for the interpreter lock at every database row.
        """

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        """Return the columns of these items, in the order of their ids, without the unknown ones."""

    def names(self) -> dict[int, str]:
        """Return the names of sources and groups by their codes in ``PolicyColumns``."""

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        """Save the due times (and beliefs) of many items, in batches; unknown ids are ignored."""


class Observations(Protocol):
    """The observations of all polls, from which a policy can learn again."""

    def read(self, ids: Sequence[int] | None = None) -> Iterator[ObservationColumns]:
        """Yield the observations of these items (or of all), sorted by item and time.

        All observations of an item are in one batch.
        """

    def add(self, observations: ObservationColumns) -> None:
        """Add observations that were made elsewhere or long ago, in batches of whole items.

        The items' counts, ``polled_s`` and ``changed_s`` only grow; due time and belief stay. A repeated call
        adds its rows again. Raise ``InputError`` for unknown ids before anything is added.
        """

    def audits(self, since_s: float) -> ObservationColumns:
        """Return the audits since a time, also of removed items, in the order of their commits."""


class Events(Protocol):
    """Changes to be delivered to hooks, each at least once, in the order of their commits."""

    def take(self, now_s: float, limit: int, retry_s: float) -> list[Event]:
        """Return the next events that are due. An event is due again after ``retry_s`` unless it is done."""

    def done(self, ids: Sequence[int]) -> None:
        """Remove events that were delivered."""

    def defer(self, ids: Sequence[int], until_s: float) -> None:
        """Make these events due at ``until_s``. With infinity they are kept and never delivered."""

    def waiting(self) -> int:
        """Return how many events are not done."""


class StoredNotices(Protocol):
    """Hints that items changed, at most one per item and origin, open until a poll leased later is
    committed."""

    def add(self, ids: Sequence[int], time_s: float | Sequence[float], origin: str = "") -> None:
        """Add a notice from ``origin`` for each of these items; unknown ids are ignored. ``time_s`` is the
        time of the change where it is known, else of the hint: one for all items, or one for each."""

    def open(self, after: int = 0) -> list[Notice]:
        """Return the open notices with a number above ``after``, in the order of their numbers."""


class Ledger(Protocol):
    """The cost of polling, per minute and source. ``commit`` writes to the ledger too."""

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        """Add spending outside polls, such as for robots.txt and sitemaps."""

    def total(self, since_s: float, until_s: float) -> Spent:
        """Return the spending of all sources in the minutes that start in [since_s, until_s)."""

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        """Return the spending per minute and source in [since_s, until_s), by time and source."""

    def forget(self, before_s: float) -> None:
        """Remove the minutes that start before this time."""


class State(Protocol):
    """Small named values: the engine's state, priors, settings."""

    def get(self, name: str) -> bytes | None:
        """Return the value of ``name``, or None if there is none."""

    def set(self, values: Mapping[str, bytes | None]) -> None:
        """Set these values in one transaction; None removes a name."""

    def names(self) -> list[str]:
        """Return all names, sorted."""


class Fleet(Protocol):
    """What the workers on one store share: their names, their claims, and when each may start requests.

    **The clock.** The clocks of machines differ, but claims, leases and request windows are compared between
    machines. Therefore all times that the workers of a fleet pass to a store are read from a ``SharedClock``:
    the machine's own clock plus ``ahead_s``. If the store is on the same machine, ``ahead_s`` is 0.
    """

    def beat(self, worker: Worker) -> None:
        """Record that this worker is alive. ``started_s`` and ``host`` of its first call are kept."""

    def leave(self, worker: str) -> None:
        """Remove a worker, its claims and its leases."""

    def workers(self, since_s: float) -> list[Worker]:
        """Return the workers seen since a time, by name."""

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Claim each of these names that no other worker holds; return those held now, in the given order.

        A claim expires when another call's ``now_s`` reaches ``now_s + duration_s``. Claiming a name again
        renews its claim. A worker that claims a group must wait for the group's delay before its first
        request, because the previous holder may have just sent one.
        """

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Renew all claims of this worker that no other worker has taken, and return their names, sorted."""

    def release(self, names: Sequence[str], worker: str) -> None:
        """End those of these claims that the worker holds."""

    def claims(self, now_s: float) -> list[Claim]:
        """Return the claims that have not expired, by name."""

    def reserve(self, count: int, spacing_s: float, slack_s: float, now_s: float) -> RequestWindow:
        """Return the next window in which one worker may start ``count`` requests, ``spacing_s`` apart.

        The windows of all workers follow each other: a window begins at least ``spacing_s`` after the end of
        the previous one, after all debts are paid, and not before ``now_s``. If every worker starts requests
        only in its windows and ``spacing_s`` apart, all workers together keep the budget. A worker must
        reserve again for requests that it could not start before the end of the window. ``slack_s`` makes the
        window longer than its requests need, so that requests may start late. Time that no worker reserved is
        lost, and so is the window of a worker that died.
        """

    def owe(self, owed_s: float, now_s: float) -> float:
        """Add a debt of ``owed_s`` seconds, in which no window begins. Return when all debts will be paid."""

    def ahead_s(self, clock: Clock) -> float:
        """Return the seconds that the store's clock is ahead of ``clock``; 0 if too few to be measured."""


def group_claim(group: str) -> str:
    """Return the name of the claim on a group.

    >>> group_claim("example.org")
    'group:example.org'
    """
    return f"group:{group}"


class Upkeep(Protocol):
    """Maintenance of the whole store. All methods may run while an engine runs."""

    def check(self, sample: int | None = None) -> list[str]:
        """Return one line per problem. All contents are hashed again, or about ``sample`` of them."""

    def vacuum(self) -> None:
        """Return free space to the operating system."""

    def backup(self, target: Path) -> None:
        """Write a consistent copy to a file that can be opened as a store; replace an older file."""

    def stats(self) -> StoreStats:
        """Return the sizes of the store."""


class Store(Protocol):
    """A store, open until ``close``. The docstring of this module is its contract."""

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

        An outcome is accepted if its lease is still the item's newest, even if the lease has expired. An
        outcome whose lease was lost to another worker, or whose item was removed, is returned as refused.
        Only its spending is saved, because that has been paid. Its observation is not saved, because the
        other worker's observation covers the same time.

        For each accepted outcome: the lease ends. ``polls`` grows by one. An observation is added and updates
        ``polled_s``, and after a change ``changed_s`` and ``changes``. A new copy becomes the newest version,
        unless its bytes equal the newest version. Versions beyond the retention are removed, and contents
        that no version uses. An item that a user paused in the meantime stays paused. Notices older than the
        lease are closed. The event is queued.
        """

    def close(self) -> None:
        """Close the store; a second call does nothing."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class ClosedOnExit(ABC):
    """A base class of stores that closes the store when a ``with`` block ends."""

    @abstractmethod
    def close(self) -> None:
        """Close the store; see ``Store.close``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
