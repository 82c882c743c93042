"""Parquet: types are taken as they are, or refused."""

from __future__ import annotations

import datetime as dt
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from afresh.tables.columns import Column
from afresh.tables.reading import read_table, scan_table
from afresh.values.errors import InputError
from afresh.values.zstd_frames import zstd

MakeFile = Callable[[str, bytes], str]
Columns = tuple[Column, ...]
RIGHT_RATE = "must be a finite number of 0 or more (changes per day)"


def parquet(**columns: Any) -> bytes:
    """The bytes of a Parquet file."""
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


TWO_ROWS = parquet(item=["a", "b"], rate=[1.0, 2.0])


@pytest.mark.parametrize(
    ("column", "values", "read"),
    [
        ("rate", pa.array([1, 2], pa.uint64()), [1, 2]),
        ("rate", pa.array(np.array([0.5, 2], dtype=np.float32)), [0.5, 2]),
        ("rate", pa.array([2**62 + 1, 2], pa.int64()), [float(2**62), 2]),
        ("weight", pa.array([None, 2.0]), [1, 2]),
        ("weight", pa.nulls(2), [1, 1]),
        ("time", pa.array([86400 * 10**9, None], pa.timestamp("ns")), [86400, None]),
        ("time", pa.array([dt.date(1970, 1, 2), dt.date(1970, 1, 1)]), [86400, 0]),
        ("time", pa.array(["1970-01-02", "0"]), [86400, 0]),
        ("changed", pa.array([True, None]), [True, False]),
        ("changed", pa.array([1, 0], pa.int8()), [True, False]),
        ("group", pa.array(["g", None]).dictionary_encode(), ["g", "none"]),
        ("group", pa.array([7, 8]), ["7", "8"]),
    ],
)
def test_types_that_fit_are_read(
    make_file: MakeFile, items: Columns, column: str, values: Any, read: list[Any]
) -> None:
    data = parquet(**({"item": ["a", "b"], "rate": [1, 1]} | {column: values}))
    table = read_table(make_file("items.parquet", data), items, unique="item")
    got = table.values[column]
    got = got.to_pylist() if isinstance(got, pa.Array) else [None if x != x else x for x in got.tolist()]
    assert got == read


def test_float32_stays_float32(make_file: MakeFile, items: Columns) -> None:
    path = make_file("items.parquet", parquet(item=["a"], rate=np.array([0.1], dtype=np.float32)))
    assert read_table(path, items).numbers("rate").dtype == np.float32


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"item": ["a"], "rate": ["1"]}, f"items.parquet, column rate: is of type string: {RIGHT_RATE}"),
        ({"item": [1.5], "rate": [1]}, "items.parquet, column item: is of type double: must be text"),
        (
            {"item": ["a", "b"], "rate": [1, None]},
            f"items.parquet, row 2, column rate: is empty: {RIGHT_RATE}",
        ),
        ({"item": ["a"], "rate": [np.nan]}, f"items.parquet, row 1, column rate: is nan: {RIGHT_RATE}"),
        ({"item": ["a"], "rate": [-0.1]}, f"items.parquet, row 1, column rate: is -0.1: {RIGHT_RATE}"),
        (
            {"item": pa.array([b"a", b"\xe9"]).cast(pa.string(), safe=False), "rate": [1, 1]},
            "items.parquet, row 2, column item: is not UTF-8: save the file as UTF-8",
        ),
        (
            {"item": ["a", "a"], "rate": [1, 1]},
            "items.parquet, row 2, column item: 'a' occurs twice, first in row 1: it must be unique",
        ),
    ],
)
def test_what_is_wrong_is_said_without_lines(
    make_file: MakeFile, items: Columns, columns: dict[str, Any], problem: str
) -> None:
    path = make_file("items.parquet", parquet(**columns))
    with pytest.raises(InputError) as raised:
        read_table(path, items, unique="item")
    assert str(raised.value) == str(Path(path).with_name(problem))


@pytest.mark.parametrize("cut", [20, len(TWO_ROWS) // 2, len(TWO_ROWS) - 1])
def test_a_half_written_file_is_refused(make_file: MakeFile, items: Columns, cut: int) -> None:
    path = make_file("items.parquet", TWO_ROWS[:cut])
    with pytest.raises(InputError, match=r"items\.parquet: is not a whole Parquet file"):
        read_table(path, items)


@pytest.mark.parametrize(
    ("name", "data"),
    [("i.parquet.gz", gzip.compress(TWO_ROWS, mtime=0)), ("i.parquet.zst", zstd.compress(TWO_ROWS))],
)
def test_compressed_once_more_it_is_read_too(
    make_file: MakeFile, items: Columns, name: str, data: bytes
) -> None:
    assert read_table(make_file(name, data), items).numbers("rate").tolist() == [1, 2]


def test_batches_are_as_small_as_asked(make_file: MakeFile, items: Columns) -> None:
    data = parquet(item=[str(row) for row in range(1000)], rate=np.arange(1000.0))
    batches = list(scan_table(make_file("items.parquet", data), items, batch_rows=400))
    assert [batch.rows for batch in batches] == [400, 400, 200]
    assert [batch.share for batch in batches] == [0.4, 0.8, 1.0]


def test_no_rows_is_an_empty_table(make_file: MakeFile, items: Columns) -> None:
    path = make_file(
        "items.parquet", parquet(item=pa.array([], pa.string()), rate=pa.array([], pa.float64()))
    )
    assert read_table(path, items, unique="item").numbers("rate").tolist() == []


def test_a_column_of_any_kind_takes_every_plain_value_as_text(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    pq.write_table(pa.table({"id": [1.5, 2.0], "raw": [b"a", None], "tags": [["a"], ["b"]]}), path)
    table = read_table(path, [Column("id", "any"), Column("raw", "any")])
    assert (table.text("id").tolist(), table.text("raw").tolist()) == (["1.5", "2"], ["a", ""])
    with pytest.raises(InputError, match=r"tags: is of type list.*: must be one value"):
        read_table(path, [Column("tags", "any")])
