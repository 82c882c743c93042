"""Make texts from outside safe to print: keys, addresses, messages of servers, and what users wrote.

A terminal obeys control characters: it can be made to hide lines, to rename its window or to type. Characters
that change the direction of writing make a text look like another one. Both are printed as escapes."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\u2028\u2029\ufeff\ufff9-\ufffb"  # line separators, and marks without a picture
    "\U000e0000-\U000e007f\ud800-\udfff]"  # tags, and halves of characters
)
_LINES = frozenset("\n\t")


def printable(text: object, *, lines: bool = False) -> str:
    """Return a text in which every character that a terminal would obey is replaced by its escape. With
    ``lines``, line ends and tabs stay.

    >>> printable("\\x1b[2J"), printable("a\\u202eb"), printable("ä\\n"), printable("ä\\n", lines=True)
    ('\\\\x1b[2J', 'a\\\\u202eb', 'ä\\\\n', 'ä\\n')
    """

    def escape(found: re.Match[str]) -> str:
        char = found[0]
        if lines and char in _LINES:
            return char
        return char.encode("unicode_escape").decode()

    return _UNSAFE.sub(escape, str(text))


def printable_json(text: str) -> str:
    """Return a JSON text in which these characters are escaped as JSON does it, so that its meaning stays.

    >>> printable_json('["\\u202e\\x9b"]')
    '["\\\\u202e\\\\u009b"]'
    """

    def escape(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

    return _UNSAFE.sub(escape, text)
