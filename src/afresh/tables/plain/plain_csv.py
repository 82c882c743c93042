"""Read the rows of a CSV file with Python's csv module, with every cell as text."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter

from afresh.tables.columns import Column
from afresh.tables.csv_file import CsvFile
from afresh.tables.input_file import translate_errors
from afresh.tables.plain.plain_cells import PlainBatch
from afresh.values.errors import InputError

_BATCH_ROWS = 1 << 16


class PlainCsvReader(CsvFile):
    """Reads the header of a CSV file when it is created, and the rows in ``batches``."""

    def batches(self, wanted: Sequence[Column]) -> Iterator[tuple[PlainBatch, float]]:
        """Yield tuples (batch of the ``wanted`` columns as text, share of the file read so far, 0 to 1)."""
        place = {column.name: self.names.index(column.name) for column in wanted}
        with translate_errors(self.source.name), self.text("surrogateescape") as text:
            lines = csv.reader(text, delimiter=self.separator, strict=True)
            rows = islice(filter(None, lines), 1, None)  # a blank line is no row; the first row is the header
            while chunk := self._next_rows(rows):
                cells = {name: list(map(itemgetter(at), chunk)) for name, at in place.items()}
                yield PlainBatch(cells, len(chunk)), self.source.share_read()

    def _next_rows(self, rows: Iterator[list[str]]) -> list[list[str]]:
        try:
            with _longest_cell(self.block_bytes):
                chunk = list(islice(rows, _BATCH_ROWS))
        except csv.Error as error:
            raise self.find_fault() or InputError(str(error), path=self.source.name) from None
        if any(map(len(self.names).__ne__, map(len, chunk))):
            raise self.find_fault() or InputError("has rows of different lengths", path=self.source.name)
        return chunk


@contextmanager
def _longest_cell(characters: int) -> Iterator[None]:
    """Let the csv module, whose limit is the same for the whole process, read longer cells in the block."""
    before = csv.field_size_limit(characters)
    try:
        yield
    finally:
        csv.field_size_limit(before)
