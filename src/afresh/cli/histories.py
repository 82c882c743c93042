"""Histories of changes in a folder: every NAME.changes.csv (or .parquet, .jsonl, also .gz and .zst) in it."""

from __future__ import annotations

from pathlib import Path

from afresh.papers.cho.cho_figures import ChangeLog
from afresh.tables.columns import Column
from afresh.tables.reading import read_table
from afresh.values.errors import InputError
from afresh.values.units import UNIT_SECONDS

CHANGES = (
    Column("item", "text", required=True, what="what changed"),
    Column("time", "time", required=True, what="when"),
)


def read_histories(folder: Path) -> list[ChangeLog]:
    """Every history in ``folder``, by name."""
    if not folder.is_dir():
        raise InputError("is no folder", path=str(folder))
    paths = sorted(folder.glob("*.changes.*"))
    if not paths:
        raise InputError(
            "holds no history: a file such as pages.changes.csv with item,time", path=str(folder)
        )
    return [_read(path) for path in paths]


def _read(path: Path) -> ChangeLog:
    table = read_table(path, CHANGES)
    items = table.text("item").dictionary_encode().indices.to_numpy()
    name, _, _ = path.name.partition(".changes.")
    return ChangeLog(name, items.astype("int64"), table.times("time") / UNIT_SECONDS["d"])
