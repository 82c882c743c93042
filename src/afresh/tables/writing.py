"""Write tables as CSV, Parquet or JSONL, at once or in batches of rows, completely or not at all.

A number is written in the shortest form that is read as the same number. Infinity is ``inf`` in CSV and null
in JSON. None in a list, or a masked value of a NumPy array, is an empty cell in CSV and null in JSON."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

import numpy as np

from afresh.tables.atomic_output import open_output
from afresh.tables.backend import has_pyarrow, require_pyarrow
from afresh.tables.columns import Kind
from afresh.tables.formats import STANDARD_STREAM, Compression, Format, Layout, format_of
from afresh.tables.plain.sink import PlainSink
from afresh.values.zstd_frames import zstd


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
        self._sink: _Sink | None = None
        self._stream: Any = None

    def __enter__(self) -> Self:
        """Open the file. Raise ``OutputError`` if its folder is missing or not writable."""
        if self._format.layout == "parquet":
            require_pyarrow(f"{self._path}: Parquet")
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
        self._opened_sink(batch).write(batch)

    def _finish(self) -> None:
        try:
            self._opened_sink({name: np.empty(0) for name in self._columns}).close()
            if isinstance(self._stream, _CompressedStream):
                self._stream.finish()
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        if self._sink is not None:
            self._sink.abandon()

    def _opened_sink(self, batch: Mapping[str, Any]) -> _Sink:
        # The first batch decides whether numbers are float32, so the header cannot be written before it.
        if self._sink is None:
            self._sink = _open_sink(self._format.layout, self._stream, self._columns, batch)
        return self._sink


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


class _Sink(Protocol):
    """Encodes batches of rows and writes them to a stream, which the caller closes."""

    def write(self, batch: Mapping[str, Any]) -> None: ...

    def close(self) -> None:
        """Write what belongs at the end."""
        ...

    def abandon(self) -> None:
        """Write nothing more, whatever happens."""
        ...


def _open_sink(
    layout: Layout, stream: Any, columns: Mapping[str, Kind], first_batch: Mapping[str, Any]
) -> _Sink:
    """Return what encodes rows in this layout, after the header is written, if it has one."""
    if not has_pyarrow():
        return PlainSink(layout, stream, columns)
    from afresh.tables.arrow.sinks import ArrowTextSink, ParquetSink, stored_schema

    schema = stored_schema(columns, first_batch)
    return ParquetSink(stream, schema) if layout == "parquet" else ArrowTextSink(layout, stream, schema)


class _CompressedStream:
    """A stream that compresses the data written to it. ``finish`` writes the end of the compressed data."""

    def __init__(self, stream: IO[bytes], compression: Compression) -> None:
        self._stream = stream
        if compression == "gzip":
            self._compressor: Any = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        else:
            self._compressor = zstd.ZstdCompressor()

    def write(self, data: Any) -> None:
        self._stream.write(self._compressor.compress(bytes(data)))

    def finish(self) -> None:
        self._stream.write(self._compressor.flush())
