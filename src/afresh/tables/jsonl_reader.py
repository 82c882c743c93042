"""Read the rows of a JSONL file, which has one JSON object per line.

pyarrow reads the file with the types of the first object. If a later line has other types (a text instead of
a number) or is malformed, Python's json module reads the remaining lines and reports what is wrong."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json

from afresh.tables.cells import format_value
from afresh.tables.columns import Column
from afresh.tables.input_file import InputFile, translate_errors
from afresh.values.errors import InputError

_BLOCK_BYTES = 4 << 20
_SLOW_ROWS = 50_000


class JsonlReader:
    """Reads the first object of a JSONL file when it is created, and the rows in ``batches``."""

    def __init__(self, source: InputFile) -> None:
        self._source = source
        first = next((cells for _, _, cells in self._slow_rows()), None)
        if first is None:
            raise InputError("is empty: needs one JSON object per line", path=source.name)
        self._first = first
        self.names = list(self._first)

    def batches(self, wanted: Sequence[Column]) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Yield tuples (batch of the ``wanted`` columns, share of the file read so far, from 0 to 1)."""
        done = 0
        try:
            for batch in self._reader(wanted):
                yield batch.select([column.name for column in wanted]), self._source.share_read()
                done += batch.num_rows
        except pa.ArrowInvalid:
            yield from self._slow_batches(wanted, done)
        except OSError:
            with translate_errors(self._source.name):
                raise

    def line_of(self, row: int) -> int:
        """Return the line of the file that contains row ``row``; both count from 1."""
        return next((line for number, line, _ in self._lines() if number == row), row)

    def _reader(self, wanted: Sequence[Column]) -> Iterator[pa.RecordBatch]:
        first = self._first
        schema = pa.schema([(column.name, _type_of(column, first.get(column.name))) for column in wanted])
        return iter(
            pa_json.open_json(
                self._source.stream(),
                read_options=pa_json.ReadOptions(block_size=_BLOCK_BYTES),
                parse_options=pa_json.ParseOptions(
                    explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="ignore"
                ),
            )
        )

    def _slow_batches(self, wanted: Sequence[Column], skip: int) -> Iterator[tuple[pa.RecordBatch, float]]:
        rows = islice(self._slow_rows(), skip, None)
        names = [column.name for column in wanted]
        while chunk := list(islice(rows, _SLOW_ROWS)):
            texts = [[self._as_text(row, line, column, got) for row, line, got in chunk] for column in wanted]
            cells = [pa.array(column, pa.large_string()) for column in texts]
            yield pa.RecordBatch.from_arrays(cells, names=names), self._source.share_read()

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield tuples (row number, line number, bytes) for each line that is not blank."""
        row = 0
        with translate_errors(self._source.name), io.BufferedReader(self._source.stream()) as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    row += 1
                    yield row, number, line

    def _slow_rows(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        for row, number, line in self._lines():
            try:
                value = json.loads(line.decode("utf-8-sig"), object_pairs_hook=_refuse_double_keys)
            except UnicodeDecodeError:
                raise self._fault("is not UTF-8: save the file as UTF-8", row, number) from None
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
        return InputError(problem, path=self._source.name, row=row, line=line, column=column)


class _DoubleKeyError(ValueError):
    pass


def _refuse_double_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        double = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise _DoubleKeyError(f"{double!r} occurs twice")
    return found


def _type_of(column: Column, first: object) -> pa.DataType:
    """Return the pyarrow type of a column. ``first`` is its value in the first object of the file."""
    if isinstance(first, bool) and column.kind == "flag":
        return pa.bool_()
    if isinstance(first, str) or column.kind == "any":  # pyarrow then refuses numbers; Python reads them
        return pa.string()
    if isinstance(first, int) and not isinstance(first, bool) and column.kind in ("text", "flag"):
        return pa.int64()
    return pa.string() if column.kind in ("text", "flag") else pa.float64()
