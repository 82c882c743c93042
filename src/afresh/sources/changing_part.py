"""Finds the one small part of a page in which nearly all of its changes lie, such as a clock or a token.

Two successive versions of a text are compared from both ends: what is left between their common beginning and
their common end is the part that changed. If it is small and lies in one element with an ``id`` or a
``class``, the setting ``drop`` can remove it; if it follows the same words of one line, ``ignore`` can. Texts
are read as they are, without a parser: the time is proportional to their length, whatever they contain.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from afresh.sources.text_decoding import decode

FEWEST = 3  # changes that must be known
NEARLY = 0.75  # of them must lie in the same part
_LONGEST_PART, _SMALL = 300, 0.25  # the most characters of a small part, and its largest share of the text
_NEAR = 600  # an element begins and ends at most so many characters from the change
_LEAD = 40  # the most characters before a changed text by which a pattern recognises it
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)([^<>]*)>")
_NAME = re.compile(r"""\b(id|class)\s*=\s*["']?\s*([A-Za-z_-]+)(?=["'\s>]|$)""")
_VOID = {"br", "hr", "img", "input", "link", "meta", "source", "wbr"}
_LETTERS = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, slots=True)
class ChangingPart:
    """A small part in which ``changes`` of the last ``of`` changes lie. ``setting`` is ``drop`` or
    ``ignore``, ``value`` the selector or regular expression that removes the part.

    >>> ChangingPart("drop", ".clock", 4, 4).line
    'drop = [".clock"]'
    """

    setting: str
    value: str
    changes: int
    of: int

    @property
    def line(self) -> str:
        """The line of ``afresh.toml`` that leaves this part out of comparisons."""
        return f"{self.setting} = [{json.dumps(self.value)}]"


def find_changing_part(versions: Sequence[bytes], content_type: str) -> ChangingPart | None:
    """Return the part in which nearly all changes between successive ``versions`` lie; None if there is none.

    >>> pages = [f"<h1>News</h1><b class=clock>{hour}:00</b>{'text ' * 40}".encode() for hour in range(4)]
    >>> find_changing_part(pages, "text/html").line
    'drop = [".clock"]'
    >>> texts = [f"{'text ' * 40}\\nserved at {hour}:00\\n".encode() for hour in range(4)]
    >>> find_changing_part(texts, "text/plain").line
    'ignore = ["served at .*"]'
    """
    texts = [decode(version, content_type) for version in versions]
    pairs = [(one, other) for one, other in pairwise(texts) if one != other]
    if len(pairs) < FEWEST:
        return None
    found: Counter[tuple[str, str]] = Counter()
    for one, other in pairs:
        found.update(_parts(one, other))
    # A selector is easier to read than a pattern, so it is preferred if both explain as many changes.
    best = max(found.items(), key=lambda entry: (entry[1], entry[0][0] == "drop"), default=None)
    if best is None or best[1] < NEARLY * len(pairs):
        return None
    (setting, value), changes = best
    return ChangingPart(setting, value, changes, len(pairs))


def _parts(one: str, other: str) -> list[tuple[str, str]]:
    """Return the settings, as tuples (name, value), that remove what differs between two texts."""
    begin = _common_length(one, other)
    end = _common_length(one[begin:][::-1], other[begin:][::-1])
    sizes = [len(text) - begin - end for text in (one, other)]
    if max(sizes) > min(_LONGEST_PART, _SMALL * min(len(one), len(other))):
        return []
    selector = _selector(one, begin, len(one) - end)
    pattern = _pattern(one, other, begin)
    found = [("drop", selector)] if selector else []
    return [*found, ("ignore", pattern)] if pattern else found


def _selector(text: str, begin: int, end: int) -> str:
    """Return a selector of the smallest named element around the characters ``begin`` to ``end``, or ""."""
    first = max(begin - _NEAR, 0)
    before, after = text[first:end], text[end : end + _NEAR]
    closed: Counter[str] = Counter()
    for tag in reversed(list(_TAG.finditer(before + after[: after.find(">") + 1]))):
        name = tag[2].lower()
        if first + tag.start() >= begin:
            continue
        if tag[1]:
            closed[name] += 1
        elif closed[name]:
            closed[name] -= 1
        elif name not in _VOID or first + tag.end() > begin:
            named = _NAME.search(tag[3])
            ends = first + tag.end() > begin or f"</{name}" in after.lower()
            if named is not None and ends:
                return f"{'#' if named[1] == 'id' else '.'}{named[2]}"
    return ""


def _pattern(one: str, other: str, begin: int) -> str:
    """Return a regular expression that removes what differs from ``begin`` on, or "" if none is found."""
    line = one.rfind("\n", 0, begin) + 1
    lead = one[max(line, begin - _LEAD) : begin].rstrip("0123456789")
    lead = re.split(r"[,{}<>]", lead)[-1].lstrip()
    if not _LETTERS.search(lead):
        return ""
    rest = one[begin:].partition("\n")[0]
    pattern = re.escape(lead).replace("\\ ", " ") + ("[^,}<]*" if re.search("[,}<]", rest) else ".*")
    compiled = re.compile(pattern)
    left = compiled.sub("", one)
    is_small = len(left) >= (1.0 - _SMALL) * len(one)  # a page of one line is not noise
    return pattern if is_small and left == compiled.sub("", other) else ""


def _common_length(one: str, other: str) -> int:
    """Return how many characters at the beginning of two texts are the same.

    >>> _common_length("clock 12:01", "clock 12:34")
    9
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
