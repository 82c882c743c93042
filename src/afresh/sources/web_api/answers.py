"""Reads the records, the total and the mark of the next page from an answer in JSON, HTML or XML.

Answers come from servers that are not trusted: these functions are called by the parser pool, within its
limits of time and memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from afresh.sources.change_detection import compile_json_path
from afresh.sources.linear_pattern import compile_pattern
from afresh.sources.sql.connections import KeyedRecord
from afresh.sources.text_decoding import decode
from afresh.sources.web_api.answer_shape import AnswerShape, split_attribute
from afresh.values.formatting import one_line

_MOST_NAMES = 8  # keys of an answer that are shown if a path is wrong
_SHOWN_CHARACTERS = 60
_MOST_OVERLAP = 64  # the texts of all rows may together be this many times as long as the page
_LARGEST_TOTAL = 10**15
SMALL_MARKED_UP_BYTES = 4096  # HTML and XML up to this size cost little, whatever they contain
_COUNT = re.compile(r"\d[\d.,' \u00a0\u202f’]*")


class AnswerError(Exception):
    """An answer cannot be read; the message says why. Code in ``sources`` catches this error."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What an answer contains. See ``RecordsAnswer`` for the meaning of the fields."""

    records: tuple[KeyedRecord, ...] = ()
    total: int | None = None
    next: str = ""
    cursors: tuple[object, ...] = ()
    left_out: tuple[str, ...] = ()
    adoptable: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    problem: str = ""


ReadAnswer: TypeAlias = Callable[[bytes, str, AnswerShape], ParsedAnswer]
"""A function (body, media type, shape) that returns what an answer contains."""


def read_list(body: bytes, media_type: str, shape: AnswerShape) -> ParsedAnswer:
    """Return the records of a list, or the problem with it.

    >>> shape = AnswerShape(total="meta.count", next="meta.next_cursor", key_pattern="W[0-9]+")
    >>> body = b'{"meta": {"count": 3, "next_cursor": "x"}, "results": [{"id": "https://a.test/W1"}]}'
    >>> found = read_list(body, "application/json", shape)
    >>> found.records[0].key, found.total, found.next
    ('W1', 3, 'x')
    >>> read_list(b"busy", "text/plain", AnswerShape()).problem
    "not JSON: it begins with 'busy'"
    """
    try:
        document = _DOCUMENTS[shape.format](body, media_type)
        rows = document.rows(shape.rows)
        if rows is None:
            raise AnswerError(f"rows: {shape.rows!r} is no list in the answer, {document.describe()}")
        return _parsed(document, rows, shape, next_mark=document.text(document.root, shape.next))
    except AnswerError as error:
        return ParsedAnswer(problem=str(error))


def read_record(body: bytes, media_type: str, shape: AnswerShape) -> ParsedAnswer:
    """Return the record in the answer to a look-up, or the problem with it. An empty answer, or one that has
    nothing where ``record`` says, has no record.

    >>> read_record(b'{"message": {"DOI": "10.1/A"}}', "", AnswerShape(record="message", key="DOI")).records
    (KeyedRecord(key='10.1/A', fields={'DOI': '10.1/A'}),)
    """
    try:
        document = _DOCUMENTS[shape.format](body, media_type)
        if shape.record:
            found = document.rows(shape.record)
            rows = document.one(shape.record) if found is None else found
        else:
            found = document.rows(shape.rows)
            rows = document.whole() if found is None else found
        return _parsed(document, rows, shape)
    except AnswerError as error:
        return ParsedAnswer(problem=str(error))


def _parsed(
    document: _Document, rows: Sequence[Any], shape: AnswerShape, next_mark: str = ""
) -> ParsedAnswer:
    records, cursors, left_out = [], [], []
    adoptable: dict[str, Mapping[str, object]] = {}
    for row in rows:
        record = _record(document, row, shape)
        plain = document.plain(row, record)
        if shape.where and not _is_true("where", shape.where, plain):
            left_out.append(record.key)
            continue
        records.append(record)
        if shape.adopt and _is_true("adopt", shape.adopt, plain):
            adoptable[record.key] = {name: document.value(row, at) for name, at in shape.texts.items()}
        if shape.cursor:
            cursors.append(document.value(row, shape.cursor))
    total = _count(document.value(document.root, shape.total), shape.total_pattern)
    return ParsedAnswer(tuple(records), total, next_mark, tuple(cursors), tuple(left_out), adoptable)


def _is_true(setting: str, condition: str, row: Any) -> bool:
    try:
        return bool(compile_json_path(setting, condition)(row))
    except Exception as error:  # noqa: BLE001  (jmespath raises many kinds for data of the wrong type)
        raise AnswerError(f"{setting}: does not fit a row: {one_line(error)}") from None


def _record(document: _Document, row: Any, shape: AnswerShape) -> KeyedRecord:
    key = document.value(row, shape.key)
    if not isinstance(key, str | int | float) or isinstance(key, bool) or key == "":
        raise AnswerError(f"key_path: {shape.key} is no text or number in a row, {document.describe(row)}")
    text = str(key)
    if shape.key_pattern:
        found = compile_pattern("key_pattern", shape.key_pattern).first_group(text)
        if not found:
            raise AnswerError(f"key_pattern: the key {text[:_SHOWN_CHARACTERS]!r} does not match")
        text = found
    text = {"lower": text.lower(), "upper": text.upper()}.get(shape.key_case, text)
    fields = {name: document.value(row, place) for name, place in shape.fields.items()}
    for name, pattern in shape.patterns.items():
        if isinstance(fields.get(name), str | int | float):
            fields[name] = compile_pattern(f"patterns.{name}", pattern).first_group(str(fields[name]))
    return KeyedRecord(text, fields or document.whole_row(row))


def _count(value: Any, pattern: str) -> int | None:
    """Return a total, or None if there is none. In a text, separators of thousands are ignored.

    >>> _count("1,234 results", ""), _count("1-10 of 99", "of ([0-9]+)"), _count("none", "")
    (1234, 99, None)
    """
    if isinstance(value, str):
        text = compile_pattern("total_pattern", pattern).first_group(value) if pattern else value
        found = _COUNT.search(text or "")
        digits = re.sub(r"\D", "", found[0]) if found else ""
        value = int(digits[:16]) if digits else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _LARGEST_TOTAL:
        return None
    return int(value)


class _Document(Protocol):
    """A parsed answer. ``root`` is its beginning, for ``value``."""

    root: Any

    def rows(self, place: str) -> Sequence[Any] | None:
        """Return the rows at a place, or None if there is no list of rows."""

    def one(self, place: str) -> Sequence[Any]:
        """Return the single row at a place, or no row."""

    def whole(self) -> Sequence[Any]:
        """Return the whole answer as one row; no row if it is empty."""

    def value(self, row: Any, place: str) -> Any:
        """Return the value at a place in a row; None for an empty place."""

    def text(self, row: Any, place: str) -> str:
        """Return the text or number at a place, "" if there is none."""

    def whole_row(self, row: Any) -> dict[str, Any]:
        """Return the content of a row whose fields are not named."""

    def plain(self, row: Any, record: KeyedRecord) -> Any:
        """Return what the condition ``where`` is about."""

    def describe(self, row: Any = None) -> str:
        """Return a few words about what the answer, or a row of it, contains."""


class _JsonDocument:
    def __init__(self, body: bytes, media_type: str) -> None:
        if "html" in media_type.lower() or body.lstrip()[:1] == b"<":
            raise AnswerError("HTML instead of JSON: a captcha, a log-in or an error page")
        try:
            self.root = json.loads(body) if body.strip() else None
        except (ValueError, RecursionError):
            start = body[:_SHOWN_CHARACTERS].decode("utf-8", "replace")
            raise AnswerError(f"not JSON: it begins with {start!r}") from None

    def rows(self, place: str) -> Sequence[Any] | None:
        found = self.root if isinstance(self.root, list) and not place else self.value(self.root, place)
        if not isinstance(found, list) and isinstance(self.root, dict) and self.root.get("errors"):
            raise AnswerError(f"the server reports {_first_error(self.root['errors'])}")
        return found if isinstance(found, list) else None

    def one(self, place: str) -> Sequence[Any]:
        found = self.value(self.root, place)
        return (found,) if found else ()

    def whole(self) -> Sequence[Any]:
        if isinstance(self.root, list):
            return self.root
        return (self.root,) if self.root else ()

    def value(self, row: Any, place: str) -> Any:
        if not place:
            return None
        try:
            return compile_json_path("path", place)(row)
        except Exception as error:  # noqa: BLE001  (jmespath raises many kinds for data of the wrong type)
            raise AnswerError(f"{place!r} does not fit the answer: {one_line(error)}") from None

    def text(self, row: Any, place: str) -> str:
        found = self.value(row, place)
        return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else ""

    def whole_row(self, row: Any) -> dict[str, Any]:
        return row if isinstance(row, dict) else {}

    def plain(self, row: Any, record: KeyedRecord) -> Any:
        del record
        return row

    def describe(self, row: Any = None) -> str:
        value = self.root if row is None else row
        if isinstance(value, dict):
            names = list(value)[:_MOST_NAMES]
            return f"which has {', '.join(map(str, names))}" if names else "which is empty"
        return f"which is a {type(value).__name__}"


def _first_error(errors: Any) -> str:
    first = errors[0] if isinstance(errors, list) and errors else errors
    words = first.get("message", first) if isinstance(first, dict) else first
    return repr(str(words)[:200])


@dataclass
class _MarkedUp:
    """What HTML and XML have in common: rows are elements, values are texts."""

    root: Any = None
    _left: int = field(default=0)

    def rows(self, place: str) -> Sequence[Any] | None:
        return self._all(self.root, place)

    def one(self, place: str) -> Sequence[Any]:
        return self._all(self.root, place)[:1]

    def whole(self) -> Sequence[Any]:
        return (self.root,) if self.root is not None else ()

    def value(self, row: Any, place: str) -> Any:
        if not place or row is None:
            return None
        element, attribute = split_attribute(place)
        found = next(iter(self._all(row, element)), None) if element else row
        if found is None:
            return None
        return self._counted(self._attribute(found, attribute) if attribute else self._inner_text(found))

    def _counted(self, text: str | None) -> str | None:
        """Return a text with single blanks. All texts together are not much longer than the page: if rows
        contain each other, they could be as long as its square."""
        if text is None:
            return None
        self._left -= len(text)
        if self._left < 0:
            raise AnswerError(f"rows: they are {_MOST_OVERLAP} times as long as the page: they overlap")
        return " ".join(text.split())

    def text(self, row: Any, place: str) -> str:
        return self.value(row, place) or ""

    def whole_row(self, row: Any) -> dict[str, Any]:
        return {"text": self._counted(self._inner_text(row))}

    def plain(self, row: Any, record: KeyedRecord) -> Any:
        del row
        return dict(record.fields)

    def describe(self, row: Any = None) -> str:
        text = "" if (node := self.root if row is None else row) is None else self._inner_text(node)
        return f"which says {' '.join(text.split())[:_SHOWN_CHARACTERS]!r}"

    def _all(self, node: Any, place: str) -> Sequence[Any]:
        raise NotImplementedError

    def _attribute(self, node: Any, name: str) -> str | None:
        raise NotImplementedError

    def _inner_text(self, node: Any) -> str:
        raise NotImplementedError


class _HtmlDocument(_MarkedUp):
    def __init__(self, body: bytes, media_type: str) -> None:
        from selectolax.lexbor import LexborHTMLParser

        super().__init__(LexborHTMLParser(decode(body, media_type)).root, _MOST_OVERLAP * (len(body) + 1000))

    def _all(self, node: Any, place: str) -> Sequence[Any]:
        found: Sequence[Any] = node.css(place)
        return found

    def _attribute(self, node: Any, name: str) -> str | None:
        found: str | None = node.attributes.get(name)
        return found

    def _inner_text(self, node: Any) -> str:
        return str(node.text(separator=" "))


class _XmlDocument(_MarkedUp):
    def __init__(self, body: bytes, media_type: str) -> None:
        from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
        from defusedxml.ElementTree import (  # type: ignore[import-untyped]
            ParseError,
            fromstring,
        )

        del media_type
        try:
            root = fromstring(body)
        except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
            raise AnswerError(f"not XML: {one_line(error)}") from None
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
            names: Iterable[str] = list(element.attrib)
            for name in names:
                element.attrib[name.rpartition("}")[2]] = element.attrib[name]
        super().__init__(root, _MOST_OVERLAP * (len(body) + 1000))

    def _all(self, node: Any, place: str) -> Sequence[Any]:
        found: Sequence[Any] = node.findall(place)
        return found

    def _attribute(self, node: Any, name: str) -> str | None:
        found: str | None = node.get(name)
        return found

    def _inner_text(self, node: Any) -> str:
        return "".join(node.itertext())


_DOCUMENTS: dict[str, Callable[[bytes, str], Any]] = {
    "json": _JsonDocument,
    "html": _HtmlDocument,
    "xml": _XmlDocument,
}
