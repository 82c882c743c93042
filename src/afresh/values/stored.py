"""What a store returns: copies, columns for the policy, events, notices, spending, sizes."""

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
    """One version of an item's copy; ``number`` counts from 1, ``hash`` is that of the content itself."""

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
    """Items as arrays, a row each, in order of ``id``: what a policy starts from.

    ``source`` and ``group`` are codes, see ``Plan.names``; ``status`` is the position in ``STATUSES``.
    ``polled_s`` and ``prior_rate_per_s`` are NaN where there is none. Row i's belief is
    ``beliefs[belief_end[i] − belief_size[i] : belief_end[i]]``; with beliefs of one size,
    ``numpy.frombuffer(beliefs, …).reshape(n, −1)`` reads them all.
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
        """The end of each row's belief in ``beliefs``."""
        return np.cumsum(self.belief_size)

    def belief(self, row: int) -> bytes:
        end = int(self.belief_end[row])
        return self.beliefs[end - int(self.belief_size[row]) : end]


@dataclass(frozen=True, slots=True)
class ObservationColumns:
    """Observations as arrays, sorted by item and time; ``modified_s`` and ``count`` are NaN where unknown."""

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
    """A change to be delivered to the source's hooks. ``attempts`` counts this delivery too."""

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
    """A hint that an item changed, open until a poll leased after ``time_s`` is committed. ``number`` grows
    with every hint, ``count`` says how many this one stands for."""

    number: int
    item_id: int
    time_s: float
    count: int


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What one source cost in the minute that starts at ``start_s``."""

    start_s: float
    source: str
    spent: Spent


def minute_of(time_s: float) -> int:
    """Return the minute of the ledger that a time falls in, counted from 1970.

    >>> minute_of(59.9), minute_of(60.0)
    (0, 1)
    """
    return math.floor(time_s / 60.0)


@dataclass(frozen=True, slots=True)
class Edits:
    """Items that a user changed or removed after an edit; not ``complete`` if older edits were dropped."""

    number: int
    item_ids: tuple[int, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Worker:
    """One process that polls, under a name that only it has; ``seen_s`` is its last sign of life."""

    name: str
    host: str
    started_s: float
    seen_s: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What one worker holds until ``until_s``: a politeness group, or a role."""

    name: str
    worker: str
    until_s: float


@dataclass(frozen=True, slots=True)
class RequestWindow:
    """When one worker alone may start requests: from ``first_s`` to ``until_s``, both included."""

    first_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Sizes. ``stored_bytes`` is what contents take after compression, ``file_bytes`` the whole store."""

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
