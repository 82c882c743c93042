"""Tables written whole or in batches, as CSV, Parquet or JSONL by the ending, whole or not at all.

Numbers are in their shortest form that reads back the same; infinity is ``inf`` in CSV and null in JSON.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from afresh.tables.atomic_output import open_output
from afresh.tables.columns import Kind
from afresh.tables.formats import STANDARD_STREAM, Compression, Format, Layout, format_of, named_format
from afresh.tables.text_lines import csv_header, csv_lines, json_lines

_TYPES: dict[Kind, pa.DataType] = {
    "text": pa.large_string(),
    "number": pa.float64(),
    "count": pa.int64(),
    "time": pa.float64(),
    "flag": pa.bool_(),
}
_Lines: TypeAlias = Callable[[Mapping[str, pa.Array]], bytes]
_ROW_GROUP_ROWS = 1 << 20
_TEXT_ROWS = 1 << 16  # rows spelt out at once


class TableWriter:
    """Writes batches of rows; the file is there, whole, once the context has ended well.

    ``columns`` maps the names, in order, to their kinds. ``format`` is needed only for standard output
    (``-``) that is not to be CSV. A column of float32 arrays is stored as float32.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TableWriter(f"{folder}/plan.csv", {"item": "text", "interval": "number"}) as writer:
    ...         writer.write({"item": ["a", "b,c"], "interval": np.array([0.1, np.inf])})
    ...     Path(folder, "plan.csv").read_text()
    'item,interval\\na,0.1\\n"b,c",inf\\n'
    """

    def __init__(
        self,
        path: str | Path,
        columns: Mapping[str, Kind],
        *,
        format: str | None = None,  # noqa: A002
    ) -> None:
        self._path, self._columns = path, dict(columns)
        self._format = _chosen_format(str(path), format)
        self._stack = ExitStack()
        self._sink: _Sink | None = None
        self._stream: Any = None
        self.rows = 0

    def __enter__(self) -> Self:
        """Open the file aside; a folder that is missing or not writable is refused here."""
        self._stream = self._stack.enter_context(open_output(self._path))
        if self._format.compression:
            self._stream = _Packed(self._stream, self._format.compression)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Finish and rename, or on an error leave nothing behind; a closed pipe is no error."""
        if error is not None:
            self._abandon()
            return bool(self._stack.__exit__(kind, error, trace))
        # Pushed last, run first: what the end of the table raises reaches the file as any error does.
        self._stack.callback(self._finish)
        self._stack.close()
        return False

    def write(self, batch: Mapping[str, Any]) -> None:
        """Write the rows of ``batch``: an array or list for each column, all of one length."""
        sink = self._opened(batch)
        arrays = [_as_arrow(batch[field.name], field.type) for field in sink.schema]
        rows = pa.RecordBatch.from_arrays(arrays, schema=sink.schema)
        sink.write(rows)
        self.rows += rows.num_rows

    def _finish(self) -> None:
        try:
            self._opened({name: np.empty(0) for name in self._columns}).close()
            if isinstance(self._stream, _Packed):
                self._stream.finish()
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        if self._sink is not None:
            self._sink.abandon()

    def _opened(self, batch: Mapping[str, Any]) -> _Sink:
        # The first batch settles the width of numbers, so the header waits for it.
        if self._sink is None:
            fields = [pa.field(name, _stored_type(kind, batch[name])) for name, kind in self._columns.items()]
            self._sink = _sink(self._format.layout, self._stream, pa.schema(fields))
        return self._sink


def write_table(
    path: str | Path,
    columns: Mapping[str, Kind],
    values: Mapping[str, Any],
    *,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write one whole table.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(f"{folder}/x.jsonl", {"budget": "number", "dropped": "count"},
    ...                 {"budget": [0.5], "dropped": [3]})
    ...     Path(folder, "x.jsonl").read_text()
    '{"budget":0.5,"dropped":3}\\n'
    """
    with TableWriter(path, columns, format=format) as writer:
        writer.write(values)


class _Sink(Protocol):
    schema: pa.Schema

    def write(self, rows: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class _TextSink:
    def __init__(self, stream: Any, schema: pa.Schema, lines: _Lines) -> None:
        self.schema, self._stream, self._lines = schema, stream, lines

    def write(self, rows: pa.RecordBatch) -> None:
        for start in range(0, rows.num_rows, _TEXT_ROWS):
            part = rows.slice(start, _TEXT_ROWS)
            self._stream.write(self._lines(dict(zip(part.schema.names, part.columns, strict=True))))

    def close(self) -> None:
        """Nothing is held back, and the stream is its owner's."""

    def abandon(self) -> None:
        """Nothing is held back."""


class _ParquetSink:
    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        self.schema = schema
        self._stream = _Unclosable(stream)
        self._writer = pq.ParquetWriter(pa.PythonFile(self._stream, mode="w"), schema, compression="zstd")

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows, row_group_size=_ROW_GROUP_ROWS)

    def close(self) -> None:
        self._writer.close()

    def abandon(self) -> None:
        # pyarrow writes the footer even when the writer is only collected: let it go nowhere.
        self._stream.target = None
        self._writer.close()


def _sink(layout: Layout, stream: Any, schema: pa.Schema) -> _Sink:
    if layout == "parquet":
        return _ParquetSink(stream, schema)
    if layout == "csv":
        stream.write(csv_header(schema.names))
    return _TextSink(stream, schema, csv_lines if layout == "csv" else json_lines)


class _Unclosable:
    """A stream whose end is its owner's business, though pyarrow closes what it is given.

    Without a ``target`` it swallows what is written.
    """

    def __init__(self, target: Any) -> None:
        self.target, self.closed = target, False

    def write(self, data: Any) -> None:
        if self.target is not None:
            self.target.write(data)

    def flush(self) -> None:
        """The owner flushes."""

    def close(self) -> None:
        self.closed = True


class _Packed:
    """A stream that compresses what it is given; without ``finish`` it simply has no end."""

    def __init__(self, stream: IO[bytes], compression: Compression) -> None:
        self._stream = stream
        if compression == "gzip":
            self._packer: Any = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        else:
            self._packer = zstandard.ZstdCompressor().compressobj()

    def write(self, data: Any) -> None:
        self._stream.write(self._packer.compress(bytes(data)))

    def finish(self) -> None:
        self._stream.write(self._packer.flush())


def _chosen_format(path: str, given: str | None) -> Format:
    if given is not None:
        return named_format(given)
    return Format("csv") if path == STANDARD_STREAM else format_of(path)


def _stored_type(kind: Kind, values: Any) -> pa.DataType:
    if kind == "number" and getattr(values, "dtype", None) == np.float32:
        return pa.float32()
    return _TYPES[kind]


def _as_arrow(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values if values.type == kind else values.cast(kind)
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        values = values.tolist()
    return pa.array(values, type=kind, from_pandas=False)
