"""Encode rows as CSV or JSONL with Python alone, with the same bytes as ``arrow/sinks.py``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from afresh.tables.columns import Kind
from afresh.tables.formats import Layout
from afresh.tables.text_columns import Texts

_CSV_SPECIAL = re.compile(r'[",\r\n]')
_DIGITS_BEFORE_POINT = 10  # a larger number is written with an exponent
_ZEROS_AFTER_POINT = 6  # a smaller one too


class PlainSink:
    """Writes CSV or JSONL."""

    def __init__(self, layout: Layout, stream: Any, columns: Mapping[str, Kind]) -> None:
        self._stream, self._columns = stream, dict(columns)
        self._is_csv = layout == "csv"
        if self._is_csv:
            stream.write(csv_lines([[name] for name in _quoted(list(columns))]))

    def write(self, batch: Mapping[str, Any]) -> None:
        cells = {name: cell_texts(kind, batch[name], self._is_csv) for name, kind in self._columns.items()}
        self._stream.write(csv_lines(cells.values()) if self._is_csv else json_lines(cells))

    def close(self) -> None:
        """Do nothing: all rows have been written, and the caller closes the stream."""

    def abandon(self) -> None:
        """Do nothing: all rows have been written."""


def csv_lines(columns: Iterable[Sequence[str]]) -> bytes:
    """Return one line per row. ``columns`` are the cells of each column.

    >>> csv_lines([["a", "b"], ["0.1", "inf"]])
    b'a,0.1\\nb,inf\\n'
    """
    return "".join([f"{line}\n" for line in map(",".join, zip(*columns, strict=True))]).encode()


def json_lines(columns: Mapping[str, Sequence[str]]) -> bytes:
    """Return one JSON object per row, each on its own line. ``columns`` are the cells of each column.

    >>> json_lines({"item": ['"a"', '"b"'], "rate": ["1", "null"]})
    b'{"item":"a","rate":1}\\n{"item":"b","rate":null}\\n'
    """
    names = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in columns]
    row = "{" + ",".join(f"{name}:%s" for name in names) + "}\n"
    return "".join(map(row.__mod__, zip(*columns.values(), strict=True))).encode()


def cell_texts(kind: Kind, values: Any, is_csv: bool) -> list[str]:
    """Return the cells of a column as they are written.

    >>> cell_texts("text", ["a", 'b "c", d', None], is_csv=True)
    ['a', '"b ""c"", d"', '']
    >>> cell_texts("number", np.array([0.5, np.inf]), is_csv=False)
    ['0.5', 'null']
    """
    none = "" if is_csv else "null"
    if kind == "text":
        texts = _as_list(values)
        if not is_csv:
            return [json.dumps(text, ensure_ascii=False) for text in texts]
        return _quoted(["" if text is None else text for text in texts])
    if kind == "flag":
        words = {True: "true", False: "false", None: none}
        return [words[value] for value in _as_list(values)]
    if kind == "count":
        return [none if value is None else str(int(value)) for value in _as_list(values)]
    if getattr(values, "dtype", None) == np.float32:  # its shortest form has fewer digits
        return [none if value is np.ma.masked else _number(str(value), is_csv) for value in values]
    return [none if value is None else _number(repr(float(value)), is_csv) for value in _as_list(values)]


def _as_list(values: Texts | Any) -> list[Any]:
    """Return the values as Python objects; None stands for those that are masked."""
    found: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    return found


def _quoted(texts: list[str]) -> list[str]:
    if not _CSV_SPECIAL.search("".join(texts)):
        return texts
    return ['"' + text.replace('"', '""') + '"' if _CSV_SPECIAL.search(text) else text for text in texts]


def _number(text: str, is_csv: bool) -> str:
    if "n" in text and not is_csv:  # inf or nan
        return "null"
    return plain_number(text)


def plain_number(text: str) -> str:
    """Return the shortest form of a number, given Python's.

    >>> [plain_number(repr(number)) for number in (1.0, 0.25, 1e-05, 1.5e-07, 12345678901.0, -2e+22)]
    ['1', '0.25', '0.00001', '1.5e-7', '1.2345678901e+10', '-2e+22']
    """
    if text.find(".") <= _DIGITS_BEFORE_POINT and "e" not in text:
        return text.removesuffix(".0")  # the usual case, and inf and nan
    sign, size = ("-", text[1:]) if text.startswith("-") else ("", text)
    mantissa, _, exponent = size.partition("e")
    whole, _, fraction = mantissa.partition(".")
    if whole == "0":
        return text
    power = len(whole) - 1 + int(exponent or 0)
    digits = (whole + fraction).rstrip("0")
    if power >= _DIGITS_BEFORE_POINT or power < -_ZEROS_AFTER_POINT:
        return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{power:+d}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole, fraction = digits[: power + 1].ljust(power + 1, "0"), digits[power + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole
