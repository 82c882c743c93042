"""Reads the folder of ``reproduce --data``: histories of changes, and records for keyword probes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from afresh.histories.recorded import EVENTS
from afresh.papers.cho.cho_figures import ChangeLog
from afresh.papers.yang.probe_experiments import SearchRecords
from afresh.tables.columns import Column
from afresh.tables.reading import read_table
from afresh.values.errors import InputError
from afresh.values.units import UNIT_SECONDS

_RECORD_COLUMNS: dict[Literal["papers", "movies"], tuple[str, ...]] = {
    "papers": ("title", "authors"),
    "movies": ("title", "director", "cast"),
}


def read_histories(folder: Path) -> list[ChangeLog]:
    """Read every history in ``folder``: the files NAME.changes.csv, .parquet or .jsonl, also .gz and .zst."""
    paths = _find_files(folder, "*.changes.*")
    if not paths:
        raise InputError(
            "holds no history: a file such as pages.changes.csv with item,time", path=str(folder)
        )
    histories = []
    for path in paths:
        table = read_table(path, EVENTS)
        items = table.text("item").encode().code
        name, _, _ = path.name.partition(".changes.")
        histories.append(ChangeLog(name, items.astype("int64"), table.times("time") / UNIT_SECONDS["d"]))
    return histories


def read_records(folder: Path) -> list[SearchRecords]:
    """Read every file of records in ``folder``: papers*.csv and movies*.csv, also compressed."""
    found = []
    for kind, columns in _RECORD_COLUMNS.items():
        for path in _find_files(folder, f"{kind}*.*"):
            table = read_table(path, [Column(name, "text") for name in columns])
            for name in columns:
                if name not in table:
                    raise InputError(f"has no column {name}", path=str(path))
            texts = {name: table.text(name).tolist() for name in columns}
            found.append(SearchRecords(path.name.partition(".")[0], kind, texts))
    return found


def _find_files(folder: Path, pattern: str) -> list[Path]:
    if not folder.is_dir():
        raise InputError("is no folder", path=str(folder))
    return sorted(folder.glob(pattern))
