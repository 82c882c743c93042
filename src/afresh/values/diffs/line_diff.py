"""The difference between two texts by lines, in a time that grows little faster than their length.

``difflib`` alone takes minutes for texts that somebody made for that: 20,000 lines of which every second one
differs. So texts of many lines are aligned first at the lines that each of them has once, in the order that
keeps the most of them (patience diff); ``difflib`` compares only what lies between.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

_MOST_COMPARED = 500  # lines that difflib compares at once; the worst known take a few hundredths of a second
_BETWEEN = 100  # lines between two that are aligned, which difflib still compares

Opcode: TypeAlias = tuple[str, int, int, int, int]
"""What becomes of the lines ``i1:i2`` of the old text and ``j1:j2`` of the new one, as in ``difflib``."""


def unified_lines(
    old: Sequence[str], new: Sequence[str], old_name: str = "", new_name: str = "", context: int = 3
) -> Iterator[str]:
    """Yield the difference in the unified format, without line ends.

    >>> list(unified_lines(["a", "b"], ["a", "c"], "x", "y"))
    ['--- x', '+++ y', '@@ -1,2 +1,2 @@', ' a', '-b', '+c']
    """
    matcher = SequenceMatcher(None, "", "")
    matcher.opcodes = line_opcodes(old, new)  # type: ignore[attr-defined]  # what get_grouped_opcodes groups
    for number, group in enumerate(matcher.get_grouped_opcodes(context)):
        if number == 0:
            yield f"--- {old_name}"
            yield f"+++ {new_name}"
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@"
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[a1:a2])
            else:
                yield from (f"-{line}" for line in old[a1:a2])
                yield from (f"+{line}" for line in new[b1:b2])


def line_opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Return how ``old`` becomes ``new``: opcodes that follow each other, from the first line to the last."""
    head = _common(old, new, 0, len(old), 0, len(new), 1)
    tail = _common(old, new, head, len(old), head, len(new), -1)
    matches = [(0, 0, head)]
    matches += _matches(old, new, (head, len(old) - tail, head, len(new) - tail))
    matches += [(len(old) - tail, len(new) - tail, tail), (len(old), len(new), 0)]
    return list(_between(matches))


def _matches(
    old: Sequence[str], new: Sequence[str], part: tuple[int, int, int, int]
) -> Iterator[tuple[int, int, int]]:
    """Yield blocks of equal lines (first line of the old text, of the new one, number), in their order."""
    i1, i2, j1, j2 = part
    if max(i2 - i1, j2 - j1) <= _MOST_COMPARED:
        yield from _compared(old, new, i1, i2, j1, j2)
        return
    i, j = i1, j1
    for next_i, next_j in [*_aligned(old, new, part), (i2, j2)]:
        if max(next_i - i, next_j - j) <= _BETWEEN:
            yield from _compared(old, new, i, next_i, j, next_j)
        else:
            head = _common(old, new, i, next_i, j, next_j, 1)
            tail = _common(old, new, i + head, next_i, j + head, next_j, -1)
            yield i, j, head
            yield next_i - tail, next_j - tail, tail
        if next_i < i2 and next_j < j2:
            yield next_i, next_j, 1
        i, j = next_i + 1, next_j + 1


def _compared(
    old: Sequence[str], new: Sequence[str], i1: int, i2: int, j1: int, j2: int
) -> Iterator[tuple[int, int, int]]:
    found = SequenceMatcher(None, old[i1:i2], new[j1:j2]).get_matching_blocks()
    return ((i1 + i, j1 + j, size) for i, j, size in found)


def _aligned(
    old: Sequence[str], new: Sequence[str], part: tuple[int, int, int, int]
) -> Sequence[tuple[int, int]]:
    """Return the places of lines that both texts have once: as many as possible whose order is the same."""
    i1, i2, j1, j2 = part
    here, there = Counter(old[i1:i2]), Counter(new[j1:j2])
    places = {line: j for j, line in enumerate(new[j1:j2], j1) if there[line] == 1}
    pairs = [(i, places[line]) for i, line in enumerate(old[i1:i2], i1) if here[line] == 1 and line in places]
    # The longest increasing sequence: of each length, the one that ends lowest, and who comes before whom.
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1], last[length : length + 1] = [j], [at]
    found = []
    at = last[-1] if last else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _common(old: Sequence[str], new: Sequence[str], i1: int, i2: int, j1: int, j2: int, step: int) -> int:
    """Return how many lines two parts have in common at the beginning (``step`` 1) or at the end (-1)."""
    most, count = min(i2 - i1, j2 - j1), 0
    i, j = (i1, j1) if step > 0 else (i2 - 1, j2 - 1)
    while count < most and old[i + step * count] == new[j + step * count]:
        count += 1
    return count


def _between(matches: list[tuple[int, int, int]]) -> Iterator[Opcode]:
    """Yield the opcodes of blocks of equal lines and of what lies between them."""
    i = j = 0
    equal: Opcode | None = None
    for next_i, next_j, size in matches:
        if i < next_i or j < next_j:
            if equal is not None:
                yield equal
                equal = None
            tag = "replace" if i < next_i and j < next_j else "delete" if i < next_i else "insert"
            yield tag, i, next_i, j, next_j
        i, j = next_i + size, next_j + size
        if size:
            first = (next_i, next_j) if equal is None else (equal[1], equal[3])
            equal = ("equal", first[0], i, first[1], j)
    if equal is not None:
        yield equal


def _range(start: int, stop: int) -> str:
    """Return a range of lines as the unified format writes it."""
    length = stop - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"
