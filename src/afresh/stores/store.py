"""The contract of every store. One suite of tests checks that all backends keep it.

**Atomic.** Every call that writes is one transaction: it takes effect completely or, if it raises, not at
all. Only ``StoredItems.add``, ``Plan.save`` and ``Observations.add``, which accept millions of rows, write in
batches, and each batch is one transaction.

**Durable.** When a writing call returns, its effect survives kill -9. It also survives power loss, except
that a store in SQLite may lose leases and claims. If a lease is lost, its poll may be repeated, like any poll
that runs during a power loss.

**Errors.** Calls raise ``StoreError`` or a subclass if the store cannot be used (locked, full, read-only,
damaged), ``InputError`` for wrong arguments, and nothing else. After an error the data is as it was before
the call, the store stays open, and it works again when the cause is gone. Iterators may raise these errors at
every step.

**Time** is always an argument, in Unix seconds, because a store has no clock. Times of observations are
stored to the microsecond, all other times exactly. A due time of infinity means that the item is never due.

**Threads and processes.** Any thread may call. Writers wait for each other, but readers do not wait for
writers. Any number of processes may open one store, except a store in memory. An iterator must be used by one
thread only. Each batch that it yields is a snapshot; two batches may show different states of the store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, TypedDict

from afresh.values.arrays import Float64s
from afresh.values.changes import Consumer, FeedEntry, FeedPage
from afresh.values.clock import Clock
from afresh.values.errors import InputError
from afresh.values.items import Item, ItemChange, ItemCount, ItemPage, ItemQuery, ItemRef, NewItem
from afresh.values.lease import Lease
from afresh.values.outcome import Outcome, Refusal, Spent
from afresh.values.stored import (
    Claim,
    Copy,
    DueEvents,
    Edits,
    Event,
    FailedEvent,
    Ids,
    LedgerRow,
    Notice,
    ObservationColumns,
    PageLinks,
    PolicyColumns,
    RequestWindow,
    StoreStats,
    Version,
    Worker,
)

PLANNER = "role:planner"
"""The name of the claim whose holder plans for all workers. For all other names see ``group_claim``."""

EDITS_KEPT = 100_000
"""How many edits a store remembers, the latest ones. A reader that missed more must read all items again."""


ANSWERS_KEPT_S = 86400.0
"""For how long a store keeps the answer to a report of a poll, in seconds."""


DROPPED_AT_ONCE = 10_000
"""How many versions one call of ``Upkeep.drop_old_versions`` drops at most, so that others can write soon."""


class OpenOptions(TypedDict, total=False):
    """How a store is opened. ``create`` makes a store that does not exist yet (the default), ``read_only``
    refuses to write, and ``timeout_s`` is how many seconds to wait for other writers (5 by default)."""

    create: bool
    read_only: bool
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Retention:
    """How much a store keeps: the newest ``versions`` copies of each item, at least the newest
    ``observations`` observations of each item, and at least the newest ``audits`` audits of all items."""

    versions: int = 5
    observations: int = 1000
    audits: int = 100_000

    def __post_init__(self) -> None:
        """Raise ``InputError`` for a number below 1, with which a store would drop what it just wrote."""
        for name in ("versions", "observations", "audits"):
            if getattr(self, name) < 1:
                raise InputError(f"retention of {name} is {getattr(self, name)}: must be 1 or more")


class StoredItems(Protocol):
    """The items of the store. The id of a new item is larger than all ids before it. No two items of one
    source have the same key, but items of two sources may. A key or id is *unknown* if the store has no item
    with it."""

    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        """Add the items whose source has no item with their key, and return how many. Their first poll is due
        at ``now_s``."""

    def change(self, ids: Sequence[int], change: ItemChange) -> None:
        """Apply ``change`` to all items with these ids; unknown ids are ignored."""

    def remove(self, ids: Sequence[int], now_s: float, *, announce: bool = False) -> None:
        """Remove the items with these ids and their copies, and tell the feed; unknown ids are ignored.

        With ``announce``, the removals are reported to hooks too."""

    def find(self, keys: Sequence[str], source: str | None = None) -> list[ItemRef]:
        """Return all items that have one of these keys, of ``source`` or of all sources, sorted by id."""

    def get(self, key: str, source: str | None = None) -> Item | None:
        """Return the item with this key, of ``source`` if given, or None if there is none. Raise
        ``AmbiguousKeyError`` if several sources have an item with this key."""

    def by_id(self, ids: Sequence[int]) -> list[Item]:
        """Return the items with these ids, in the order of ``ids``; unknown ids are left out."""

    def validators(self, item_id: int) -> dict[str, str]:
        """Return what the source keeps with the copy of an item (``Lease.validators``), such as an ETag or
        the address that the copy came from; empty if it keeps nothing or the id is unknown."""

    def ids(self, keys: Sequence[str], source: str | None = None) -> dict[str, int]:
        """Return a dictionary from key to item id, for items of ``source`` if given; unknown keys are left
        out. Raise ``AmbiguousKeyError`` if several sources have an item with one of these keys."""

    def page(self, query: ItemQuery, limit: int, cursor: str | None = None) -> ItemPage:
        """Return a page of at most ``limit`` items; ``cursor`` comes from the previous page of the query.

        A store may limit how many items it reads for a page. So a page of a search or filter may have fewer
        items than ``limit``, even none, and still have a cursor for the next page."""

    def due(self, now_s: float, limit: int) -> list[int]:
        """Return the ids of at most ``limit`` active items that are due and not leased, earliest first."""

    def counts(self) -> list[ItemCount]:
        """Return the number of items per source, group and status, which a store keeps up to date."""

    def polled_keys(self) -> dict[int, str]:
        """Return a dictionary from item id to key of all items that were polled."""

    def edits(self, after: int) -> Edits:
        """Return the items that ``change`` and ``remove`` edited after the edit with the number ``after``.

        A reader that needs only future edits first calls ``edits(0).number`` to get the current number."""


class Leases(Protocol):
    """The leases of a store: which worker polls which item. An item has at most one unexpired lease."""

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

        Return the leases, sorted by the due time of their items. A lease ends ``duration_s`` seconds after
        ``now_s``: calls whose ``now_s`` is later treat it as expired. It also ends when its ``worker`` leaves
        the fleet."""

    def read(self, ids: Sequence[int]) -> list[Lease]:
        """Return the newest lease of each of these items, even if it has expired, sorted by the due time of
        their items. Items whose newest lease was ended by a poll or by ``release`` are left out."""

    def extend(self, leases: Sequence[Lease], until_s: float) -> list[int]:
        """Let these leases end at ``until_s``, unless they end later anyway. A lease that has expired is
        extended too, if the item has no newer lease. Return the sorted ids of the items whose lease holds."""

    def answers(self, leases: Sequence[tuple[int, int]], since_s: float) -> dict[tuple[int, int], str]:
        """Return the texts of the answers (``Outcome.answer``) by (item id, token), for these leases, that
        were committed at or after ``since_s``."""

    def release(self, leases: Sequence[Lease]) -> None:
        """End these leases without a poll. If an item has a newer lease by now, that lease stays."""

    def open(self, now_s: float) -> list[tuple[int, float]]:
        """Return a tuple (item id, Unix time of the lease) for each unexpired lease, the oldest first."""

    def until_s(self, item_id: int, now_s: float) -> float | None:
        """Return the time when the lease of an item expires, or None if the item is not leased."""


class Copies(Protocol):
    """The copies of items. Equal bytes are stored once, under their hash."""

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        """Return the newest copy of an item, or its version ``number``; None if it is not in the store."""

    def versions(self, item_id: int) -> list[Version]:
        """Return the versions of an item's copy that are kept, newest first."""

    def text(self, content_hash: bytes, form: str) -> str | None:
        """Return the text of this ``form`` that was saved for the content with this hash (``Version.hash``),
        or None. Texts are a cache: they are dropped with their contents, and not copied to other stores."""

    def save_text(self, content_hash: bytes, form: str, text: str) -> None:
        """Save a text that was taken from a content, in place of an earlier one of the same ``form``.
        Nothing happens if no version has this content."""


class Plan(Protocol):
    """What a policy saves of each item between runs: the due time and the belief about its rate."""

    def columns(
        self, *, after_id: int = 0, batch: int = 8192, whole_batches: bool = False
    ) -> Iterator[PolicyColumns]:
        """Yield the columns of all items with an id above ``after_id``, sorted by id, ``batch`` at a time.

        With ``whole_batches``, a store reads each batch in one step. Otherwise it may read row by row, and in
        a process with busy threads it then waits for Python's global interpreter lock at every row."""

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        """Return the columns of these items, sorted by id; unknown ids are left out."""

    def names(self) -> dict[int, str]:
        """Return the names of sources and groups, by the numbers that stand for them in ``PolicyColumns``."""

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        """Save the due times, and the beliefs if given, of these items; unknown ids are ignored."""


class Observations(Protocol):
    """The observations of past polls, from which a policy can learn again."""

    def read(self, ids: Sequence[int] | None = None) -> Iterator[ObservationColumns]:
        """Yield the observations of these items (None: of all items) in batches, sorted by item and time.

        The observations of one item are never split between two batches."""

    def add(self, observations: ObservationColumns) -> None:
        """Add observations that were made elsewhere or long ago.

        They are added to the item's ``polls`` and ``changes``; ``polled_s`` and ``changed_s`` move forward if
        an observation is later. Due time and belief stay. If the call is repeated, the observations are added
        again. Raise ``InputError`` for an unknown id, before anything is added."""

    def audits(self, since_s: float) -> ObservationColumns:
        """Return the audits made since ``since_s``, including those of removed items, in commit order."""


class StoredLinks(Protocol):
    """The links of the pages of sources that follow links. What a poll found is written by ``commit``."""

    def add(self, pages: Sequence[PageLinks]) -> None:
        """Add pages that were just found; only ``depth`` and ``chain`` count. Of a known page the smaller
        numbers stay. Unknown items are ignored."""

    def by_id(self, ids: Sequence[int]) -> list[PageLinks]:
        """Return what is known of these pages, sorted by id; unknown ones are left out."""

    def read(self) -> Iterator[PageLinks]:
        """Yield what is known of all pages, sorted by id."""

    def gaining(self) -> list[PageLinks]:
        """Return the pages on which new items were found after the first reading, without their links."""

    def unlinked(self) -> list[PageLinks]:
        """Return the pages to which no page links, without their links."""

    def mark_unlinked(self, ids: Sequence[int], time_s: float | None) -> None:
        """Set since when no page links to these pages; None if one does."""


class Feed(Protocol):
    """Every change of a copy, in the order of the commits: those that ``commit`` and ``StoredItems.remove``
    wrote, each with the number after that of the change before, also if several workers write.

    A reader that continues from the cursor of the page before never skips a committed change, and never gets
    one twice. Cursors stay valid when the store is copied or restored from a backup. ``CursorError`` is
    raised for a cursor of another store, of a later state than the backup from which this store was restored,
    and for one that is older than the oldest change kept."""

    def read(self, after: str | None = None, limit: int = 1000, source: str | None = None) -> FeedPage:
        """Return at most ``limit`` changes after the cursor ``after`` (None: from the oldest that is kept),
        of ``source`` or of all sources."""

    def newest(
        self, limit: int = 50, source: str | None = None, before: str | None = None
    ) -> Sequence[FeedEntry]:
        """Return at most ``limit`` changes, of ``source`` or of all sources, the newest first; with the
        cursor ``before``, only those before its change. ``CursorError`` is raised for a cursor of another
        store."""

    def cursor(self) -> str:
        """Return the cursor of the newest change: from there, only later changes are read."""

    def start(self) -> str:
        """Return the oldest cursor from which the feed can be followed."""

    def last(self) -> int:
        """Return a number that grows with every change. This is quick enough to be asked often."""

    def trim(self, before_s: float) -> int:
        """Drop the changes that were seen before ``before_s`` and return how many there were. The newest of
        them stays, so that its cursor remains valid, and so do those that hooks have yet to be told."""

    def consumers(self) -> list[Consumer]:
        """Return all consumers, sorted by name."""

    def move(self, name: str, cursor: str, now_s: float, source: str = "") -> None:
        """Save the place of a consumer, who follows ``source`` (empty: all); a new name makes a consumer."""

    def drop(self, name: str) -> bool:
        """Forget a consumer. Return False if there is none of this name."""


class Events(Protocol):
    """The changes of the feed that are to be delivered to hooks, each at least once, in the order in which
    they were committed. Hooks are a consumer of the feed with a queue of their own, so that a change that
    cannot be delivered does not hold up the changes of other items."""

    def due(self, now_s: float) -> dict[str, DueEvents]:
        """Return how many events are due, by source."""

    def take(self, now_s: float, limit: int, retry_s: float, source: str | None = None) -> list[Event]:
        """Return at most ``limit`` events that are due, of ``source`` or of all sources, the oldest first.

        An event that is not ``done`` within ``retry_s`` seconds is due again. An event waits until no earlier
        event of its item is taken or deferred, whichever process did that, and whether or not it still
        runs. It does not wait for events that were given up."""

    def done(self, ids: Sequence[int]) -> None:
        """Remove events that were delivered."""

    def defer(self, ids: Sequence[int], until_s: float, problem: str = "") -> None:
        """Make these events due at ``until_s``, because their delivery failed for the reason ``problem``.
        With infinity they are given up: kept, but not delivered before ``retry``."""

    def put_back(self, ids: Sequence[int], until_s: float) -> None:
        """Make these events due at ``until_s``, because their delivery was not started: it does not count as
        an attempt."""

    def waiting(self) -> int:
        """Return how many events have not been delivered, without those that were given up."""

    def failed(self, limit: int) -> list[FailedEvent]:
        """Return at most ``limit`` events whose last delivery failed, those that were given up first, then
        the oldest first."""

    def given_up(self) -> int:
        """Return how many events were given up."""

    def retry(self, now_s: float, ids: Sequence[int] | None = None) -> int:
        """Make events that failed due at ``now_s``, those with ``ids`` or all, with no attempts so far.
        Return how many there were."""

    def retell(self, after: int, source: str) -> int:
        """Queue all changes of ``source`` that the feed has after the change with the number ``after``, also
        those that were delivered. Return how many there were."""


class StoredNotices(Protocol):
    """Hints that items changed, at most one per item and origin, open until a poll leased later is
    committed."""

    def add(self, ids: Sequence[int], time_s: float | Sequence[float], origin: str = "") -> None:
        """Add a notice from ``origin`` for each of these items; unknown ids are ignored. ``time_s`` is the
        time of the change where it is known, else of the hint: one for all items, or one for each."""

    def open(self, after: int = 0) -> list[Notice]:
        """Return the open notices with a number above ``after``, sorted; later hints have larger numbers."""


class Ledger(Protocol):
    """The cost of polling, per minute and source. ``commit`` writes to the ledger too."""

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        """Add the cost of requests that are not polls, such as those for robots.txt and sitemaps."""

    def total(self, since_s: float, until_s: float) -> Spent:
        """Return the cost of all sources in the minutes that start in [since_s, until_s)."""

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        """Return the cost per minute and source, sorted by both, for minutes in [since_s, until_s)."""

    def forget(self, before_s: float) -> None:
        """Remove the costs of the minutes that start before ``before_s``."""


class State(Protocol):
    """Small named values: the engine's state, priors, settings."""

    def get(self, name: str) -> bytes | None:
        """Return the value of ``name``, or None if it has none."""

    def set(self, values: Mapping[str, bytes | None]) -> None:
        """Set these named values in one transaction; None removes a name."""

    def replace(self, name: str, before: bytes | None, after: bytes) -> bool:
        """Set ``name`` to ``after`` if its value is ``before`` (None: it has none); return whether it was.

        Of several processes that replace the same value, one succeeds."""

    def names(self) -> list[str]:
        """Return the names of all values, sorted."""


class Fleet(Protocol):
    """What the workers on one store share: their names, their claims, and when each may start requests.

    **The clock.** The clocks of machines differ, but claims, leases and request windows are compared between
    machines. Therefore all times that the workers of a fleet pass to a store are read from a ``SharedClock``:
    the machine's own clock plus ``ahead_s``. If the store is on the same machine, ``ahead_s`` is 0."""

    def beat(self, worker: Worker) -> None:
        """Record that this worker is alive. Later calls for the same worker only update its ``seen_s``."""

    def leave(self, worker: str) -> None:
        """Remove the worker with this name, its claims and its leases."""

    def workers(self, since_s: float) -> list[Worker]:
        """Return the workers whose last ``beat`` was at or after ``since_s``, sorted by name."""

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Claim each of these names that no other worker holds, for ``duration_s`` seconds.

        Return the names that ``worker`` holds now, in the order of ``names``. Claiming a name again renews
        its claim. A worker that claims a group must wait for the group's delay before its first request,
        because the previous holder may have just sent one."""

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Renew all claims of this worker that no other worker has taken, and return their names, sorted."""

    def release(self, names: Sequence[str], worker: str) -> None:
        """End the claims on these names, except claims that another worker holds."""

    def claims(self, now_s: float) -> list[Claim]:
        """Return the claims that have not expired, sorted by name."""

    def reserve(
        self, count: int, spacing_s: float, slack_s: float, now_s: float, late_s: float = 0.0
    ) -> RequestWindow:
        """Return the next request window, for one worker to start ``count`` requests, ``spacing_s`` s apart.

        The windows of all workers follow each other: a window begins at least ``spacing_s`` after the end of
        the previous window, after all debts are paid (see ``owe``), and not before ``now_s``. If every worker
        starts requests only in its windows and ``spacing_s`` apart, all workers together keep the budget. A
        worker must reserve again for requests that it could not start before the end of its window.
        ``slack_s`` makes the window longer than its requests need, so that requests may start late. Time that
        no worker reserved cannot be used later; the same holds for the window of a worker that died.

        With ``late_s``, a window may begin up to ``late_s`` seconds before ``now_s``. Its slots are
        ``spacing_s`` apart, each for one request, which may start up to ``late_s`` after its slot."""

    def give_back(self, until_s: float, last_s: float) -> None:
        """Give back the slots after ``last_s`` of the window that ends at ``until_s``, because its worker
        stops. Nothing happens if another window was reserved since."""

    def next_slot_s(self, spacing_s: float, now_s: float, late_s: float) -> float:
        """Return the beginning of the window that ``reserve`` would return; nothing is reserved."""

    def owe(self, owed_s: float, now_s: float) -> float:
        """Add a debt: the seconds for which no window begins, because requests cost more than the budget
        had earned. Return the Unix time at which all debts will be paid."""

    @property
    def has_own_clock(self) -> bool:
        """Whether the store has a clock of its own, so that clocks of workers do not move its time."""

    def ahead_s(self, clock: Clock) -> float:
        """Return by how many seconds the store's clock is ahead of ``clock``; 0 if too few to be measured."""


def group_claim(group: str) -> str:
    """Return the name of the claim on a group.

    >>> group_claim("example.org")
    'group:example.org'
    """
    return f"group:{group}"


LENT_GROUPS = "lent"
"""The first word of the claims of groups to which requests are lent; see ``lent_claim``."""


def lent_claim(group: str) -> str:
    """Return the name of the claim that lasts until a group may be asked again after a lent request.

    >>> lent_claim("example.org")
    'lent:example.org'
    """
    return f"{LENT_GROUPS}:{group}"


class Upkeep(Protocol):
    """Maintenance of the whole store. All methods may run while an engine runs."""

    def check(self, sample: int | None = None) -> list[str]:
        """Return one line per problem. The hashes of all contents are checked, or of about ``sample``."""

    def vacuum(self) -> None:
        """Return free space to the operating system."""

    def backup(self, target: Path) -> None:
        """Write a consistent copy of the store to a file (replace it), which can be opened as a store."""

    def used_bytes(self) -> int:
        """Return how many bytes copies and state take, without free space that the store can use again. This
        is quick enough to be asked often."""

    def drop_old_versions(self, wanted_bytes: int) -> int:
        """Drop the oldest versions, but never the newest one of an item, until the contents of the dropped
        ones took ``wanted_bytes`` bytes; at most ``DROPPED_AT_ONCE`` versions. Return how many there were."""

    def delete_unnamed_copies(self, now_s: float) -> int:
        """Delete the objects of copies that no version has used for the grace period; return how many. It
        does nothing if copies are in the database. It takes two calls at least, the grace period apart."""
        del now_s
        return 0

    def stats(self) -> StoreStats:
        """Return how many items, leases, versions, … the store has, and how many bytes it takes."""


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
    def links(self) -> StoredLinks: ...
    @property
    def feed(self) -> Feed: ...
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
        outcome whose lease was lost to another worker, or whose item was removed, is refused. Of a refused
        outcome only the cost is saved, because it has been paid. Its observation is not saved, because the
        other worker's observation covers the same time. Return one ``Refusal`` per refused outcome.

        Each accepted outcome has these effects: The lease ends. The item's ``polls`` grows by one. The
        observation is added and updates ``polled_s``, and if the item changed also ``changed_s`` and
        ``changes``. A new copy becomes the newest version, unless its bytes equal the newest version.
        Versions beyond the retention are removed, and so are contents that no version uses. An item that a
        user paused in the meantime stays paused. Notices older than the lease are closed. If the outcome has
        links, they become those of the page, and one more reading is counted. If there is an event, it is
        written to the feed. If there is an answer, it is kept for ``ANSWERS_KEPT_S`` seconds."""

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
