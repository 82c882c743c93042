"""Records in a folder for the experiments with keyword probes: papers*.csv and movies*.csv, also packed."""

from __future__ import annotations

from pathlib import Path

from afresh.papers.yang.probe_experiments import SearchRecords
from afresh.tables.columns import Column
from afresh.tables.reading import read_table
from afresh.values.errors import InputError

_COLUMNS = {"papers": ("title", "authors"), "movies": ("title", "director", "cast")}


def read_records(folder: Path) -> list[SearchRecords]:
    """Every file of records in ``folder``, by name."""
    if not folder.is_dir():
        raise InputError("is no folder", path=str(folder))
    return [*_read_kind(folder, "papers"), *_read_kind(folder, "movies")]


def _read_kind(folder: Path, kind: str) -> list[SearchRecords]:
    found = []
    for path in sorted(folder.glob(f"{kind}*.*")):
        table = read_table(path, [Column(name, "text") for name in _COLUMNS[kind]])
        for name in _COLUMNS[kind]:
            if name not in table:
                raise InputError(f"has no column {name}", path=str(path))
        texts = {name: table.text(name).to_pylist() for name in _COLUMNS[kind]}
        name, _, _ = path.name.partition(".")
        found.append(SearchRecords(name, "papers" if kind == "papers" else "movies", texts))
    return found
