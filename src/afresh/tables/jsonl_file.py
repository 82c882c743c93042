"""Read the rows of a JSONL file, which has one JSON object per line.

Python's json module reads the lines one by one. With pyarrow, ``arrow/arrow_jsonl.py`` is faster."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from afresh.tables.cells import NOT_UTF8, format_value
from afresh.tables.columns import Column
from afresh.tables.input_file import InputFile, translate_errors
from afresh.values.errors import InputError

_BATCH_ROWS = 50_000


class JsonlFile:
    """Reads the first object of a JSONL file when it is created, and the rows in ``batches``."""

    def __init__(self, source: InputFile) -> None:
        self.source = source
        first = next((cells for _, _, cells in self._rows()), None)
        if first is None:
            raise InputError("is empty: needs one JSON object per line", path=source.name)
        self.first = first  # the first object of the file
        self.names = list(first)

    def line_of(self, row: int) -> int:
        """Return the line of the file that contains row ``row``; both count from 1."""
        return next((line for number, line, _ in self._lines() if number == row), row)

    def plain_batches(
        self, wanted: Sequence[Column], skip: int = 0
    ) -> Iterator[tuple[dict[str, list[str | None]], float]]:
        """Yield tuples (text of each cell of the ``wanted`` columns, share of the file read so far), without
        the first ``skip`` rows. None stands for null and for what an object does not have."""
        rows = islice(self._rows(), skip, None)
        while chunk := list(islice(rows, _BATCH_ROWS)):
            texts = {
                column.name: [self._as_text(row, line, column, got) for row, line, got in chunk]
                for column in wanted
            }
            yield texts, self.source.share_read()

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield tuples (row number, line number, bytes) for each line that is not blank."""
        row = 0
        with translate_errors(self.source.name), io.BufferedReader(self.source.stream()) as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    row += 1
                    yield row, number, line

    def _rows(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        for row, number, line in self._lines():
            try:
                value = json.loads(line.decode("utf-8-sig"), object_pairs_hook=_refuse_double_keys)
            except UnicodeDecodeError:
                raise self._fault(NOT_UTF8, row, number, _column_with_bytes(line)) from None
            except json.JSONDecodeError as error:
                cut = "" if line.endswith(b"\n") else " (half-written?)"
                reason = f"{error.msg.removesuffix(' at')} at character {error.pos + 1}{cut}"
                raise self._fault(f"is not a JSON object: {reason}", row, number) from None
            except (_DoubleKeyError, RecursionError) as error:
                raise self._fault(f"is not a JSON object: {error}", row, number) from None
            except ValueError:  # Python reads whole numbers of up to 4,300 digits
                raise self._fault("has a number with too many digits", row, number) from None
            if not isinstance(value, dict):
                raise self._fault(f"is {format_value(json.dumps(value))}: must be a JSON object", row, number)
            yield row, number, value

    def _as_text(self, row: int, line: int, column: Column, cells: dict[str, Any]) -> str | None:
        value = cells.get(column.name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (dict, list)) and column.kind != "any":
            problem = f"is {format_value(json.dumps(value))}: must be one value"
            raise self._fault(problem, row, line, column.name)
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        return repr(value) if plain else json.dumps(value, ensure_ascii=False)

    def _fault(self, problem: str, row: int, line: int, column: str | None = None) -> InputError:
        return InputError(problem, path=self.source.name, row=row, line=line, column=column)


def _column_with_bytes(line: bytes) -> str | None:
    """Return the name of the first value of a line that is not UTF-8, or None if it is not known."""
    try:
        found = json.loads(line.decode(errors="surrogateescape"))
        return next(str(name) for name, value in found.items() if not _is_utf8(value) and _is_utf8(name))
    except (ValueError, AttributeError, StopIteration, RecursionError):  # not an object, or not its values
        return None


def _is_utf8(value: object) -> bool:
    return not any("\udc80" <= letter <= "\udcff" for letter in str(value))


class _DoubleKeyError(ValueError):
    pass


def _refuse_double_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        double = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise _DoubleKeyError(f"{double!r} occurs twice")
    return found
