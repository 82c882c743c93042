"""``afresh plan`` of a Parquet file end to end, against reading and writing its columns alone."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.items import make_items
from bench.process import run
from bench.rows import Row


def rows(*, quick: bool) -> list[Row]:
    """Measure time and peak memory; the yardstick is pyarrow reading and writing as many columns."""
    size = 20_000 if quick else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        items, plan = Path(folder, "items.parquet"), Path(folder, "plan.parquet")
        _write_items(items, size)
        start = time.perf_counter()
        _copy(items, Path(folder, "copy.parquet"))
        copy = time.perf_counter() - start
        command = [
            sys.executable,
            "-m",
            "afresh",
            "plan",
            str(items),
            "--budget",
            "0.05/item/d",
            "-o",
            str(plan),
        ]
        done = run(command)
        planned = pq.read_metadata(plan).num_rows
    return [
        Row(f"read and write {size:.0e} rows with pyarrow", copy, "s", ratio=1.0),
        Row(f"afresh plan of {size:.0e} Parquet rows", done.seconds, "s", ratio=done.seconds / copy),
        Row("its peak memory", done.peak_bytes / 1e9, "GB", at_most=3.0),
        Row("rows missing from the plan", float(size - planned), "", at_most=0.0),
    ]


def _write_items(path: Path, size: int) -> None:
    rates, weights = make_items(size)
    schema = pa.schema([("item", pa.int64()), ("rate", pa.float32()), ("weight", pa.float32())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, size, 1 << 20):
            stop = min(start + (1 << 20), size)
            columns = [pa.array(np.arange(start, stop)), rates[start:stop], weights[start:stop]]
            writer.write_table(pa.table(columns, schema=schema))


def _copy(source: Path, target: Path) -> None:
    """Do what every plan must do: read three columns and write seven."""
    table = pq.read_table(source)
    rate = table["rate"]
    names = ("frequency", "interval", "freshness", "age", "marginal")
    columns = {"item": table["item"], **dict.fromkeys(names, rate)}
    status = pa.DictionaryArray.from_arrays(pa.array(np.zeros(table.num_rows, np.int8)), ["kept"])
    pq.write_table(pa.table({**columns, "status": status}), target)
