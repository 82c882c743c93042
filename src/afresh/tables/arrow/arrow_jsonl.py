"""Read the rows of a JSONL file with pyarrow, with the types of the first object.

If a later line has other types (a text instead of a number) or is malformed, Python's json module reads the
remaining lines and reports what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
import pyarrow.json as pa_json

from afresh.tables.arrow.arrow_cells import ArrowBatch
from afresh.tables.columns import Column
from afresh.tables.input_file import translate_errors
from afresh.tables.jsonl_file import JsonlFile

_BLOCK_BYTES = 4 << 20


class ArrowJsonlReader(JsonlFile):
    """Reads the first object of a JSONL file when it is created, and the rows in ``batches``."""

    def batches(self, wanted: Sequence[Column]) -> Iterator[tuple[ArrowBatch, float]]:
        """Yield tuples (batch of the ``wanted`` columns, share of the file read so far, from 0 to 1)."""
        names, done = [column.name for column in wanted], 0
        try:
            with translate_errors(self.source.name), closing(self.source.stream()) as stream:
                for batch in self._open(stream, wanted):
                    yield ArrowBatch(batch.select(names)), self.source.share_read()
                    done += batch.num_rows
        except pa.ArrowInvalid:
            for texts, share in self.plain_batches(wanted, done):
                cells = [pa.array(texts[name], pa.large_string()) for name in names]
                yield ArrowBatch(pa.RecordBatch.from_arrays(cells, names=names)), share

    def _open(self, stream: object, wanted: Sequence[Column]) -> Iterator[pa.RecordBatch]:
        first = self.first
        schema = pa.schema([(column.name, _type_of(column, first.get(column.name))) for column in wanted])
        return iter(
            pa_json.open_json(
                stream,
                read_options=pa_json.ReadOptions(block_size=_BLOCK_BYTES),
                parse_options=pa_json.ParseOptions(
                    explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="ignore"
                ),
            )
        )


def _type_of(column: Column, first: object) -> pa.DataType:
    """Return the pyarrow type of a column. ``first`` is its value in the first object of the file."""
    if isinstance(first, bool) and column.kind == "flag":
        return pa.bool_()
    if isinstance(first, str) or column.kind == "any":  # pyarrow then refuses numbers; Python reads them
        return pa.string()
    if isinstance(first, int) and not isinstance(first, bool) and column.kind in ("text", "flag"):
        return pa.int64()
    return pa.string() if column.kind in ("text", "flag") else pa.float64()
