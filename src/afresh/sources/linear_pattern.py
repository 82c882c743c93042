r"""Regular expressions of the settings, applied to untrusted text in time that grows with its length.

Python's own engine tries every way to match: ``\d+ visitors`` takes the square of the number of digits, and
``(a+)+b`` doubles with every character. RE2 follows all ways at once. It therefore has no look-ahead, no
look-behind and no back references, and refuses such patterns. Patterns are written as for Python, where
``\d``, ``\w`` and ``\s`` stand for the digits, letters and blanks of all languages. Two things differ: ``\b``
knows ASCII letters only, and so do ``\W`` and ``\S`` within brackets; ``$`` is the very end of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from afresh.values.errors import UsageError

_LETTERS = r"\p{L}\p{N}_"
_BLANKS = r"\s\x{0b}\x{1c}-\x{1f}\x{85}\p{Z}"
_CLASSES: Final = {"d": r"\p{Nd}", "w": _LETTERS, "s": _BLANKS, "D": r"\P{Nd}"}
_TOKEN = re.compile(
    r"\\u(?P<u>[0-9A-Fa-f]{4})|\\U(?P<U>[0-9A-Fa-f]{8})|\\(?P<escaped>.)|(?P<open>\[\^?\]?)|(?P<close>\])"
    r"|(?P<most>\{,(?=\d+\}))|.",
    re.DOTALL,
)
_LACKING = {
    "(?=": "look-ahead (?=…)",
    "(?!": "look-ahead (?!…)",
    "(?<=": "look-behind (?<=…)",
    "(?<!": "look-behind (?<!…)",
    "(?<": "look-behind",
    "(?>": "an atomic group (?>…)",
    "(?(": "a condition (?(…)…)",
    "(?P=": "a back reference (?P=…)",
    "(?P": "a back reference (?P=…)",
    "(?#": "a comment (?#…)",
    "(?x": "the flag (?x)",
}


@dataclass(frozen=True, slots=True)
class LinearPattern:
    """A compiled pattern. ``text`` is the pattern as the user wrote it."""

    text: str
    _compiled: Any = field(repr=False)

    def occurs_in(self, text: str) -> bool:
        return self._compiled.search(text.encode("utf-8", "replace")) is not None

    def first_group(self, text: str) -> str | None:
        """Return the first group of the first match, or all of it if the pattern has no group; None without a
        match.

        >>> compile_pattern("key_pattern", "openalex.org/(W[0-9]+)").first_group("https://openalex.org/W12")
        'W12'
        """
        match = self._compiled.search(text.encode("utf-8", "replace"))
        if match is None:
            return None
        found = match[1] if self._compiled.groups else match[0]
        return None if found is None else str(found.decode("utf-8", "replace"))

    def remove_from(self, text: str) -> str:
        """Return the text without everything that matches.

        >>> compile_pattern("ignore", r"\\d+ visitors?").remove_from("News. 12 visitors, ٣ visitors")
        'News. , '
        """
        raw = text.encode("utf-8", "replace")
        return b"".join(_pieces(raw, self._compiled.finditer(raw))).decode("utf-8", "replace")


def _pieces(raw: bytes, matches: Iterator[Any]) -> Iterator[bytes]:
    end = 0
    for match in matches:
        start, stop = match.span()
        yield raw[end:start]
        end = max(end, stop)
    yield raw[end:]


@lru_cache(maxsize=1024)
def compile_pattern(setting: str, pattern: str) -> LinearPattern:
    r"""Compile a pattern of the settings. Errors name ``setting``.

    >>> compile_pattern("ignore", "(?=a)")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: ignore: '(?=a)' has look-ahead (?=…), which takes more than linear time
    """
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        return LinearPattern(pattern, re2.compile(_to_re2(pattern), options))
    except re2.error as error:
        given = error.args[0] if error.args else ""
        reason = given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)
    except UnicodeEncodeError:
        reason = "it is not valid Unicode"
    raise UsageError(f"{setting}: {pattern!r} {_problem(reason)}")


def _problem(reason: str) -> str:
    kind, _, part = reason.partition(": ")
    lacking = _LACKING.get(part)
    if kind == "invalid escape sequence" and part[1:].isdigit():
        lacking = f"a back reference {part}"
    if lacking:
        return f"has {lacking}, which takes more than linear time"
    if kind == "bad repetition operator":
        return f"has the repetition {part}, which takes more than linear time"
    return f"is not a regular expression: {reason}"


def _to_re2(pattern: str) -> str:
    r"""Return a pattern for Python in the syntax of RE2.

    >>> _to_re2(r"[\w-]+\d{,3}\Z")
    '[\\p{L}\\p{N}_-]+[\\p{Nd}]{0,3}\\z'
    """
    parts = []
    in_class = False
    for token in _TOKEN.finditer(pattern):
        escaped, text = token["escaped"], token[0]
        if token["u"] or token["U"]:
            text = f"\\x{{{token['u'] or token['U']}}}"
        elif escaped in _CLASSES:
            text = _CLASSES[escaped] if in_class else f"[{_CLASSES[escaped]}]"
        elif escaped in ("W", "S") and not in_class:
            text = f"[^{_CLASSES[escaped.lower()]}]"
        elif escaped == "Z" and not in_class:
            text = r"\z"
        elif token["open"] and in_class:
            text = r"\[" + text[1:]
            in_class = not text.endswith("]")
        elif token["open"]:
            in_class = True
        elif token["close"]:
            in_class = False
        elif token["most"] and not in_class:
            text = "{0,"
        parts.append(text)
    return "".join(parts)
