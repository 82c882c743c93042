"""Items: as users add them, as the store knows them, and what users change and search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from afresh.values.errors import InputError, one_of
from afresh.values.storable_text import check_storable

Status: TypeAlias = Literal["active", "paused", "gone", "refused"]
"""``active``: polled when due; ``paused`` by the user; ``gone`` from its source; ``refused``: may not be
polled."""

STATUSES: tuple[Status, ...] = get_args(Status)
"""All statuses; stores keep the position as a code, so new ones go to the end."""

Sort: TypeAlias = Literal["id", "key", "due", "changed", "failures", "weight"]
SORTS: tuple[Sort, ...] = get_args(Sort)


@dataclass(frozen=True, slots=True)
class NewItem:
    """One thing to keep a copy of. ``group`` is the politeness group: the host for HTTP.

    ``selector`` is the item's own: which part of its content counts; empty means as its source says.

    >>> NewItem("https://example.org/", "web", "example.org").weight
    1.0
    >>> NewItem("https://example.org/", "web", "example.org", cost=0)
    Traceback (most recent call last):
    afresh.values.errors.InputError: item 'https://example.org/': cost is 0: must be more than 0, and finite
    """

    key: str
    source: str
    group: str
    weight: float = 1.0
    cost: float = 1.0
    min_interval_s: float = 0.0
    max_interval_s: float = math.inf
    prior_rate_per_s: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: str = ""

    def __post_init__(self) -> None:
        if not self.key:
            raise InputError("an item's key is empty: give the address or name that its source knows it by")
        for name in ("key", "source", "group", "selector"):
            check_storable(f"an item's {name}", [getattr(self, name)])
        _check_numbers(self, f"item {self.key!r}: ")


@dataclass(frozen=True, slots=True)
class Item:
    """One item as the store knows it. Times are Unix seconds, ``None`` where it never happened.

    ``polled_s`` is the last poll that told something (failures do not change it), ``polls`` counts all polls,
    ``failures`` those that failed since the last that worked, ``problem`` is the last failure in words.
    ``version`` is the number of the newest copy, 0 while there is none.
    """

    id: int
    key: str
    source: str
    group: str
    weight: float
    cost: float
    min_interval_s: float
    max_interval_s: float
    prior_rate_per_s: float | None
    labels: Mapping[str, str]
    status: Status
    added_s: float
    polled_s: float | None
    changed_s: float | None
    due_s: float
    polls: int
    changes: int
    failures: int
    problem: str
    version: int
    selector: str = ""


@dataclass(frozen=True, slots=True)
class ItemChange:
    """What a user may change of an item; None leaves it as it is. A ``due_s`` of now means: poll it at once.
    Making an item ``active`` again also forgets its failures and its problem."""

    weight: float | None = None
    cost: float | None = None
    min_interval_s: float | None = None
    max_interval_s: float | None = None
    prior_rate_per_s: float | None = None
    labels: Mapping[str, str] | None = None
    status: Status | None = None
    due_s: float | None = None
    selector: str | None = None

    def __post_init__(self) -> None:
        _check_numbers(self)
        if self.status is not None:
            one_of("status", self.status, STATUSES)
        if self.due_s is not None and math.isnan(self.due_s):
            raise InputError("due_s is not a number: give Unix seconds")
        if self.selector is not None:
            check_storable("an item's selector", [self.selector])


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """Which items to list, in which order. ``text`` is looked for anywhere in the key, case as written. Never
    polled or changed sorts before any time; ties go by id."""

    text: str = ""
    status: Status | None = None
    source: str | None = None
    group: str | None = None
    sort: Sort = "id"
    descending: bool = False

    def __post_init__(self) -> None:
        one_of("sort", self.sort, SORTS)
        if self.status is not None:
            one_of("status", self.status, STATUSES)


@dataclass(frozen=True, slots=True)
class ItemPage:
    """A page of items and the cursor of the next, ``None`` at the end."""

    items: tuple[Item, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ItemCount:
    """How many items of one source and group have one status."""

    source: str
    group: str
    status: Status
    items: int


def _check_numbers(given: NewItem | ItemChange, who: str = "") -> None:
    for name in ("weight", "min_interval_s", "prior_rate_per_s"):
        value = getattr(given, name)
        if value is not None and not 0 <= value < math.inf:
            raise InputError(f"{who}{name} is {value}: must be 0 or more, and finite")
    if given.cost is not None and not 0 < given.cost < math.inf:
        raise InputError(f"{who}cost is {given.cost}: must be more than 0, and finite")
    least, most = given.min_interval_s, given.max_interval_s
    if most is not None and not most > 0:
        raise InputError(f"{who}max_interval_s is {most}: must be more than 0")
    if least is not None and most is not None and least > most:
        raise InputError(f"{who}min_interval_s {least:g} is more than max_interval_s {most:g}")
