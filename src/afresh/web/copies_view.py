"""Copies as text, never as what they claim to be, and what changed between two of them; all bounded."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from afresh.stores.store import Store
from afresh.values.stored import Copy
from afresh.web import wording

_MOST_BYTES, _MOST_LINES, _MOST_SHOWN, _WIDEST = 200_000, 2000, 400, 500


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference; ``kind`` is added, removed, same or place."""

    kind: str
    text: str


def text_of(copy: Copy) -> str | None:
    """The beginning of a copy as text, None where it is not text.

    >>> from afresh.values.stored import Version
    >>> text_of(Copy(Version(1, 1, 0.0, "", 2, b"", b""), b"ok")), text_of(
    ...     Copy(Version(1, 1, 0.0, "", 2, b"", b""), bytes(9))
    ... )
    ('ok', None)
    """
    head = copy.content[:_MOST_BYTES]
    if b"\0" in head:
        return None
    text = head.decode("utf-8", errors="replace")
    odd = text.count("\ufffd")
    return None if odd > 0.1 * len(text) + 1 else text


def difference(before: str, after: str) -> list[DiffLine]:
    """What changed, line by line, with three lines around.

    >>> [(line.kind, line.text) for line in difference("a\\nb", "a\\nc")]
    [('place', '@@ -1,2 +1,2 @@'), ('same', 'a'), ('removed', 'b'), ('added', 'c')]
    """
    old, new = (text.splitlines()[:_MOST_LINES] for text in (before, after))
    kinds = {"+": "added", "-": "removed", " ": "same", "@": "place"}
    lines: list[DiffLine] = []
    for line in difflib.unified_diff(old, new, lineterm=""):
        if line.startswith(("+++", "---")) and not lines:
            continue
        text = line.rstrip() if line.startswith("@@") else line[1:]
        lines.append(DiffLine(kinds[line[0]], text[:_WIDEST]))
        if len(lines) >= _MOST_SHOWN:
            lines.append(DiffLine("place", "… and more"))
            break
    return lines


def last_difference(store: Store, item_id: int) -> tuple[list[DiffLine], str]:
    """The difference of the two newest copies, and words on what it is or why there is none."""
    versions = store.copies.versions(item_id)[:2]
    copies = [store.copies.get(item_id, version.number) for version in versions]
    if not versions:
        return [], "There is no copy yet."
    if len(copies) < 2 or copies[0] is None or copies[1] is None:
        return [], "There is one copy so far: nothing to compare it with."
    after, before = text_of(copies[0]), text_of(copies[1])
    if after is None or before is None:
        return [], "The copies are not text."
    lines = difference(before, after)
    words = f"From version {versions[1].number} to {versions[0].number}."
    if max(version.size for version in versions) > _MOST_BYTES:
        words += f" Only the first {wording.size(_MOST_BYTES)} are compared."
    return lines, words if lines else words + " They differ in what is not shown."
