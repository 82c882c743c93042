"""Where an answer has its records, their keys and fields, its total and the mark of the next page.

The places are JSON paths (JMESPath), CSS selectors (HTML) or paths of elements (XML, without namespaces). In
HTML and XML, ``place@name`` is the attribute ``name`` of the element, and ``@name`` that of the row itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from xml.etree.ElementTree import Element

from afresh.sources.change_detection import check_css_selector, compile_json_path
from afresh.sources.linear_pattern import compile_pattern
from afresh.values.errors import UsageError

AnswerFormat: TypeAlias = Literal["json", "html", "xml"]
KeyCase: TypeAlias = Literal["", "lower", "upper"]

_WITH_ATTRIBUTE = re.compile(r"(?P<element>.*?)@(?P<name>[\w.:-]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """The places of everything in an answer. An empty place means that the answer does not have it.

    ``record`` is the record in the answer to a look-up; without it, the rows or else the whole answer are
    used. ``fields`` maps the names of fields to their places in a row; without any, the row is the content.
    ``patterns`` (and ``key_pattern``, ``total_pattern``) are regular expressions: their first group, or else
    what they match, is the value. ``where`` is a JMESPath condition that rows must fulfil: of JSON the row
    itself, otherwise its fields. ``cursor`` is a value that grows with every change of a row. ``next`` is
    empty if the next page is not named in the body. ``adopt`` is a condition for new items, like ``where``;
    ``texts`` are the places of their keywords by column."""

    format: AnswerFormat = "json"
    rows: str = "results"
    record: str = ""
    total: str = ""
    total_pattern: str = ""
    next: str = ""
    key: str = "id"
    key_pattern: str = ""
    key_case: KeyCase = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    patterns: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    cursor: str = ""
    adopt: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ``UsageError`` if a place or a pattern cannot be read. The message names the setting."""
        places = {"rows": self.rows, "record": self.record, "total": self.total, "next": self.next}
        places |= {"key_path": self.key, "cursor": self.cursor}
        places |= {f"paths.{name}": place for name, place in self.fields.items()}
        for setting, place in places.items():
            if place:
                check_place(setting, place, self.format)
        for setting in ("where", "adopt"):
            if condition := getattr(self, setting):
                check_place(setting, condition, "json")
        for name, place in self.texts.items():
            check_place(f"paths.{name}", place, self.format)
        patterns = {"key_pattern": self.key_pattern, "total_pattern": self.total_pattern}
        patterns |= {f"patterns.{name}": pattern for name, pattern in self.patterns.items()}
        for setting, pattern in patterns.items():
            if pattern:
                compile_pattern(setting, pattern)


def check_place(setting: str, place: str, answer_format: AnswerFormat) -> None:
    """Raise ``UsageError`` if ``place`` is not a place in an answer of this format."""
    if answer_format == "json":
        try:
            compile_json_path(setting, place)
        except UsageError:
            words = f"{setting}: {place!r} is not a JSON path such as data.results (JMESPath)"
            raise UsageError(words) from None
        return
    element = split_attribute(place)[0]
    if not element:
        return
    if answer_format == "html":
        check_css_selector(setting, element)
        return
    try:
        Element("row").findall(element)
    except (SyntaxError, KeyError, TypeError):  # Python 3.11 raises any of them
        words = f"{setting}: {place!r} is not a path of elements such as entry/author/name"
        raise UsageError(words) from None


def split_attribute(place: str) -> tuple[str, str]:
    """Return a tuple (selector of the element, name of the attribute or "").

    >>> split_attribute("a.title@href"), split_attribute("link[@rel='next']")
    (('a.title', 'href'), ("link[@rel='next']", ''))
    """
    found = _WITH_ATTRIBUTE.fullmatch(place)
    return (found["element"].strip(), found["name"]) if found else (place, "")
