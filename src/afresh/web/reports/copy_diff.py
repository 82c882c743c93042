"""Shows copies as plain text, and the difference between two copies by lines. Both are limited in size."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from afresh.engine.project_interface import Project
from afresh.values.items import Item
from afresh.values.stored import Copy, Version
from afresh.web import text_formats

_MOST_BYTES, _MOST_LINES, _MOST_SHOWN, _MOST_WIDTH = 200_000, 2000, 400, 500
_KINDS = {"+": "added", "-": "removed", " ": "same", "@": "place"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference. ``kind`` is "added", "removed", "same", or "place" (the position of the lines
    that follow)."""

    kind: str
    text: str


def decode_text(copy: Copy) -> str | None:
    """Return the beginning of a copy as text, or None if it is not text.

    >>> from afresh.values.stored import Version
    >>> version = Version(1, 1, 0.0, "", 2, b"", b"")
    >>> decode_text(Copy(version, b"ok")), decode_text(Copy(version, bytes(9)))
    ('ok', None)
    """
    head = copy.content[:_MOST_BYTES]
    if b"\0" in head:
        return None
    text = head.decode("utf-8", errors="replace")
    undecodable = text.count("\ufffd")
    return None if undecodable > 0.1 * len(text) + 1 else text


def compare_lines(before: str, after: str) -> list[DiffLine]:
    """Return the changed lines, each with up to three lines before and after it.

    >>> [(line.kind, line.text) for line in compare_lines("a\\nb", "a\\nc")]
    [('place', '@@ -1,2 +1,2 @@'), ('same', 'a'), ('removed', 'b'), ('added', 'c')]
    """
    old, new = (text.splitlines()[:_MOST_LINES] for text in (before, after))
    lines: list[DiffLine] = []
    for line in difflib.unified_diff(old, new, lineterm=""):
        if line.startswith(("+++", "---")) and not lines:
            continue
        text = line.rstrip() if line.startswith("@@") else line[1:]
        lines.append(DiffLine(_KINDS[line[0]], text[:_MOST_WIDTH]))
        if len(lines) >= _MOST_SHOWN:
            return [*lines, DiffLine("place", "… and more")]
    return lines


def compare_newest(project: Project, item: Item, versions: Sequence[Version]) -> tuple[list[DiffLine], str]:
    """Return a tuple: the difference between an item's two newest copies, and a sentence that describes it.
    ``versions`` are those of its copy, the newest first.

    If there are not two copies that are text, the difference is empty and the sentence gives the reason."""
    versions = versions[:2]
    if not versions:
        return [], "There is no copy yet."
    copies = [project.get(item.key, source=item.source, version=version.number) for version in versions]
    if len(copies) < 2 or copies[0] is None or copies[1] is None:
        return [], "There is one copy so far: nothing to compare it with."
    after, before = decode_text(copies[0]), decode_text(copies[1])
    if after is None or before is None:
        return [], "The copies are not text."
    lines = compare_lines(before, after)
    words = f"From version {versions[1].number} to {versions[0].number}."
    if max(version.size for version in versions) > _MOST_BYTES:
        words += f" Only the first {text_formats.format_bytes(_MOST_BYTES)} are compared."
    return lines, words if lines else words + " They differ in a part that is not shown."
