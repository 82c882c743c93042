"""Read the rows of a JSONL file with Python's json module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from afresh.tables.columns import Column
from afresh.tables.jsonl_file import JsonlFile
from afresh.tables.plain.plain_cells import PlainBatch


class PlainJsonlReader(JsonlFile):
    """Reads the first object of a JSONL file when it is created, and the rows in ``batches``."""

    def batches(self, wanted: Sequence[Column]) -> Iterator[tuple[PlainBatch, float]]:
        """Yield tuples (batch of the ``wanted`` columns as text, share of the file read so far, 0 to 1)."""
        for cells, share in self.plain_batches(wanted):
            yield PlainBatch(cells, len(next(iter(cells.values()), ()))), share
