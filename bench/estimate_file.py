"""``afresh estimate`` of a Parquet log end to end: polls per second, against reading the log alone."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.process import run
from bench.rows import Row

POLLS_PER_ITEM = 10


def rows(*, quick: bool) -> list[Row]:
    """Measure ten million polls of a million items; the limits are a million polls a second and 4 GB."""
    items = 2_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        log, rates = Path(folder, "polls.parquet"), Path(folder, "rates.parquet")
        _write_polls(log, items)
        start = time.perf_counter()
        polls = pq.read_table(log).num_rows
        read = time.perf_counter() - start
        done = run([sys.executable, "-m", "afresh", "estimate", str(log), "-o", str(rates)])
        found = pq.read_metadata(rates).num_rows
    wanted = None if quick else 1e6
    return [
        Row(f"read {polls:.0e} polls with pyarrow", read, "s", ratio=1.0),
        Row("afresh estimate of them", done.seconds, "s", ratio=done.seconds / read),
        Row("its speed", polls / done.seconds, "polls/s", at_least=wanted),
        Row("its peak memory", done.peak_bytes / 1e9, "GB", at_most=4.0),
        Row("items missing from the rates", float(items - found), "", at_most=0.0),
    ]


def _write_polls(path: Path, items: int) -> None:
    """Write the polls round by round over all items, in the order in which a log is written."""
    rng = np.random.default_rng(0)
    rate = rng.gamma(0.4, 0.5, items)
    names = pa.array([f"https://example.org/page/{number}" for number in range(items)])
    schema = pa.schema([("item", pa.string()), ("time", pa.float64()), ("changed", pa.bool_())])
    now = np.full(items, 1.6e9)
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(POLLS_PER_ITEM):
            days = rng.standard_exponential(items) * 5
            now = now + 86400 * days
            changed = rng.random(items) < -np.expm1(-rate * days)
            writer.write_table(pa.table([names, now, changed], schema=schema))
