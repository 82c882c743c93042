"""The header of a CSV file, and what is wrong with its rows.

A byte-order mark, CRLF, quoted commas and newlines, blank lines and spaces around the names in the header are
accepted. Semicolons or tabs are taken as separators if the header then contains more known columns. The rows
are read by ``arrow/arrow_csv.py`` or ``plain/plain_csv.py``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from afresh.tables.columns import Column
from afresh.tables.input_file import InputFile, translate_errors
from afresh.values.errors import InputError
from afresh.values.formatting import one_line

_BLOCK_BYTES, _LARGE_BLOCK_BYTES = 4 << 20, 64 << 20  # a row may not be larger than a block
_HEADER_CHARACTERS = 120_000  # below the longest cell that Python's csv module accepts
_CSV_PROBLEMS = {  # keys: the messages of Python's csv module
    "unexpected end of data": "a quote opened here is never closed",
    "field larger than field limit": "a cell is very long, or a quote opened here is never closed",
}
_SEPARATORS = (",", ";", "\t")


class CsvFile:
    """Reads the header of a CSV file when it is created."""

    def __init__(self, source: InputFile, columns: Sequence[Column]) -> None:
        self.source = source
        head = self._read_head()
        headers = {separator: _first_row(head, separator) for separator in _SEPARATORS}
        if not headers[","]:
            wanted = ", ".join(column.name for column in columns if column.required)
            hint = f" with {wanted}" if wanted else ""
            raise InputError(f"is empty: needs a header line{hint}", path=source.name)
        large = any(column.kind == "any" for column in columns)
        self.block_bytes = _LARGE_BLOCK_BYTES if large else _BLOCK_BYTES
        known = {column.name for column in columns}
        # The comma comes first, so it wins a tie.
        self.separator = max(_SEPARATORS, key=lambda each: len(known & set(map(str.strip, headers[each]))))
        self.raw_names = headers[self.separator]
        self.names = [name.strip() for name in self.raw_names]

    def line_of(self, row: int) -> int:
        """Return the line on which data row ``row`` starts (both count from 1), or 0 if it is unknown."""
        if self._has_one_line_per_row():
            return row + 1
        try:
            return next((line for number, line, _ in self._slow_rows() if number == row), 0)
        except InputError:  # the file is malformed before that row
            return 0

    def text(self, errors: str) -> io.TextIOWrapper:
        return io.TextIOWrapper(self.source.stream(), encoding="utf-8-sig", errors=errors, newline="")

    def _read_head(self) -> str:
        try:
            with translate_errors(self.source.name), self.text("strict") as text:
                return text.read(_HEADER_CHARACTERS)
        except UnicodeDecodeError:
            with translate_errors(self.source.name), self.text("surrogateescape") as text:
                return text.read(_HEADER_CHARACTERS)

    def _slow_rows(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yield tuples (row number, first line, cells), even if cells are not UTF-8. Row 0 is the header."""
        with translate_errors(self.source.name), self.text("surrogateescape") as text:
            rows = csv.reader(text, delimiter=self.separator, strict=True)
            number, line = 0, 1
            try:
                for cells in rows:
                    if cells:
                        yield number, line, cells
                        number += 1
                    line = rows.line_num + 1
            except csv.Error as error:
                problem = _CSV_PROBLEMS.get(str(error).split(" (")[0], one_line(error))
                raise InputError(problem, path=self.source.name, row=number, line=line) from None

    def find_fault(self) -> InputError | None:
        """Return the first error that Python's csv module finds in the file, or None."""
        expected = len(self.names)
        try:
            for number, line, cells in self._slow_rows():
                where: dict[str, Any] = {"path": self.source.name, "row": number, "line": line}
                if len(cells) != expected:
                    problem = f"has {len(cells)} cell{'s' * (len(cells) != 1)}, the header has {expected}"
                    return InputError(problem, **where)
                for name, cell in zip(self.names, cells, strict=True):
                    if any("\ud800" <= letter <= "\udfff" for letter in cell):  # a byte that is not UTF-8
                        return InputError("is not UTF-8: save the file as UTF-8", **where, column=name)
        except InputError as error:
            return error
        return None

    def is_header_only(self) -> bool:
        # pyarrow refuses a header without a newline, although it is a complete table without rows.
        with translate_errors(self.source.name), self.source.stream() as stream:
            head = stream.read(4 * _HEADER_CHARACTERS + 3)
            return len(head) < 4 * _HEADER_CHARACTERS and len(head.strip().splitlines()) == 1

    def _has_one_line_per_row(self) -> bool:
        """Return whether the file has no quotes and no blank lines, so that row n is on line n + 1."""
        last = b""
        with translate_errors(self.source.name), self.source.stream() as stream:
            while block := stream.read(_BLOCK_BYTES):
                block = last + block
                if any(mark in block for mark in (b'"', b"\n\n", b"\n\r\n")):
                    return False
                last = block[-2:]
        return True


def _first_row(head: str, separator: str) -> list[str]:
    try:
        rows = csv.reader(io.StringIO(head, newline=""), delimiter=separator)
        return next((row for row in rows if row), [])
    except csv.Error:
        return []
