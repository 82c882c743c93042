"""Read the rows of a CSV file with pyarrow, with every cell as text.

Python's csv module is used only to find what is wrong, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
import pyarrow.csv as pa_csv

from afresh.tables.arrow.arrow_cells import ArrowBatch
from afresh.tables.arrow.errors import translate_arrow_errors
from afresh.tables.columns import Column
from afresh.tables.csv_file import CsvFile
from afresh.values.errors import InputError


class ArrowCsvReader(CsvFile):
    """Reads the header of a CSV file when it is created, and the rows in ``batches``."""

    def batches(self, wanted: Sequence[Column]) -> Iterator[tuple[ArrowBatch, float]]:
        """Yield tuples (batch of the ``wanted`` columns as text, share of the file read so far, 0 to 1)."""
        raw = [self.raw_names[self.names.index(column.name)] for column in wanted]
        names = [column.name for column in wanted]
        try:
            with translate_arrow_errors(self.source.name), closing(self.source.stream()) as stream:
                for batch in self._open(stream, raw):
                    yield ArrowBatch(batch.rename_columns(names)), self.source.share_read()
        except InputError as error:
            if self.is_header_only():
                return
            raise self.find_fault() or error from None

    def _open(self, stream: object, raw_names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        # Otherwise pyarrow replaces the handlers of SIGINT and SIGTERM while it opens a file.
        pa.enable_signal_handlers(False)
        return iter(
            pa_csv.open_csv(
                stream,
                read_options=pa_csv.ReadOptions(block_size=self.block_bytes),
                parse_options=pa_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    include_columns=list(raw_names),
                    column_types=dict.fromkeys(raw_names, pa.large_string()),
                    strings_can_be_null=False,
                ),
            )
        )
