"""The difference between two texts by lines, for people: below each other, or side by side.

The effort is limited, whatever the texts are: lines that both have at the beginning and at the end are found
quickly, and of those between them only ``_MOST_COMPARED`` are compared. Long lines, as in pages without line
breaks, are broken where tags or values end, so that one changed word does not make all of them differ.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal, TypeAlias

_MOST_COMPARED, _MOST_SHOWN, _MOST_WIDTH, _CONTEXT = 1500, 400, 500, 3
_LONG = 200  # characters, from which on a line is broken
_BREAKS = re.compile(r"(?<=>)(?=<)|(?<=[,;}])(?=[\"'{\[])|(?<=[.!?;,]) ")
LineKind: TypeAlias = Literal["added", "removed", "same", "place"]
_Opcode: TypeAlias = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference. ``kind`` is "added", "removed", "same", or "place": words about lines that are
    not shown. The line has the ``number`` in its version (0: none). ``head``, ``mark`` and ``tail`` are its
    text in three parts, of which ``mark`` differs from the line of the other version."""

    kind: LineKind
    number: int
    head: str
    mark: str = ""
    tail: str = ""

    @property
    def text(self) -> str:
        return self.head + self.mark + self.tail


@dataclass(frozen=True, slots=True)
class DiffRow:
    """Two lines side by side: that of the old version and that of the new one; None where one has none."""

    old: DiffLine | None
    new: DiffLine | None

    @property
    def is_change(self) -> bool:
        return any(line is None or line.kind in ("added", "removed") for line in (self.old, self.new))


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """The difference of two texts as ``rows``. ``limits`` says which part of it is not shown, if any."""

    rows: Sequence[DiffRow] = field(default_factory=tuple)
    limits: str = ""

    @property
    def lines(self) -> list[DiffLine]:
        """The lines below each other: of each change first those that were removed."""
        found: list[DiffLine] = []
        added: list[DiffLine] = []
        for row in self.rows:
            if not row.is_change:
                found += added
                added = []
            if row.old is not None:
                found.append(row.old)
            if row.new is not None and row.is_change:
                added.append(row.new)
        return found + added


def compare_texts(before: str, after: str) -> VersionDiff:
    """Return the changed lines, each with up to three lines before and after it.

    >>> [(line.kind, line.number, line.text) for line in compare_texts("a\\nb", "a\\nc").lines]
    [('same', 1, 'a'), ('removed', 2, 'b'), ('added', 2, 'c')]
    >>> compare_texts("a\\nb", "a\\nb").rows
    ()
    """
    old, new = _split(before), _split(after)
    if old == new:
        return VersionDiff()
    opcodes, is_cut = _find_opcodes(old, new)
    rows: list[DiffRow] = []
    for row in _rows(old, new, opcodes):
        if len(rows) >= _MOST_SHOWN:
            return VersionDiff(tuple(rows), f"The first {_MOST_SHOWN} lines are shown.")
        rows.append(row)
    limits = f"Only {_MOST_COMPARED:,} lines from the first change on are compared." if is_cut else ""
    return VersionDiff(tuple(rows), limits)


def _split(text: str) -> list[str]:
    """Return the lines of a text, with breaks in long ones."""
    lines: list[str] = []
    for line in text.splitlines():
        lines += _BREAKS.split(line) if len(line) > _LONG else [line]
    return lines


def _find_opcodes(old: list[str], new: list[str]) -> tuple[list[_Opcode], bool]:
    """Return how ``old`` becomes ``new``, as the opcodes of ``difflib``, and whether lines at the end are
    left out."""
    head, tail = _common_lines(old, new)
    middles = [lines[head : len(lines) - tail] for lines in (old, new)]
    is_cut = max(map(len, middles)) > _MOST_COMPARED
    first, second = (lines[:_MOST_COMPARED] for lines in middles)
    found = difflib.SequenceMatcher(None, first, second).get_opcodes()
    opcodes: list[_Opcode] = [("equal", 0, head, 0, head)] if head else []
    opcodes += [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in found]
    if tail and not is_cut:
        opcodes.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return opcodes, is_cut


def _common_lines(old: list[str], new: list[str]) -> tuple[int, int]:
    """Return how many lines both have in common at the beginning, and at the end."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    return head, tail


def _rows(old: list[str], new: list[str], opcodes: list[_Opcode]) -> Iterator[DiffRow]:
    for place, (tag, i1, i2, j1, j2) in enumerate(opcodes):
        if tag == "equal":
            before = 0 if place == 0 else _CONTEXT
            after = 0 if place == len(opcodes) - 1 else _CONTEXT
            yield from _equal_rows(old[i1:i2], i1, j1, before, after)
            continue
        removed = [(i1 + at, line) for at, line in enumerate(old[i1:i2], 1)]
        added = [(j1 + at, line) for at, line in enumerate(new[j1:j2], 1)]
        for left, right in zip_longest(removed, added):
            yield _changed_row(left, right)


def _equal_rows(lines: list[str], i1: int, j1: int, before: int, after: int) -> Iterator[DiffRow]:
    """Yield the first ``before`` and the last ``after`` of equal lines, and the number of those between."""
    omitted = len(lines) - before - after
    for at, line in enumerate(lines):
        if omitted > 0 and before <= at < before + omitted:
            if at == before:
                words = DiffLine("place", 0, f"… {omitted:,} equal line{'s' if omitted > 1 else ''}")
                yield DiffRow(words, words)
            continue
        shown = line[:_MOST_WIDTH]
        yield DiffRow(DiffLine("same", i1 + at + 1, shown), DiffLine("same", j1 + at + 1, shown))


def _changed_row(left: tuple[int, str] | None, right: tuple[int, str] | None) -> DiffRow:
    if left is None or right is None:
        old = None if left is None else DiffLine("removed", left[0], left[1][:_MOST_WIDTH])
        new = None if right is None else DiffLine("added", right[0], right[1][:_MOST_WIDTH])
        return DiffRow(old, new)
    head, tail = _common_characters(left[1], right[1])
    return DiffRow(_marked("removed", *left, head, tail), _marked("added", *right, head, tail))


def _common_characters(left: str, right: str) -> tuple[int, int]:
    """Return how many characters two lines have in common at the beginning and at the end; none if they
    differ in most of the line."""
    most = min(len(left), len(right))
    head = next((at for at in range(most) if left[at] != right[at]), most)
    tail = next((at for at in range(most - head) if left[-1 - at] != right[-1 - at]), most - head)
    return (head, tail) if 2 * (head + tail) >= most else (0, 0)


def _marked(kind: LineKind, number: int, line: str, head: int, tail: int) -> DiffLine:
    """Return a line whose middle is marked; of a very long one the part around the mark."""
    end = len(line) - tail
    if (head, tail) == (0, 0):
        return DiffLine(kind, number, line[:_MOST_WIDTH])
    first = max(0, head - _MOST_WIDTH // 2)
    begin = f"…{line[first:head]}" if first else line[:head]
    mark = line[head:end][:_MOST_WIDTH]
    return DiffLine(kind, number, begin, mark, line[end:][: _MOST_WIDTH // 2])
