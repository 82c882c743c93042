"""Values that a store returns: copies, columns for the policy, events, notices, costs, sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Bools, Float64s
from afresh.values.outcome import EventKind, Spent

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an item's copy. ``number`` counts from 1; ``hash`` is the hash of the raw content."""

    item_id: int
    number: int
    time_s: float
    media_type: str
    size: int
    hash: bytes
    normal_hash: bytes


@dataclass(frozen=True, slots=True)
class Copy:
    """A version with its content."""

    version: Version
    content: bytes


@dataclass(frozen=True, slots=True)
class PolicyColumns:
    """All items as arrays, one row per item, sorted by ``id``. A policy is built from them.

    ``source`` and ``group`` are numbers that stand for names; ``status`` is the position in ``STATUSES``.
    ``polled_s`` and ``prior_rate_per_s`` are NaN if unknown. ``beliefs`` joins the stored beliefs of all
    rows; row i has ``beliefs[belief_end[i] − belief_size[i] : belief_end[i]]``. If all beliefs have the same
    size, ``numpy.frombuffer(beliefs, …).reshape(n, −1)`` reads them at once.
    """

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

    @property
    def belief_end(self) -> Ids:
        """The position in ``beliefs`` at which the belief of each row ends."""
        return np.cumsum(self.belief_size)

    def belief(self, row: int) -> bytes:
        end = int(self.belief_end[row])
        return self.beliefs[end - int(self.belief_size[row]) : end]


@dataclass(frozen=True, slots=True)
class ObservationColumns:
    """Observations as arrays, sorted by item and time. ``modified_s`` and ``count`` are NaN if unknown."""

    item_id: Ids
    time_s: Float64s
    elapsed_s: Float64s
    changed: Bools
    modified_s: Float64s
    count: Float64s
    audit: Bools

    def __len__(self) -> int:
        return self.item_id.size


@dataclass(frozen=True, slots=True)
class Event:
    """A change to be delivered to the source's hooks. ``attempts`` includes the delivery under way."""

    id: int
    item_id: int
    key: str
    source: str
    kind: EventKind
    version: int
    time_s: float
    attempts: int


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
    """The cost of one source's requests in the minute that starts at ``start_s``."""

    start_s: float
    source: str
    spent: Spent


def minute_of(time_s: float) -> int:
    """Return the minute, counted from 1970, in which a time falls; the ledger has one row per minute.

    >>> minute_of(59.9), minute_of(60.0)
    (0, 1)
    """
    return math.floor(time_s / 60.0)


@dataclass(frozen=True, slots=True)
class Edits:
    """The items that users changed or removed since a given edit, and the ``number`` of the latest edit.

    ``complete`` is False if the store has already deleted some of these edits."""

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
    """The exclusive right of one worker, until ``until_s``, to ask a group or to play a role (``name``)."""

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
    """Sizes. ``stored_bytes`` is the size of the compressed contents, ``file_bytes`` of the whole store."""

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
