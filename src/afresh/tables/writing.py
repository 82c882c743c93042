"""Write tables as CSV, Parquet or JSONL, at once or in batches of rows, completely or not at all.

CSV and JSONL are encoded column by column. A number is written in the shortest form that is read as the same
number. Infinity is ``inf`` in CSV and null in JSON."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from afresh.tables.atomic_output import open_output
from afresh.tables.cells import is_text
from afresh.tables.columns import Kind
from afresh.tables.formats import STANDARD_STREAM, Compression, Format, Layout, format_of

_TYPES: dict[Kind, pa.DataType] = {
    "text": pa.large_string(),
    "number": pa.float64(),
    "count": pa.int64(),
    "time": pa.float64(),
    "flag": pa.bool_(),
}
_Lines: TypeAlias = Callable[[Mapping[str, pa.Array]], bytes]
_ROW_GROUP_ROWS = 1 << 20
_TEXT_ROWS = 1 << 16  # rows encoded at once
_CSV_SPECIAL = r'[",\r\n]'
_JSON_SPECIAL = r'["\\\x00-\x1f\x7f]'


class TableWriter:
    """Writes batches of rows to a file, which appears when the ``with`` block ends without an error.

    ``columns`` maps the names of the columns, from left to right, to their kinds. The ending of ``path`` says
    the format; standard output (``-``) is CSV. A column of float32 arrays is stored as float32.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TableWriter(f"{folder}/plan.csv", {"item": "text", "interval": "number"}) as writer:
    ...         writer.write({"item": ["a", "b,c"], "interval": np.array([0.1, np.inf])})
    ...     Path(folder, "plan.csv").read_text()
    'item,interval\\na,0.1\\n"b,c",inf\\n'
    """

    def __init__(self, path: str | Path, columns: Mapping[str, Kind]) -> None:
        self._path, self._columns = path, dict(columns)
        self._format = Format("csv") if str(path) == STANDARD_STREAM else format_of(str(path))
        self._stack = ExitStack()
        self._writer: _TextWriter | _ParquetSink | None = None
        self._stream: Any = None

    def __enter__(self) -> Self:
        """Open the file. Raise ``OutputError`` if its folder is missing or not writable."""
        self._stream = self._stack.enter_context(open_output(self._path))
        if self._format.compression:
            self._stream = _CompressedStream(self._stream, self._format.compression)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Complete and rename the file. After an error, remove it. A closed pipe is no error."""
        if error is not None:
            self._abandon()
            return bool(self._stack.__exit__(kind, error, trace))
        # The callback pushed last runs first, so the output sees an error in _finish and removes the file.
        self._stack.callback(self._finish)
        self._stack.close()
        return False

    def write(self, batch: Mapping[str, Any]) -> None:
        """Write the rows of ``batch``, which has an array or list for each column, all of the same length."""
        sink = self._opened_writer(batch)
        arrays = [_as_arrow(batch[field.name], field.type) for field in sink.schema]
        rows = pa.RecordBatch.from_arrays(arrays, schema=sink.schema)
        sink.write(rows)

    def _finish(self) -> None:
        try:
            self._opened_writer({name: np.empty(0) for name in self._columns}).close()
            if isinstance(self._stream, _CompressedStream):
                self._stream.finish()
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()

    def _opened_writer(self, batch: Mapping[str, Any]) -> _TextWriter | _ParquetSink:
        # The first batch decides whether numbers are float32, so the header cannot be written before it.
        if self._writer is None:
            fields = [pa.field(name, _stored_type(kind, batch[name])) for name, kind in self._columns.items()]
            self._writer = _make_writer(self._format.layout, self._stream, pa.schema(fields))
        return self._writer


def write_table(path: str | Path, columns: Mapping[str, Kind], values: Mapping[str, Any]) -> None:
    """Write one table at once. ``columns`` maps names to kinds; ``values`` has an array for each column.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(f"{folder}/x.jsonl", {"budget": "number", "dropped": "count"},
    ...                 {"budget": [0.5], "dropped": [3]})
    ...     Path(folder, "x.jsonl").read_text()
    '{"budget":0.5,"dropped":3}\\n'
    """
    with TableWriter(path, columns) as writer:
        writer.write(values)


class _TextWriter:
    def __init__(self, stream: Any, schema: pa.Schema, lines: _Lines) -> None:
        self.schema, self._stream, self._lines = schema, stream, lines

    def write(self, rows: pa.RecordBatch) -> None:
        for start in range(0, rows.num_rows, _TEXT_ROWS):
            part = rows.slice(start, _TEXT_ROWS)
            self._stream.write(self._lines(dict(zip(part.schema.names, part.columns, strict=True))))

    def close(self) -> None:
        """Do nothing: all rows have been written, and the caller closes the stream."""

    def abandon(self) -> None:
        """Do nothing: all rows have been written."""


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
        # pyarrow writes the footer even if the writer is only garbage collected, so discard the footer.
        self._stream.target = None
        self._writer.close()


def _make_writer(layout: Layout, stream: Any, schema: pa.Schema) -> _TextWriter | _ParquetSink:
    if layout == "parquet":
        return _ParquetSink(stream, schema)
    if layout == "csv":
        header = {str(place): pa.array([name]) for place, name in enumerate(schema.names)}
        stream.write(csv_lines(header))
    return _TextWriter(stream, schema, csv_lines if layout == "csv" else json_lines)


class _Unclosable:
    """A stream that leaves ``target`` open when pyarrow closes it. Without a target, it discards data."""

    def __init__(self, target: Any) -> None:
        self.target, self.closed = target, False

    def write(self, data: Any) -> None:
        if self.target is not None:
            self.target.write(data)

    def flush(self) -> None:
        """Do nothing: the caller flushes the target."""

    def close(self) -> None:
        self.closed = True


class _CompressedStream:
    """A stream that compresses the data written to it. ``finish`` writes the end of the compressed data."""

    def __init__(self, stream: IO[bytes], compression: Compression) -> None:
        self._stream = stream
        if compression == "gzip":
            self._compressor: Any = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        else:
            self._compressor = zstandard.ZstdCompressor().compressobj()

    def write(self, data: Any) -> None:
        self._stream.write(self._compressor.compress(bytes(data)))

    def finish(self) -> None:
        self._stream.write(self._compressor.flush())


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


def csv_lines(columns: Mapping[str, pa.Array]) -> bytes:
    """Return one line of cells per row, quoted only if necessary. A missing value is an empty cell.

    >>> csv_lines({"item": pa.array(["a", 'b "c", d']), "interval": pa.array([0.1, float("inf")])})
    b'a,0.1\\n"b ""c"", d",inf\\n'
    """
    parts: list[pa.Array | pa.Scalar] = []
    for place, cells in enumerate(columns.values()):
        parts += [_scalar("," if place else ""), pc.fill_null(_csv_cells(cells), "")]
    return _join([*parts, _scalar("\n")])


def json_lines(columns: Mapping[str, pa.Array]) -> bytes:
    """Return one JSON object per row, each on its own line. Infinite and missing numbers are null.

    >>> json_lines({"item": pa.array(["a", "new\\nline"]), "interval": pa.array([0.5, float("inf")])})
    b'{"item":"a","interval":0.5}\\n{"item":"new\\\\nline","interval":null}\\n'
    """
    parts: list[pa.Array | pa.Scalar] = []
    for place, (name, cells) in enumerate(columns.items()):
        opening = "," if place else "{"
        parts += [_scalar(f"{opening}{json.dumps(name, ensure_ascii=False)}:"), _json_cells(cells)]
    return _join([*parts, _scalar("}\n")])


def _csv_cells(cells: pa.Array) -> pa.Array:
    if not is_text(cells.type):
        return cells.cast(pa.large_string())
    texts = cells.cast(pa.large_string())
    return _escape_matching(texts, _CSV_SPECIAL, lambda text: '"' + text.replace('"', '""') + '"')


def _json_cells(cells: pa.Array) -> pa.Array:
    texts = cells.cast(pa.large_string())
    if is_text(cells.type):
        # Only the few texts with special characters are escaped one by one; quotes are added to all at once.
        inner = _escape_matching(
            texts, _JSON_SPECIAL, lambda text: json.dumps(text, ensure_ascii=False)[1:-1]
        )
        texts = pc.binary_join_element_wise(_scalar('"'), inner, _scalar('"'), _scalar(""))
    elif pa.types.is_floating(cells.type):
        texts = pc.if_else(pc.is_finite(cells), texts, _scalar("null"))
    return pc.fill_null(texts, "null")


def _escape_matching(texts: pa.Array, special: str, escape: Callable[[str], str]) -> pa.Array:
    """Replace each text that matches ``special`` by ``escape(text)``."""
    found = pc.fill_null(pc.match_substring_regex(texts, special), False)
    if not pc.any(found).as_py():
        return texts
    escaped = [escape(text) for text in texts.filter(found).to_pylist()]
    return pc.replace_with_mask(texts, found, pa.array(escaped, pa.large_string()))


def _join(parts: Sequence[pa.Array | pa.Scalar]) -> bytes:
    """Join ``parts`` row by row, and return the texts of all rows one after the other."""
    lines = pc.binary_join_element_wise(*parts, _scalar(""))
    _, offsets, data = lines.buffers()
    if data is None:
        return b""
    bounds = pa.Array.from_buffers(pa.int64(), len(lines) + 1, [None, offsets], offset=lines.offset)
    first, last = bounds[0].as_py(), bounds[len(lines)].as_py()
    return bytes(data.slice(first, last - first))


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
