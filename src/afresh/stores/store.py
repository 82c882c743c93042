"""The contract of every store. One suite of tests holds all backends to it.

**Atomic.** Every call is one transaction unless it says otherwise: it happens whole or, if it raises, not
at all. ``commit`` joins everything that a group of polls left behind. ``Items.add``, ``Plan.save`` and
``Observations.add`` take millions of rows, go in batches and repeat harmlessly.

**Durable.** When a writing call returns, its effect survives kill -9; that of all but leases survives power
loss too. A lease lost to power is a poll that may be repeated, as any poll that was in flight.

**Errors.** Only ``StoreError`` and its kin for what may happen to a store (locked, full, read-only,
damaged), ``InputError`` for wrong values. After any of them the store is as it was before the call, stays
open, and works again when the cause is gone. Iterators may raise them at every step.

**Time** is always an argument, in Unix seconds; a store has no clock. Times of observations are kept to the
microsecond, all others exactly. Infinity is a due time: never.

**Threads and processes.** Any thread may call; writers take turns, readers do not wait for them. Any
number of processes may open one store (but for the one in memory). An iterator is for one thread, and each
batch it yields is a snapshot of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
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
"""The claim whose holder plans for all; those of politeness groups are named by ``group_claim``."""

EDITS_KEPT = 100_000
"""How many edits a store remembers; whoever lags further behind reads everything anew."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of the past is kept: ``versions`` per item, at least the newest ``observations`` per item,
    at least the newest ``audits`` in all."""

    versions: int = 5
    observations: int = 1000
    audits: int = 100_000

    def __post_init__(self) -> None:
        """Refuse a store that forgets what it was just told."""
        for name in ("versions", "observations", "audits"):
            if getattr(self, name) < 1:
                raise InputError(f"retention of {name} is {getattr(self, name)}: must be 1 or more")


class StoredItems(Protocol):
    """Which items there are. Ids grow and are never given twice; a key names one item."""

    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        """Register those whose key is unknown, due at once; how many were new. In batches, each atomic."""

    def change(self, keys: Sequence[str], change: ItemChange) -> tuple[str, ...]:
        """Apply one change to these items; the keys that are unknown. All or none."""

    def remove(self, keys: Sequence[str], now_s: float, *, announce: bool = False) -> tuple[str, ...]:
        """Forget these items and their copies; the keys that are unknown. ``announce``: an event for each."""

    def get(self, key: str) -> Item | None:
        """One item by its key."""

    def by_id(self, ids: Sequence[int]) -> list[Item]:
        """Items by id, in the order asked for, without the unknown."""

    def ids(self, keys: Sequence[str]) -> dict[str, int]:
        """The ids of the known keys."""

    def page(self, query: ItemQuery, limit: int, cursor: str | None = None) -> ItemPage:
        """A page of items; ``cursor`` is that of the page before, of the same query.

        A store may look at so many items only: with a search or filter a page may then have fewer items
        than asked for, even none, and still a cursor that goes on.
        """

    def due(self, now_s: float, limit: int) -> list[int]:
        """The ids of active items due and not leased, longest due first; ``by_id`` tells the rest."""

    def counts(self) -> list[ItemCount]:
        """Items per source, group and status, quick however many there are."""

    def edits(self, after: int) -> Edits:
        """What ``change`` and ``remove`` did since edit ``after``; ``edits(0).number`` is where to start."""


class Leases(Protocol):
    """Who polls what. An item has at most one lease that has not run out."""

    def take(
        self,
        ids: Sequence[int],
        now_s: float,
        duration_s: float,
        *,
        any_status: bool = False,
        worker: str = "",
    ) -> list[Lease]:
        """Lease these items, but for those leased, unknown or (unless ``any_status``) not active.

        The longest due comes first. A lease runs out at its ``until_s``, by the ``now_s`` of others, or when
        the ``worker`` that it is for leaves the fleet.
        """

    def take_due(
        self, now_s: float, limit: int, duration_s: float, *, source: str | None = None
    ) -> list[Lease]:
        """Lease the active items longest due, at most ``limit``."""

    def release(self, leases: Sequence[Lease]) -> None:
        """Give leases back unused; those lost to others meanwhile are left to them."""

    def open(self, now_s: float) -> list[tuple[int, float]]:
        """The leases that have not run out: item and when it was leased, oldest first."""

    def until_s(self, item_id: int, now_s: float) -> float | None:
        """When the lease of an item runs out; None if it has none that has not."""


class Copies(Protocol):
    """The copies, addressed by content: equal bytes are kept once."""

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        """The newest copy, or one version; ``None`` if there is none (or it was not retained)."""

    def versions(self, item_id: int) -> list[Version]:
        """The versions kept, newest first."""


class Plan(Protocol):
    """What a policy remembers between runs."""

    def columns(
        self, *, after_id: int = 0, batch: int = 8192, aside: bool = False
    ) -> Iterator[PolicyColumns]:
        """All items with an id above ``after_id``, in batches, by id.

        ``aside``: by a thread beside busy ones, which should not have to wait for them at every row.
        """

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        """The same of some items, by id, without the unknown."""

    def names(self) -> dict[int, str]:
        """What the codes of sources and groups stand for."""

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        """Keep due times (and beliefs) of many items, in batches; unknown ids are left out."""


class Observations(Protocol):
    """Every poll that told something, for learning anew."""

    def read(self, ids: Sequence[int] | None = None) -> Iterator[ObservationColumns]:
        """Observations of these items (or all), whole items per batch, by item id and time."""

    def add(self, observations: ObservationColumns) -> None:
        """Take in polls made elsewhere or long ago. Counts, ``polled_s`` and ``changed_s`` move forward only;
        due and belief stay. In batches of whole items; a repeated call adds its rows again. Unknown ids are
        refused before anything is added."""

    def audits(self, since_s: float) -> ObservationColumns:
        """The audits since a time, of all items (removed ones too), in the order they were committed."""


class Events(Protocol):
    """Changes to be told to hooks, each at least once, in the order they were committed."""

    def take(self, now_s: float, limit: int, retry_s: float) -> list[Event]:
        """The next events due; each comes again after ``retry_s`` unless it is done before."""

    def done(self, ids: Sequence[int]) -> None:
        """These were delivered."""

    def defer(self, ids: Sequence[int], until_s: float) -> None:
        """These were not: try again at ``until_s``, infinity to give up but keep."""

    def waiting(self) -> int:
        """How many are not done."""


class StoredNotices(Protocol):
    """Hints that items changed, one line per item, open until a poll leased later is committed."""

    def add(self, ids: Sequence[int], time_s: float) -> None:
        """Take in a hint about each of these items; unknown ones are ignored."""

    def open(self, after: int = 0) -> list[Notice]:
        """Notices with a number above ``after``, in order."""


class Ledger(Protocol):
    """What polling cost, per minute and source. ``commit`` writes here too."""

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        """What was spent outside any poll: robots.txt, sitemaps."""

    def total(self, since_s: float, until_s: float) -> Spent:
        """The sum over the minutes that start in [since, until)."""

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        """The same, row by row, by time and source."""

    def forget(self, before_s: float) -> None:
        """Drop the minutes that start before this."""


class State(Protocol):
    """Small named values: the engine's state, priors, settings."""

    def get(self, name: str) -> bytes | None:
        """One value."""

    def set(self, values: Mapping[str, bytes | None]) -> None:
        """Keep these, together; ``None`` drops a name."""

    def names(self) -> list[str]:
        """All names, sorted."""


class Fleet(Protocol):
    """What workers on one store share: who they are, what each may ask for, when requests may start.

    **Whose clock.** Machines' clocks differ, and claims, leases and windows are compared between machines.
    So all times that workers of a fleet give to a store are of one clock, that of ``shared_clock``: the
    machine's own, moved by ``ahead_s``, which asks the database's. A store on one machine is 0 ahead.
    """

    def beat(self, worker: Worker) -> None:
        """This worker is alive; ``started_s`` and ``host`` are those of its first beat under its name."""

    def leave(self, worker: str) -> None:
        """It is not, and holds nothing any more: no claim and no lease."""

    def workers(self, since_s: float) -> list[Worker]:
        """Those seen since, by name."""

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Claim each of these that nobody else holds; those held now, in the order asked for.

        A claim runs out at ``now_s + duration_s``, by the ``now_s`` of others; taking one's own again
        renews it. Whoever takes over a politeness group waits its delay before the first request: the
        last holder may have asked just before.
        """

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Hold on to everything not lost to others meanwhile; what is still held, sorted."""

    def release(self, names: Sequence[str], worker: str) -> None:
        """Give up these, where they are its own."""

    def claims(self, now_s: float) -> list[Claim]:
        """The claims that have not run out, by name."""

    def reserve(self, count: int, spacing_s: float, slack_s: float, now_s: float) -> RequestWindow:
        """The next window in which one worker may start ``count`` requests, ``spacing_s`` apart.

        Windows follow each other in one line for all workers, each at least ``spacing_s`` after the end of
        the one before and after all debts are paid, none before ``now_s``. A worker that starts requests
        in its windows only, ``spacing_s`` apart, keeps the budget's promise together with all others
        however late it is: what it cannot start until the window's end it must reserve anew. ``slack_s``
        makes the window longer than its requests need, for those that start late. Time that nobody
        reserved is gone, and so is a window whose worker died.
        """

    def owe(self, owed_s: float, now_s: float) -> float:
        """No window begins before so many seconds more have passed; when all debts will be paid."""

    def ahead_s(self, clock: Clock) -> float:
        """How far the store's clock is ahead of ``clock``; 0 where it cannot be told from none."""


def group_claim(group: str) -> str:
    """The name of the claim on a politeness group.

    >>> group_claim("example.org")
    'group:example.org'
    """
    return f"group:{group}"


class Upkeep(Protocol):
    """Care for the store as a whole. All may run beside an engine."""

    def check(self, sample: int | None = None) -> list[str]:
        """What is wrong, in words; empty if nothing is. Hashes all contents again, or ``sample``."""

    def vacuum(self) -> None:
        """Give free space back to the machine."""

    def backup(self, target: Path) -> None:
        """A consistent copy as a file that can be opened as a store; an older file there is replaced."""

    def stats(self) -> StoreStats:
        """Sizes."""


class Store(Protocol):
    """A store, open from its making until ``close``; see the module for what it promises."""

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
        """Make these outcomes part of the store, all in one transaction, with ``state`` as ``State.set``.

        An outcome counts if its lease is still the item's newest, run out or not. One whose lease was lost
        to another worker, or whose item was removed, is returned as refused: nothing of it is kept, for the
        other's observation covers the same time, except what it spent, for its source has paid that.

        Per item: the lease ends; ``polls`` grows by one; with an observation ``polled_s`` (and ``changed_s``,
        ``changes``) move and it is remembered; a new copy becomes the newest version unless its bytes are
        the newest already; versions beyond the retention go, and contents that nothing refers to; an item
        that a user paused meanwhile stays paused; notices older than the lease are answered; the event is
        queued.
        """

    def close(self) -> None:
        """Let go of everything; a second time does nothing."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ClosedOnExit(ABC):
    """Closes the store when a ``with`` block ends."""

    @abstractmethod
    def close(self) -> None:
        """Close the store; see ``Store.close``."""

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()
