"""Encode rows with pyarrow as CSV, JSONL or Parquet. CSV and JSONL are encoded column by column."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from afresh.tables.arrow.arrow_cells import is_text
from afresh.tables.arrow.arrow_texts import ArrowTexts, arrow_array
from afresh.tables.columns import Kind
from afresh.tables.formats import Layout
from afresh.tables.text_columns import ListedTexts

_TYPES: dict[Kind, pa.DataType] = {
    "text": pa.large_string(),
    "number": pa.float64(),
    "count": pa.int64(),
    "time": pa.float64(),
    "flag": pa.bool_(),
}
_ROW_GROUP_ROWS = 1 << 20
_TEXT_ROWS = 1 << 16  # rows encoded at once
_CSV_SPECIAL = r'[",\r\n]'
_JSON_SPECIAL = r'["\\\x00-\x1f\x7f]'


class ArrowTextSink:
    """Writes CSV or JSONL."""

    def __init__(self, layout: Layout, stream: Any, schema: pa.Schema) -> None:
        self._schema, self._stream = schema, stream
        self._lines = csv_lines if layout == "csv" else json_lines
        if layout == "csv":
            stream.write(csv_lines({str(place): pa.array([name]) for place, name in enumerate(schema.names)}))

    def write(self, batch: Mapping[str, Any]) -> None:
        rows = _as_rows(batch, self._schema)
        for start in range(0, rows.num_rows, _TEXT_ROWS):
            part = rows.slice(start, _TEXT_ROWS)
            self._stream.write(self._lines(dict(zip(part.schema.names, part.columns, strict=True))))

    def close(self) -> None:
        """Do nothing: all rows have been written, and the caller closes the stream."""

    def abandon(self) -> None:
        """Do nothing: all rows have been written."""


class ParquetSink:
    """Writes Parquet."""

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        self._schema = schema
        self._stream = _Unclosable(stream)
        self._writer = pq.ParquetWriter(pa.PythonFile(self._stream, mode="w"), schema, compression="zstd")

    def write(self, batch: Mapping[str, Any]) -> None:
        self._writer.write_batch(_as_rows(batch, self._schema), row_group_size=_ROW_GROUP_ROWS)

    def close(self) -> None:
        self._writer.close()

    def abandon(self) -> None:
        # pyarrow writes the footer even if the writer is only garbage collected, so discard the footer.
        self._stream.target = None
        self._writer.close()


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


def stored_schema(columns: Mapping[str, Kind], first_batch: Mapping[str, Any]) -> pa.Schema:
    """Return the types in which the columns are stored. The first batch says which numbers are float32."""
    return pa.schema(
        [pa.field(name, _stored_type(kind, first_batch[name])) for name, kind in columns.items()]
    )


def _as_rows(batch: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [_as_arrow(batch[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _stored_type(kind: Kind, values: Any) -> pa.DataType:
    if kind == "number" and getattr(values, "dtype", None) == np.float32:
        return pa.float32()
    return _TYPES[kind]


def _as_arrow(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, ArrowTexts | ListedTexts):
        values = arrow_array(values)
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
