"""Choose the next request to an API: changed records, a page of the list, or a look-up by keys.

Each request has the sum of the poll values of the records that it shows to be right or brings anew:

    changes    all records that were known to be right when the changes were last read. Those that the answer
               does not name have not changed. The sum is divided by the number of pages expected.
    page       the records that were on this page of the list when it was last read.
    look-up    the records of the highest values, as many as one request can name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from afresh.sources.api.known_records import KnownRecords
from afresh.values.arrays import Float64s, Ints

ChoiceKind: TypeAlias = Literal["changes", "page", "look_up"]
_MOST_EXPECTED = 500  # records that a batch contains at most


@dataclass(frozen=True, slots=True)
class ApiChoice:
    """A request, and the rows of the records that it should refresh. ``page`` is the number of the page."""

    kind: ChoiceKind
    rows: tuple[int, ...] = ()
    page: int = 0


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a server can be asked for now. ``since_s`` is the time (Unix seconds) from which on it can list
    changes, None if it cannot. ``change_pages`` is the expected number of pages of changes. ``can_ask_page``
    returns whether a page of the list can be requested."""

    keys_at_once: int = 1
    since_s: float | None = None
    change_pages: float = 1.0
    can_ask_page: Callable[[int], bool] = lambda number: True  # noqa: ARG005


def best_request(
    known: KnownRecords, values: Float64s, can: Abilities, must: int | None = None
) -> ApiChoice | None:
    """Return the request with the highest sum of ``values`` per request. With ``must``, only requests that
    show the record in that row count. The result is None if no request has a value.

    >>> known = KnownRecords(); known.add(["a", "b", "c"])
    >>> known.pages = {1: ("a", "b"), 2: ("c",)}
    >>> best_request(known, np.array([1.0, 1.0, 1.5]), Abilities())
    ApiChoice(kind='page', rows=(0, 1), page=1)
    >>> best_request(known, np.array([1.0, 1.0, 1.5]), Abilities(keys_at_once=2))
    ApiChoice(kind='look_up', rows=(2, 0), page=0)
    """
    found = [
        _changes(known, values, can, must),
        _list_page(known, values, can, must),
        _look_up(values, can, must),
    ]
    gain, choice = max(found, key=lambda pair: pair[0])
    return choice if gain > 0 else None


def _changes(
    known: KnownRecords, values: Float64s, can: Abilities, must: int | None
) -> tuple[float, ApiChoice | None]:
    if can.since_s is None or not values.size:
        return 0.0, None
    shown = known.confirmable(can.since_s)
    if must is not None and not shown[must]:
        return 0.0, None
    rows = _best(np.where(shown, values, 0.0), _MOST_EXPECTED)
    gain = float(values[shown].sum()) / max(can.change_pages, 1.0)
    return gain, ApiChoice("changes", tuple(rows.tolist()))


def _list_page(
    known: KnownRecords, values: Float64s, can: Abilities, must: int | None
) -> tuple[float, ApiChoice | None]:
    gains = {number: gain for number, gain in known.page_values(values).items() if can.can_ask_page(number)}
    if must is not None:
        key = known.table.keys[must]
        gains = {number: gain for number, gain in gains.items() if key in known.pages[number]}
    if not gains:
        return 0.0, None
    best = max(gains, key=lambda number: gains[number])
    rows = known.rows_of(known.pages[best])
    return gains[best], ApiChoice("page", tuple(rows.tolist()), best)


def _look_up(values: Float64s, can: Abilities, must: int | None) -> tuple[float, ApiChoice | None]:
    if not can.keys_at_once or not values.size:
        return 0.0, None
    rows = _best(values, can.keys_at_once)
    if must is not None:  # alone, so that the answer surely shows whether the record exists
        rows = np.array([must])
    return float(values[rows].sum()), ApiChoice("look_up", tuple(rows.tolist()))


def _best(values: Float64s, count: int) -> Ints:
    """Return the rows of the highest values above 0, at most ``count``."""
    rows = np.argsort(-values, kind="stable")[:count]
    return np.asarray(rows[values[rows] > 0])
