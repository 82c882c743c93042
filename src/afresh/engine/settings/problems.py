"""Collects everything that is wrong in a settings file, with the lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from afresh.sources.settings import SettingProblem
from afresh.values.errors import UsageError, WrongSettingsError

Lines: TypeAlias = Sequence[tuple[int, str]]
"""Tuples (line number, line) of a part of the settings file."""


class ProblemList:
    """The problems of the settings file ``name`` with the text ``text``. ``origins`` names the option or
    variable that set a value, by TABLE.KEY or source.NAME.KEY."""

    def __init__(self, name: str, text: str, origins: Mapping[str, str]) -> None:
        self._name, self._text, self._origins = name, text, origins
        self._found: list[str] = []

    def add(self, words: str) -> None:
        self._found.append(words)

    def add_error(self, error: UsageError) -> None:
        """Add the problems of an error that names its place itself."""
        self._found += error.problems if isinstance(error, WrongSettingsError) else [str(error)]

    def add_of_table(self, table: str, problem: SettingProblem) -> None:
        """Add a problem of the table ``[table]``."""
        origin = self._origins.get(f"{table}.{problem.place}")
        if origin is not None:
            self.add(f"{origin}: {problem.words}")
            return
        key = f"[{table}] {problem.place}" if problem.place else f"[{table}]"
        self.add(f"{find_place(self._name, self._text, table, problem.key)}{key}: {problem.words}")

    def add_of_source(self, number: int, source: object, problem: SettingProblem) -> None:
        """Add a problem of the ``[[source]]`` table with this number (from 0) and name."""
        who = f"source {source!r}"
        origin = self._origins.get(f"source.{source}.{problem.place}")
        if origin is not None:
            self.add(f"{origin}: {problem.words}")
            return
        key = f"{problem.place}: " if problem.place else ""
        place = find_source_place(self._name, self._text, number, problem.key)
        self.add(f"{place}{who}: {key}{problem.words}")

    def raise_any(self) -> None:
        """Raise ``UsageError`` if there is a problem."""
        if self._found:
            raise WrongSettingsError(self._found)


def find_place(name: str, text: str, table: str, key: str) -> str:
    """Return where a key is, for error messages: ``afresh.toml, line 3: ``, or only the name of the file."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([\w.]+)", line)
        if header:
            inside = header[1] == table
        if (inside and not key) or (inside and re.match(rf"\s*{re.escape(key)}\s*=", line)):
            return f"{name}, line {number}: "
    return f"{name}: "


def find_top_place(name: str, text: str, key: str) -> str:
    """Return where a key or table of the top level is, for error messages.

    >>> find_top_place("afresh.toml", "# a\\nkey = 1", "key"), find_top_place("a.toml", "[[key]]", "key")
    ('afresh.toml, line 2: ', 'a.toml, line 1: ')
    """
    is_header, is_key = (
        re.compile(r"\s*\[+\s*[\"']?" + re.escape(key)),
        rf"\s*[\"']?{re.escape(key)}[\"']?\s*=",
    )
    for number, line in enumerate(text.splitlines(), 1):
        if is_header.match(line) or re.match(is_key, line):
            return f"{name}, line {number}: "
    return f"{name}: "


def find_source_place(name: str, text: str, number: int, key: str) -> str:
    """Return where the ``[[source]]`` table with this number (from 0) sets ``key``: see ``find_place``."""
    lines = lines_of_table(text, "source", number)
    if not lines:
        return f"{name}: "  # a source that no table describes, set by an option alone
    pattern = rf"\s*{re.escape(key)}\s*="
    return f"{name}, line {find_line(lines, pattern)}: "


def lines_of_table(text: str, name: str, number: int) -> Lines:
    """Return the lines of the table ``[[name]]`` with this number, which counts from 0."""
    found: list[tuple[int, str]] = []
    tables = -1
    for at, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([\w.]+)\s*\]", line)
        if header:
            tables += header[1] == name
            if found and not header[1].startswith(f"{name}."):
                break
        if tables == number and (found or header):
            found.append((at, line))
    return found


def find_line(lines: Lines, pattern: str) -> int:
    """Return the number of the first of ``lines`` that begins with ``pattern``, else of the first line."""
    return next((at for at, line in lines if re.match(pattern, line)), lines[0][0])
