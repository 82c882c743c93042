"""Items as users add them and as the store holds them; changes of items, and queries for items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

from afresh.values.errors import AmbiguousKeyError, InputError, one_of
from afresh.values.storable_text import check_storable

Status: TypeAlias = Literal["active", "paused", "gone", "refused"]
"""``active``: the item is polled; ``paused``: the user stopped its polls; ``gone``: its source no longer has
it; ``refused``: its source or the rules of politeness forbid polls."""

STATUSES: tuple[Status, ...] = get_args(Status)
"""All statuses. Stores save the position of a status as its code, so a new status is added at the end."""

LONGEST_KEY = 8000
"""The most characters that the key of a new item may have. Items with longer keys that a store already has
stay as they are."""

MOST_WEIGHT = 1e15
"""The largest weight and cost of an item. Sums and products of larger ones would not be finite."""

Sort: TypeAlias = Literal["id", "key", "due", "changed", "failures", "weight"]
SORTS: tuple[Sort, ...] = get_args(Sort)


class ItemRef(NamedTuple):
    """Which item is meant. Source and key identify an item, as its ``id`` does: two sources may have items
    with the same key."""

    id: int
    source: str
    key: str


def ids_by_key(found: Iterable[ItemRef]) -> dict[str, int]:
    """Return a dictionary from key to item id. Raise ``AmbiguousKeyError`` if two items have the same key.

    >>> ids_by_key([ItemRef(3, "shop-a", "17"), ItemRef(4, "shop-a", "18")])
    {'17': 3, '18': 4}
    """
    ids: dict[str, ItemRef] = {}
    items = list(found)
    for item in items:
        if ids.setdefault(item.key, item) is not item:
            sources = (other.source for other in items if other.key == item.key)
            raise AmbiguousKeyError(display_key(item.key), sources)
    return {key: item.id for key, item in ids.items()}


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to add. Items of one ``group`` are throttled together; for HTTP, a group is a host.

    ``weight`` is the importance of the item, ``cost`` what one poll takes from the budget. Polls are at least
    ``min_interval_s`` and at most ``max_interval_s`` seconds apart. ``prior_rate_per_s`` is the change rate
    expected before the first poll. ``selector`` selects the part of the content that is compared; if it is
    empty, the source's selectors apply. ``listed`` is True if a listing names the item, False if the user
    adds it; then an item that a listing named before is no longer a listed one.

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
    listed: bool = False

    def __post_init__(self) -> None:
        if not self.key:
            raise InputError("an item's key is empty: give the address or name that its source knows it by")
        if len(self.key) > LONGEST_KEY:
            words = f"has {len(self.key):,} characters: {LONGEST_KEY:,} at most"
            raise InputError(f"an item's key {words}; it begins with {display_key(self.key)}")
        for name in ("key", "source", "group", "selector"):
            check_storable(f"an item's {name}", [getattr(self, name)])
        _check_numbers(self, f"item {self.key!r}: ")


@dataclass(frozen=True, slots=True)
class Item:
    """One item as the store holds it. Times are Unix seconds.

    ``polled_s`` is the time of the last successful poll, ``changed_s`` of the last change that a poll found;
    both are None before the first. ``due_s`` is the time of the next poll. ``polls`` is the number of all
    polls, ``failures`` the number of failed polls since the last successful one. ``problem`` describes the
    last failure. ``version`` is the number of the newest copy, 0 while there is no copy."""

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
    """New values for the fields of an item that a user may change; None leaves a field as it is.

    To poll an item at once, set ``due_s`` to the current time. Setting ``status`` to ``active`` also resets
    the item's failures and its problem."""

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
    """Which items to list, and how to sort them. ``text`` must occur in the key; the case of
    the letters a to z does not matter. ``sort="changed"`` puts items that never changed first. Items that are
    equal in ``sort`` are sorted by id."""

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
    """A part of a list of items. ``cursor`` is the text that requests the next part, None at the end."""

    items: tuple[Item, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ItemCount:
    """The number of items of one source and group that have one status."""

    source: str
    group: str
    status: Status
    items: int


def display_key(key: str) -> str:
    """Return a key in quotation marks for a message, with at most 100 characters of it.

    >>> display_key("https://example.org/"), len(display_key("x" * 10_000))
    ("'https://example.org/'", 102)
    """
    return repr(key if len(key) <= 100 else f"{key[:99]}…")


def _check_numbers(given: NewItem | ItemChange, who: str = "") -> None:
    for name in ("weight", "min_interval_s", "prior_rate_per_s"):
        value = getattr(given, name)
        if value is not None and not 0 <= value < math.inf:
            raise InputError(f"{who}{name} is {value}: must be 0 or more, and finite")
    for name in ("weight", "cost"):
        value = getattr(given, name)
        if value is not None and MOST_WEIGHT < value < math.inf:
            raise InputError(f"{who}{name} is {value:g}: must be at most {MOST_WEIGHT:g}")
    if given.cost is not None and not 0 < given.cost < math.inf:
        raise InputError(f"{who}cost is {given.cost}: must be more than 0, and finite")
    least, most = given.min_interval_s, given.max_interval_s
    if most is not None and not most > 0:
        raise InputError(f"{who}max_interval_s is {most}: must be more than 0")
    if least is not None and most is not None and least > most:
        raise InputError(f"{who}min_interval_s {least:g} is more than max_interval_s {most:g}")
