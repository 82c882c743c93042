"""Reads the POLLS file of ``afresh estimate`` into arrays; errors name the number of the wrong row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh.rates.poll_table import MOST_CHANGES
from afresh.tables.columns import Column
from afresh.tables.input_file import InputFile
from afresh.tables.reading import CheckedTable, scan_table
from afresh.tables.text_columns import Texts, as_texts, encode_together, join_texts
from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.errors import InputError, UsageError

COLUMNS = (
    Column("item", "text", required=True, what="the item's name"),
    Column("time", "time", required=True, what="when it was polled"),
    Column(
        "changed",
        "flag",
        required=True,
        if_set="reached",
        what="whether it had changed since the poll before",
    ),
    Column("modified", "time", what="when the source says it was last modified"),
    Column(
        "count", "number", minimum=0, maximum=MOST_CHANGES, whole=True, what="changes since the poll before"
    ),
    Column("reached", "flag", default=True, what="0 where the poll failed and tells nothing"),
)
SOURCE = Column("source", "text", default="", what="the item's source, which tells apart items with one name")
EARLIEST_S = -62135596800.0
CLOCKS_APART_S = 60.0  # polls up to this far in the future are accepted, since clocks of machines differ


@dataclass(frozen=True, slots=True)
class PollLog:
    """The polls of a file, in the order of its rows. ``item`` has, for each poll, the position of its item in
    ``names``. If several sources have items of one name, their names are ``source:name``. ``groups`` has the
    number of the group of each item, not of each poll."""

    names: Texts
    item: Ints
    time_s: Float64s
    changed: Bools
    modified_s: Float64s | None
    count: Float64s | None
    reached: Bools | None
    groups: Ints | None


def read_polls(
    source: InputFile,
    *,
    now_s: float,
    group: str | None = None,
    on_read: Callable[[float], None] | None = None,
) -> PollLog:
    """Read the polls of a file, whose rows may have any order; raise ``InputError`` if a row is wrong.

    No poll may be later than ``now_s``. ``group`` is the column with the item's group. ``on_read`` is called
    with the share of the file (0 to 1) that has been read."""
    if group in {column.name for column in COLUMNS}:
        raise UsageError(f"--group {group} is a column with a meaning of its own: name another one")
    more = [Column(group, "text", required=True)] if group else []
    columns = [*COLUMNS, *more, *([] if group == SOURCE.name else [SOURCE])]
    parts: dict[str, list[Any]] = {column.name: [] for column in columns}
    given: frozenset[str] = frozenset()
    for batch in scan_table(source, columns):
        refuse_wrong_times(batch, now_s)
        given |= batch.given
        for column in columns:
            if column is not SOURCE or SOURCE.name in given:
                parts[column.name].append(batch.column(column))
        if on_read:
            on_read(batch.share)
    # All batches are encoded at once, because joining the labels of batches hashes every name twice.
    items = encode_together(_items_of_sources(parts) if SOURCE.name in given else parts["item"])
    rows = items.code.astype(np.int64)
    modified, count, reached = (
        np.concatenate(parts[name]) if name in given else None for name in ("modified", "count", "reached")
    )
    return PollLog(
        names=items.labels,
        item=rows,
        time_s=np.concatenate(parts["time"]),
        changed=np.concatenate(parts["changed"]),
        modified_s=modified,
        count=count,
        reached=reached,
        groups=_group_of_items(source.name, group, parts, items.labels, rows) if group else None,
    )


def _items_of_sources(parts: dict[str, list[Any]]) -> list[Texts]:
    return [tell_apart(join_texts(parts["item"]), join_texts(parts[SOURCE.name]))]


def tell_apart(names: Texts, sources: Texts) -> Texts:
    """Return the names of the items of these polls. Those that several ``sources`` have are preceded by their
    source."""
    item, source = names.encode(), sources.encode()
    pair, pair_of_poll = np.unique(
        item.code * np.int64(len(source.labels)) + source.code, return_inverse=True
    )
    item_of_pair, source_of_pair = np.divmod(pair, max(len(source.labels), 1))
    is_shared = (np.bincount(item_of_pair) > 1)[item_of_pair]
    if not is_shared.any():
        return names
    own, of = item.labels.take(item_of_pair).tolist(), source.labels.take(source_of_pair).tolist()
    told_apart = [f"{of[at]}:{own[at]}" if shared else own[at] for at, shared in enumerate(is_shared)]
    return as_texts(told_apart).take(pair_of_poll)


def refuse_wrong_times(batch: CheckedTable, now_s: float) -> None:
    times = batch.times("time")
    for is_wrong, problem in (
        (times > now_s + CLOCKS_APART_S, "is in the future: a poll is something that has happened"),
        (times < EARLIEST_S, "is before the year 1: give Unix seconds or ISO 8601"),
    ):
        if is_wrong.any():
            raise batch.fault(int(is_wrong.argmax()), "time", problem)


def _group_of_items(path: str, column: str, parts: dict[str, list[Any]], names: Texts, rows: Ints) -> Ints:
    """Return the number of the group of each item; raise ``InputError`` if an item is in two groups."""
    of_poll = encode_together(parts[column]).code.astype(np.int64)
    of_item = np.zeros(len(names), dtype=np.int64)
    of_item[rows] = of_poll
    wrong = np.flatnonzero(of_item[rows] != of_poll)
    if wrong.size:
        row = int(wrong[0])
        name = names[int(rows[row])]
        raise InputError(f"{name!r} is in more than one group", path=path, row=row + 1, column=column)
    return of_item
