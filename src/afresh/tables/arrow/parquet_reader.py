"""Read the rows of a Parquet file, one row group at a time, and only the columns that are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from afresh.tables.arrow.arrow_cells import ArrowBatch
from afresh.tables.arrow.errors import translate_arrow_errors
from afresh.tables.columns import Column, Kind
from afresh.tables.input_file import InputFile
from afresh.tables.object_errors import explain, refusal_of
from afresh.values.errors import InputError
from afresh.values.formatting import one_line


class ParquetReader:
    """Reads the names of the columns when it is created, and the rows in ``batches``."""

    def __init__(self, source: InputFile, batch_rows: int) -> None:
        self._source, self._batch_rows = source, batch_rows
        try:
            self._file = pq.ParquetFile(source.random_access(), pre_buffer=True)
        except (pa.ArrowException, OSError) as error:
            if refusal_of(error):
                raise InputError(f"cannot be read: {explain(error)}", path=source.name) from None
            # A truncated file lacks its footer, which ends with magic bytes.
            reason = "half-written?" if "magic" in str(error) else one_line(error)
            raise InputError(f"is not a whole Parquet file ({reason})", path=source.name) from None
        self.names: list[str] = list(self._file.schema_arrow.names)

    def batches(self, wanted: Sequence[Column]) -> Iterator[tuple[ArrowBatch, float]]:
        """Yield tuples (batch of the ``wanted`` columns, share of the rows read so far, from 0 to 1)."""
        for column in wanted:
            self._refuse_wrong_type(column)
        done, total = 0, max(self._file.metadata.num_rows, 1)
        names = [column.name for column in wanted]
        with translate_arrow_errors(self._source.name):
            for batch in self._file.iter_batches(batch_size=self._batch_rows, columns=names):
                done += batch.num_rows
                yield ArrowBatch(batch.select(names)), done / total

    def line_of(self, row: int) -> int:  # noqa: ARG002 (the readers' common shape)
        """Return 0, because a Parquet file has no lines."""
        return 0

    def _refuse_wrong_type(self, column: Column) -> None:
        kind = self._file.schema_arrow.field(column.name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if not (_fits(column.kind, kind) or pa.types.is_null(kind)):
            problem = f"is of type {kind}: must be {column.requirement}"
            raise InputError(problem, path=self._source.name, column=column.name)


def _fits(wanted: Kind, kind: pa.DataType) -> bool:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    moment = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    fitting: dict[Kind, bool] = {
        "text": text or pa.types.is_integer(kind),
        "any": not pa.types.is_nested(kind),
        "number": number,
        "count": number,
        "time": number or moment or text,
        "flag": pa.types.is_boolean(kind) or pa.types.is_integer(kind) or text,
    }
    return bool(fitting[wanted])
