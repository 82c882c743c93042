"""Partitions logs of polls by item: every poll of an item goes to the same bucket, whatever file it is in.

Each part of the log is checked and written again, a few million polls at a time, as a Parquet file with one
row group per bucket. So a bucket is read as one row group of each of these files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from afresh.cli.planning.datasets.output_folder import part_file
from afresh.cli.planning.poll_log import COLUMNS, SOURCE, PollLog, refuse_wrong_times, tell_apart
from afresh.rates.item_sample import hash_keys_evenly
from afresh.tables.arrow.arrow_texts import ArrowTexts, arrow_array
from afresh.tables.dataset import DatasetPart
from afresh.tables.input_file import InputFile
from afresh.tables.object_paths import is_address, open_random_access
from afresh.tables.reading import CheckedTable, scan_table
from afresh.tables.text_columns import Texts
from afresh.values.arrays import Ints

_ROWS = 1 << 22  # polls of one file
_TYPES = {"text": pa.large_string(), "flag": pa.bool_()}
_COLUMNS = (*COLUMNS, SOURCE)
SCHEMA = pa.schema([(column.name, _TYPES.get(column.kind, pa.float64())) for column in _COLUMNS])


@dataclass(frozen=True, slots=True)
class ShuffleJob:
    """A part of a log that is to be divided into ``buckets``; ``target`` is the beginning of the names of the
    files to write. No poll may be later than ``now_s``."""

    part: DatasetPart
    target: str
    buckets: int
    now_s: float


@dataclass(frozen=True, slots=True)
class ShuffledPart:
    """The files written for a part, the columns that it has, its number of polls and their earliest time."""

    files: tuple[str, ...]
    given: frozenset[str]
    polls: int
    first_s: float


def shuffle_part(job: ShuffleJob) -> ShuffledPart:
    """Check the polls of a part, and write them again by bucket."""
    files: list[str] = []
    given: frozenset[str] = frozenset()
    polls, first_s = 0, np.inf
    for batches in _together(checked_polls(job.part, job.now_s)):
        given = given.union(*(batch.given for batch in batches))
        table = pa.concat_tables([as_arrow(batch) for batch in batches])
        polls += table.num_rows
        if not table.num_rows:
            continue
        first_s = min(first_s, float(np.min(table["time"].to_numpy())))
        target = _with_number(job.target, len(files))
        with part_file(target) as path:
            _write_buckets(path, table, bucket_of(table["item"], job.buckets), job.buckets)
        files.append(target)
    return ShuffledPart(tuple(files), given, polls, first_s)


def checked_polls(part: DatasetPart, now_s: float) -> Iterator[CheckedTable]:
    """Yield the polls of a part in batches, checked as those of a single file."""
    with InputFile(part.path) as source:
        for batch in scan_table(source, _COLUMNS):
            refuse_wrong_times(batch, now_s)
            yield batch


def as_arrow(batch: CheckedTable) -> pa.Table:
    """Return a batch with all columns of ``SCHEMA``."""
    arrays = [
        arrow_array(batch.text(column.name)) if column.is_text else pa.array(batch.column(column), field.type)
        for column, field in zip(_COLUMNS, SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def bucket_of(items: pa.ChunkedArray, buckets: int) -> Ints:
    """Return the number of the bucket of each item.

    >>> bucket_of(pa.chunked_array([["a", "b", "a"]]), 8).tolist()
    [6, 7, 6]
    """
    encoded = items.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    # The sample is chosen by the high bits of the same hashes, so that it is spread evenly over the buckets.
    numbers = (hash_keys_evenly(encoded.dictionary.to_pylist()) & np.uint64(0xFFFFFFFF)) % np.uint64(buckets)
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    found: Ints = numbers.astype(np.int64)[codes]
    return found


def _write_buckets(path: str, table: pa.Table, bucket: Ints, buckets: int) -> None:
    order = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(buckets), side="right")
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        start = 0
        for end in ends.tolist():
            rows = table.take(pa.array(order[start:end]))
            writer.write_table(rows, row_group_size=max(rows.num_rows, 1))  # an empty bucket has a group too
            start = end


def _with_number(target: str, number: int) -> str:
    plain, mark, options = target.partition("?")
    return f"{plain}-{number:04}.parquet{mark}{options}"


def _together(batches: Iterator[CheckedTable]) -> Iterator[list[CheckedTable]]:
    several: list[CheckedTable] = []
    for batch in batches:
        several.append(batch)
        if sum(each.rows for each in several) >= _ROWS:
            yield several
            several = []
    if several:
        yield several


def read_bucket(files: Sequence[str], bucket: int | None, given: frozenset[str]) -> PollLog:
    """Return the polls of a bucket: of its row group in each file or, if it is None, of whole files.
    ``given`` are the columns that any part of the log has."""
    tables = []
    for path in files:
        source = open_random_access(path) if is_address(path) else pa.OSFile(path, "rb")
        with source:
            file = pq.ParquetFile(source)
            found = file.read() if bucket is None else file.read_row_group(bucket)
            tables.append(found.select(SCHEMA.names).cast(SCHEMA))
    table = pa.concat_tables(tables) if tables else SCHEMA.empty_table()
    names: Texts = ArrowTexts(table["item"].combine_chunks())
    if SOURCE.name in given:
        names = tell_apart(names, ArrowTexts(table[SOURCE.name].combine_chunks()))
    encoded = names.encode()
    column: Any = {name: table[name].to_numpy() for name in SCHEMA.names if name not in ("item", "source")}
    return PollLog(
        names=encoded.labels,
        item=encoded.code.astype(np.int64),
        time_s=column["time"],
        changed=column["changed"],
        modified_s=column["modified"] if "modified" in given else None,
        count=column["count"] if "count" in given else None,
        reached=column["reached"] if "reached" in given else None,
        groups=None,
    )
