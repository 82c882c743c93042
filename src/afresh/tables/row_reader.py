"""Chooses what reads the rows of a file: pyarrow if it is installed, or else Python itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from afresh.tables.backend import has_pyarrow, require_pyarrow
from afresh.tables.cells import CellBatch
from afresh.tables.columns import Column
from afresh.tables.input_file import InputFile
from afresh.tables.plain.plain_csv import PlainCsvReader
from afresh.tables.plain.plain_jsonl import PlainJsonlReader


class RowReader(Protocol):
    """Reads a file: ``names`` are its columns, as far as its beginning tells them."""

    names: list[str]

    def batches(self, wanted: Sequence[Column]) -> Iterator[tuple[CellBatch, float]]:
        """Yield tuples (batch of the ``wanted`` columns, share of the file read so far, from 0 to 1)."""
        ...

    def line_of(self, row: int) -> int:
        """Return the line of data row ``row`` (both count from 1), or 0 if it has none or it is unknown."""
        ...


def open_rows(source: InputFile, columns: Sequence[Column], batch_rows: int) -> RowReader:
    """Return the reader for the layout of ``source``; raise ``UsageError`` if it needs pyarrow, which is not
    installed."""
    if source.layout == "parquet":
        require_pyarrow(f"{source.name}: Parquet")
        from afresh.tables.arrow.parquet_reader import ParquetReader

        return ParquetReader(source, batch_rows)
    if not has_pyarrow():
        return PlainJsonlReader(source) if source.layout == "jsonl" else PlainCsvReader(source, columns)
    from afresh.tables.arrow.arrow_csv import ArrowCsvReader
    from afresh.tables.arrow.arrow_jsonl import ArrowJsonlReader

    return ArrowJsonlReader(source) if source.layout == "jsonl" else ArrowCsvReader(source, columns)
