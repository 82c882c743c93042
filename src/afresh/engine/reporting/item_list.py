"""The columns in which ``afresh list`` shows items. Some need estimates, which take time for many items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from afresh.engine.reporting.item_snapshot import ItemEstimate, estimate_items, take_snapshot
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.tables.columns import NUMBER, TEXT, Kind
from afresh.values.items import Item

_DAY_S = 86400.0
_AT_ONCE = 5000

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column. ``field`` is the field of ``Item`` or, if ``estimated``, of ``ItemEstimate`` that it shows.
    ``kind`` is how tables store it; ``is_time`` is whether it is a time in Unix seconds."""

    field: str
    kind: Kind = TEXT
    is_time: bool = False
    estimated: bool = False


COLUMNS: dict[str, ListColumn] = {
    "item": ListColumn("key"),
    "source": ListColumn("source"),
    "group": ListColumn("group"),
    "status": ListColumn("status"),
    "weight": ListColumn("weight", NUMBER),
    "cost": ListColumn("cost", NUMBER),
    "min_interval": ListColumn("min_interval_s", NUMBER),
    "max_interval": ListColumn("max_interval_s", NUMBER),
    "selector": ListColumn("selector"),
    "added": ListColumn("added_s", "time", is_time=True),
    "polled": ListColumn("polled_s", "time", is_time=True),
    "changed": ListColumn("changed_s", "time", is_time=True),
    "due": ListColumn("due_s", "time", is_time=True),
    "polls": ListColumn("polls", "count"),
    "changes": ListColumn("changes", "count"),
    "failures": ListColumn("failures", "count"),
    "version": ListColumn("version", "count"),
    "problem": ListColumn("problem"),
    "rate": ListColumn("rate_per_s", NUMBER, estimated=True),
    "interval": ListColumn("interval_s", NUMBER, estimated=True),
    "fresh": ListColumn("fresh", NUMBER, estimated=True),
    "plan": ListColumn("plan", estimated=True),
}
"""All columns by name. In tables, ``rate`` is in changes per day, and intervals are in days."""

DEFAULT_COLUMNS = ("status", "polled", "changed", "due", "polls", "changes", "failures", "item")


def item_rows(
    store: Store, settings: Settings, items: Iterable[Item], columns: Sequence[str], now_s: float
) -> Iterator[list[dict[str, Cell]]]:
    """Yield batches of rows, each with the cells of one item by column."""
    rest = iter(items)
    estimated = any(COLUMNS[name].estimated for name in columns)
    while batch := list(islice(rest, _AT_ONCE)):
        estimates: list[ItemEstimate | None] = [None] * len(batch)
        if estimated:
            estimates = [*estimate_items(take_snapshot(store, settings, batch, now_s))]
        yield [
            {name: _cell(COLUMNS[name], item, estimate) for name in columns}
            for item, estimate in zip(batch, estimates, strict=True)
        ]


def _cell(column: ListColumn, item: Item, estimate: ItemEstimate | None) -> Cell:
    value: Cell = getattr(estimate if column.estimated else item, column.field)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if column.field == "rate_per_s":
            return value * _DAY_S
        if column.field in ("interval_s", "min_interval_s", "max_interval_s"):
            return value / _DAY_S
    return value
