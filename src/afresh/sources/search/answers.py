"""Reads records from the body of an answer, by JSON paths for total, rows, key and fields; pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from afresh.sources.change_detection import compile_json_path
from afresh.sources.search.search_server import SearchRecord
from afresh.sources.search.settings import SearchSettings
from afresh.sources.sql.errors import one_line

_MOST_NAMES = 8  # keys of an answer that are shown if a path is wrong
_LONGEST = 60


class AnswerError(Exception):
    """An answer cannot be read; the text says why. Never leaves ``sources``."""


class AnswerReader:
    """Reads answers by the paths of the settings.

    >>> settings = SearchSettings(name="s", relation="r.csv", key="id", keywords="title",
    ...     server="http://a.test/?q={query}&p={page}", total="count", rows="data",
    ...     fields={"price": "absolute"})
    >>> read = AnswerReader(settings)
    >>> read.page(b'{"count": "1", "data": [{"id": 7, "price": 2.5}]}', "application/json")
    ((SearchRecord(key='7', fields={'price': 2.5}),), 1)
    >>> read.page(b"<html>", "text/html")
    Traceback (most recent call last):
    afresh.sources.search.answers.AnswerError: HTML where JSON was due: a captcha, a log-in or an error page
    """

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._total = _finder(settings.total)
        self._rows = _finder(settings.rows)
        self._key = _finder(settings.path_of(settings.key))
        self._fields: Mapping[str, Callable[[Any], Any]] = {
            name: _finder(settings.path_of(name)) for name in settings.fields
        }

    def page(self, body: bytes, media_type: str) -> tuple[tuple[SearchRecord, ...], int | None]:
        """Return the records of a page, and the total that it reports."""
        answer = _parse(body, media_type)
        rows = self._rows(answer)
        if not isinstance(rows, list):
            raise AnswerError(
                f"rows: {self._settings.rows!r} is no list in the answer, {_describe_keys(answer)}"
            )
        return tuple(self._record(row) for row in rows), self._read_total(answer)

    def _read_total(self, answer: Any) -> int | None:
        """Return the total; None if there is none, or it is not a number of results."""
        total = self._total(answer)
        if isinstance(total, str) and total.strip().isdecimal():
            total = int(total)
        return int(total) if _is_count(total) else None

    def record(self, body: bytes, media_type: str) -> tuple[SearchRecord, ...]:
        """Return the record of a look-up, which comes alone or as the only row; nothing if it is empty."""
        answer = _parse(body, media_type)
        rows = self._rows(answer) if isinstance(answer, dict) else answer
        if isinstance(rows, list):
            return tuple(self._record(row) for row in rows)
        return (self._record(answer),) if answer else ()

    def _record(self, row: object) -> SearchRecord:
        key = self._key(row)
        if not isinstance(key, str | int | float) or isinstance(key, bool) or key == "":
            path = self._settings.path_of(self._settings.key)
            raise AnswerError(f"key_path: {path} is no text or number in a row, {_describe_keys(row)}")
        fields = {name: find(row) for name, find in self._fields.items()}
        if not fields and isinstance(row, dict):
            fields = row
        return SearchRecord(str(key), fields)


def _finder(path: str) -> Callable[[Any], Any]:
    if not path:
        return lambda _: None
    search = compile_json_path("path", path)

    def find(answer: Any) -> Any:
        try:
            return search(answer)
        except Exception as error:  # noqa: BLE001  (jmespath raises many kinds for data of the wrong type)
            raise AnswerError(f"{path!r} does not suit the answer: {one_line(str(error))}") from None

    return find


def _parse(body: bytes, media_type: str) -> Any:
    if "html" in media_type.lower() or body.lstrip()[:1] == b"<":
        raise AnswerError("HTML where JSON was due: a captcha, a log-in or an error page")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        start = body[:_LONGEST].decode("utf-8", "replace")
        raise AnswerError(f"not JSON: it begins with {start!r}") from None


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15


def _describe_keys(value: object) -> str:
    if isinstance(value, dict):
        names = list(value)[:_MOST_NAMES]
        return f"which has {', '.join(map(str, names))}" if names else "which is empty"
    return f"which is a {type(value).__name__}"
