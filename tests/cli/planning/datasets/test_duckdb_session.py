"""DuckDB beside the other executors: a missing package, and what it leaves on the disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from afresh.cli.planning.datasets import duckdb_session
from afresh.cli.planning.datasets.duckdb_session import partition_rows, refuse_repeated_items
from afresh.cli.planning.datasets.executor import open_executor
from afresh.tables.dataset import DatasetPart
from afresh.values.errors import UsageError


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_session, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"pip install 'afresh\[duckdb\]'"):
        open_executor("duckdb")


def test_rows_are_partitioned_and_nothing_else_is_left(tmp_path: Path) -> None:
    table = pa.table({"item": ["a", "b", "a", "c"], "bucket": pa.array([0, 2, 0, 2], pa.int32())})
    partition_rows(iter(table.to_batches()), table.schema, tmp_path / "polls", "bucket")
    found = {
        folder.name: sorted(pq.ParquetFile(file).read()["item"].to_pylist())
        for folder in (tmp_path / "polls").iterdir()
        for file in folder.iterdir()
    }
    assert found == {"bucket=0": ["a", "a"], "bucket=2": ["b", "c"]}
    assert [path.name for path in tmp_path.iterdir()] == ["polls"]


def test_only_local_files_are_compared() -> None:
    with pytest.raises(UsageError, match=r"reads local files only, not s3://b/a\.csv"):
        refuse_repeated_items([DatasetPart("s3://b/a.csv", "a.csv", 1, "1")])
