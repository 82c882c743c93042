"""The classes of what a store returns: copies, columns for the policy, events, notices, costs, sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Bools, Float64s
from afresh.values.outcome import EventKind, Spent

Ids = npt.NDArray[np.int64]
_ROUNDED_S = 1e-3  # times of observations may be rounded by this much


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an item's copy. The first version has ``number`` 1; ``size`` is in bytes.
    ``hash`` is the hash of the raw content, ``normal_hash`` of the normalised content. ``change_size`` is how
    much differs from the version before: 1 − the similarity of the normalised contents, from 0 to 1; None for
    the first version, and where it is not known."""

    item_id: int
    number: int
    time_s: float
    media_type: str
    size: int
    hash: bytes
    normal_hash: bytes
    change_size: float | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """A version with its content."""

    version: Version
    content: bytes


@dataclass(frozen=True, slots=True)
class PolicyColumns:
    """All items as arrays, from which a policy is built: element i is item i, in the order of ``id``.

    ``source`` and ``group`` are numbers that stand for names; ``status`` is the position in ``STATUSES``.
    ``polled_s`` and ``prior_rate_per_s`` are NaN if unknown. ``beliefs`` is one string of bytes with the
    stored beliefs of all items, one after the other; ``belief_size`` is the size of each in bytes. If all n
    beliefs have the same size, ``numpy.frombuffer(beliefs, …).reshape(n, −1)`` reads them at once."""

    id: Ids
    source: Ids
    group: Ids
    status: npt.NDArray[np.int8]
    weight: Float64s
    cost: Float64s
    min_interval_s: Float64s
    max_interval_s: Float64s
    prior_rate_per_s: Float64s
    polled_s: Float64s
    due_s: Float64s
    belief_size: Ids
    beliefs: bytes


@dataclass(frozen=True, slots=True)
class ObservationColumns:
    """Observations as arrays, sorted by item and time, with the fields of ``Observation``.
    ``modified_s`` and ``count`` are NaN if unknown."""

    item_id: Ids
    time_s: Float64s
    elapsed_s: Float64s
    changed: Bools
    modified_s: Float64s
    count: Float64s
    audit: Bools

    def __len__(self) -> int:
        return self.item_id.size

    def take(self, which: Bools | Ids) -> ObservationColumns:
        return ObservationColumns(*(getattr(self, name)[which] for name in self.__slots__))

    def still_counting(self) -> ObservationColumns:
        """Return the observations that still count: not those before an observation that starts again
        (``STARTS_AGAIN``), and not those in a time that a later observation covers as well, because they
        found no change wrongly (see ``Observation``).

        >>> one, no = np.ones(4, dtype=int), np.full(4, np.nan)
        >>> elapsed_s, changed = np.array([0.0, 5.0, 5.0, 10.0]), np.array([False, False, False, True])
        >>> seen = ObservationColumns(one, 5.0 * np.arange(4), elapsed_s, changed, no, no, one < 0)
        >>> seen.still_counting().time_s.tolist()      # the third was covered by the last
        [0.0, 5.0, 15.0]
        """
        begin_s = np.where(self.elapsed_s < 0, -np.inf, self.time_s - self.elapsed_s)
        follows = self.item_id[1:] == self.item_id[:-1]
        wrong = follows & (begin_s[1:] < self.time_s[:-1] - _ROUNDED_S)
        if not wrong.any():
            return self
        kept = np.ones(len(self), dtype=bool)
        for item_id in np.unique(self.item_id[1:][wrong]):
            its = slice(*np.searchsorted(self.item_id, (item_id, item_id + 1)))
            later_s = np.minimum.accumulate(begin_s[its][::-1])[::-1]
            kept[its] = np.append(later_s[1:], np.inf) >= self.time_s[its] - _ROUNDED_S
        return self.take(kept)


@dataclass(frozen=True, slots=True)
class Event:
    """A change that is to be reported to the hooks of its source.
    ``attempts`` is the number of deliveries that were started, including the current one."""

    id: int
    item_id: int
    key: str
    source: str
    kind: EventKind
    version: int
    time_s: float
    attempts: int


@dataclass(frozen=True, slots=True)
class DueEvents:
    """How many events of a source are due, and when the change of the oldest one was seen."""

    number: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class FailedEvent:
    """An event whose last delivery failed, and why (``problem``). ``next_s`` is when it is delivered again:
    infinity for one that was given up."""

    event: Event
    problem: str
    next_s: float

    @property
    def is_given_up(self) -> bool:
        return math.isinf(self.next_s)


@dataclass(frozen=True, slots=True)
class Notice:
    """A hint that an item changed. It is removed when a poll that was leased after ``time_s`` is committed.
    ``time_s`` is when the item changed, where the hint says so, else when the hint came. ``number`` increases
    with every hint; ``count`` is the number of hints that were merged into this one. ``origin`` says where
    they came from: sitemap, feed, webhook, cursor; it is empty if that is not known."""

    number: int
    item_id: int
    time_s: float
    count: int
    origin: str = ""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The cost of all requests to one source in the minute that starts at ``start_s`` (Unix seconds)."""

    start_s: float
    source: str
    spent: Spent


def minute_of(time_s: float) -> int:
    """Return the number of whole minutes from 1970 to a time; the ledger has one row per minute and source.

    >>> minute_of(59.9), minute_of(60.0)
    (0, 1)
    """
    return math.floor(time_s / 60.0)


@dataclass(frozen=True, slots=True)
class Edits:
    """The items that users changed or removed since an earlier edit. ``number`` is that of the latest edit.
    ``complete`` is False if the store no longer has all edits since then, so that ``item_ids`` lacks some."""

    number: int
    item_ids: tuple[int, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Worker:
    """One process that polls, with a unique name. ``seen_s`` is the last time at which it reported itself."""

    name: str
    host: str
    started_s: float
    seen_s: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The exclusive right of one worker, until ``until_s``, to send requests to a group or to do one task.
    ``name`` names the group or the task."""

    name: str
    worker: str
    until_s: float


@dataclass(frozen=True, slots=True)
class RequestWindow:
    """The time, from ``first_s`` to ``until_s`` inclusive, in which only one worker may start requests."""

    first_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class StoreStats:
    """The numbers of what a store holds, and its sizes in bytes.
    ``contents`` is the number of different contents, ``content_bytes`` their size, and ``stored_bytes`` their
    size after compression. ``file_bytes`` is the size of the whole store, ``free_bytes`` its unused part."""

    items: int
    leases: int
    versions: int
    contents: int
    content_bytes: int
    stored_bytes: int
    events: int
    notices: int
    file_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class PageLinks:
    """What the store knows of the links of the item ``item_id``.

    ``depth`` is the number of links from a start page to it, ``chain`` the number of pages of the same form
    of address that lead to it one after the other. ``readings`` is how often its links were read, and
    ``gained`` the number of new items that the readings after the first found. ``links`` are the keys to
    which it links, None before the first reading. ``unlinked_s`` is since when no page links to it."""

    item_id: int
    depth: int = 0
    chain: int = 0
    readings: int = 0
    gained: int = 0
    unlinked_s: float | None = None
    links: tuple[str, ...] | None = None

    @property
    def expected_gain(self) -> float:
        """How many new items a reading is expected to find: the mean, with one more reading without any.

        >>> PageLinks(1, readings=4, gained=6).expected_gain
        1.5
        """
        return self.gained / max(self.readings, 1)
