"""Datasets named by a folder, a pattern, a file or an address."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from afresh.tables.dataset import find_parts, is_dataset
from afresh.values.errors import InputError, UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "b.csv",
        "a.csv.gz",
        "sub/c.parquet",
        "_afresh.json",
        ".hidden.csv",
        "notes.txt",
        "sub/_x.csv",
    ):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("item\n")
    return tmp_path / "data"


def names(path: object) -> list[str]:
    return [part.name for part in find_parts(str(path))]


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_the_parts_of_a_dataset(folder: Path, prefix: str) -> None:
    whole = f"{prefix}{folder}"
    assert names(f"{whole}/") == ["a.csv.gz", "b.csv", "sub/c.parquet"]
    assert names(f"{whole}/*.csv") == ["b.csv"]
    assert names(f"{whole}/*/*.parquet") == ["sub/c.parquet"]
    assert names(f"{whole}/**/c.*") == ["sub/c.parquet"]
    assert names(f"{whole}/b.csv") == ["b.csv"]
    assert [part.size for part in find_parts(f"{whole}/*.csv")] == [5]
    with pytest.raises(InputError, match="has no files that end in"):
        names(f"{whole}/*.jsonl")
    with pytest.raises(InputError, match="no such folder"):
        names(f"{whole}/nowhere/")


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "items[1].csv"
    path.write_text("item\n")
    assert not is_dataset(str(path))
    assert is_dataset(str(tmp_path))
    assert names(path) == ["items[1].csv"]


def test_addresses_of_unknown_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown kind of address 'ftp'"):
        names("ftp://host/items/")


def test_a_file_that_was_written_again_has_another_version(folder: Path) -> None:
    before = find_parts(str(folder / "b.csv"))[0]
    os.utime(folder / "b.csv", ns=(1, 1))
    assert find_parts(str(folder / "b.csv"))[0].version != before.version
