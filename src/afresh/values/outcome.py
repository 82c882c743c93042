"""The outcome of one poll, committed in one transaction: copy, observation, belief, next poll and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from afresh.values.errors import InputError
from afresh.values.fetched import FoundLinks
from afresh.values.items import Status
from afresh.values.lease import Lease

EventKind: TypeAlias = Literal["new", "changed", "gone", "removed"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
_LATEST_S = 9e9  # the year 2255; from 2^53 µs on, a float no longer holds every microsecond


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of polls: requests, bytes received, seconds that the requests took, and money for them.

    >>> Spent(requests=1, bytes=200) + Spent(requests=1, seconds=0.5)
    Spent(requests=2, bytes=200, seconds=0.5, money=0.0)
    """

    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    money: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.requests + other.requests,
            self.bytes + other.bytes,
            self.seconds + other.seconds,
            self.money + other.money,
        )

    def less(self, other: Spent) -> Spent:
        """Return ``self`` minus ``other``, field by field, but at least 0.

        >>> Spent(requests=2, bytes=200).less(Spent(requests=1, bytes=300))
        Spent(requests=1, bytes=0, seconds=0.0, money=0.0)
        """
        return Spent(
            max(self.requests - other.requests, 0),
            max(self.bytes - other.bytes, 0),
            max(self.seconds - other.seconds, 0.0),
            max(self.money - other.money, 0.0),
        )


NOTHING_SPENT = Spent()


STARTS_AGAIN = -1.0
"""The ``elapsed_s`` of a poll after which all earlier polls of its item no longer count."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Whether an item changed during the ``elapsed_s`` seconds between its last two successful polls.

    ``time_s`` is the time of the last of these polls; ``elapsed_s`` is 0 for the first poll of an item, and
    ``STARTS_AGAIN`` if the content settings are others than at the poll before. It may also begin before the
    poll before: then the polls in between found no change wrongly, and no longer count. The source may state
    the time of the last change (``modified_s``) and the number of changes since the previous poll
    (``count``). ``audit`` is True if the item was drawn at random to measure freshness.

    >>> Observation(1, 1e9, 60.0, changed=True, modified_s=float("inf")).modified_s is None
    True
    """

    item_id: int
    time_s: float
    elapsed_s: float
    changed: bool
    modified_s: float | None = None
    count: int | None = None
    audit: bool = False

    def __post_init__(self) -> None:
        """Raise ``InputError`` for impossible times; set a source's impossible ``modified_s`` to None."""
        for name, value in (("time_s", self.time_s), ("elapsed_s", self.elapsed_s)):
            if not abs(value) < _LATEST_S:
                raise InputError(
                    f"observation of item {self.item_id}: {name} is {value}, not a time in seconds"
                )
        if self.modified_s is not None and not abs(self.modified_s) < _LATEST_S:
            object.__setattr__(self, "modified_s", None)
        if self.count is not None and self.count < 0:
            raise InputError(f"observation of item {self.item_id}: count is {self.count}, must be 0 or more")


@dataclass(frozen=True, slots=True)
class NewCopy:
    """Content to store. ``normal_hash`` is the hash of the normalised content; a new hash means a change.
    ``change_size`` is how much of the content is new, from 0 to 1; None without an older copy to compare."""

    content: bytes
    media_type: str
    normal_hash: bytes
    change_size: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The ``text`` that the program which reported a poll was answered with at ``time_s`` (Unix seconds). If
    it reports the poll again, because the answer was lost on its way, it gets the same text."""

    time_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that one poll changes in the store. Times are Unix seconds.

    ``time_s`` is the time of this poll, ``due_s`` of the next one. ``observation`` is None if the poll
    failed. ``validators`` and ``belief`` replace the stored ones unless they are None. ``failures`` is the
    new number of consecutive failures. ``event`` is written to the change feed and, with ``for_hooks``,
    reported to hooks. ``answer`` is kept under the item and the token of its lease, for reports of the same
    poll. ``links`` replaces the links of the page, unless it is None."""

    lease: Lease
    time_s: float
    due_s: float
    observation: Observation | None = None
    new_copy: NewCopy | None = None
    validators: Mapping[str, str] | None = None
    belief: bytes | None = None
    status: Status = "active"
    failures: int = 0
    problem: str = ""
    spent: Spent = NOTHING_SPENT
    event: EventKind | None = None
    for_hooks: bool = True
    answer: Answer | None = None
    links: FoundLinks | None = None

    def __post_init__(self) -> None:
        """Raise ``InputError`` for times that a store cannot sort, or an observation of another item."""
        if math.isnan(self.due_s) or not math.isfinite(self.time_s):
            raise InputError(
                f"outcome of {self.lease.key!r}: time {self.time_s} and due {self.due_s} must be Unix seconds"
            )
        if self.observation is not None and self.observation.item_id != self.lease.item_id:
            raise InputError(f"outcome of item {self.lease.key!r} carries an observation of another item")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an outcome was not committed: a newer lease exists (``lost``), or the item was ``removed``."""

    item_id: int
    reason: Literal["lost", "removed"]

    def __str__(self) -> str:
        if self.reason == "removed":
            return f"item {self.item_id} was removed while it was being polled"
        return f"item {self.item_id}: the lease ran out and another worker has polled it since"
