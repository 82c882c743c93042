"""Declare the columns of a kind of file, and match them with the header of a file.

Unknown columns are ignored, because tables may contain columns for other programs. The exception is a name
that is probably a misspelling of an absent column: with the column ``wieght``, all weights would silently be
1. This file does not import NumPy or pyarrow, so that commands start quickly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from afresh.values.errors import InputError, did_you_mean

Kind: TypeAlias = Literal["text", "any", "number", "count", "time", "flag"]
"""The kinds of column. ``any`` is a value of any type, read as text; its cells may be many megabytes long."""

TEXT: Kind = "text"
NUMBER: Kind = "number"

_PLAIN = {
    "text": "text",
    "any": "one value",
    "number": "a number",
    "count": "a whole number",
    "time": "Unix seconds or an ISO 8601 time such as 2026-01-31T12:00:00Z",
    "flag": "0 or 1 (or true, false, yes, no)",
}
_SHORT = 5  # in names this short, one different letter usually makes another word: site, size


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its kind and the values that are allowed.

    ``required``  the file must have the column, and no cell of it may be empty.
    ``default``   the value of an empty cell of an optional column; None means NaN, "", 0 or False by kind.
    ``minimum``, ``maximum``  inclusive bounds; ``above`` is an exclusive lower bound.
    ``finite``    whether infinity is refused; NaN is always refused.
    ``whole``     whether numbers must be whole. Unlike with kind ``count``, an empty cell is NaN.
    ``if_set``    the name of a flag column: in rows in which the flag is 0, a required cell may be empty.
    ``what``      the meaning of the column in a few words, for messages and documentation.
    ``named_by_user``  whether an option named the column: then the file's header is right, not the option.

    >>> Column("rate", "number", required=True, minimum=0, what="changes per day").requirement
    'a finite number of 0 or more (changes per day)'
    >>> Column("level", "number", above=0, maximum=1).requirement
    'a finite number above 0 and at most 1'
    """

    name: str
    kind: Kind
    required: bool = False
    default: float | str | bool | None = None
    minimum: float = -math.inf
    maximum: float = math.inf
    above: float = -math.inf
    finite: bool = True
    whole: bool = False
    if_set: str = ""
    what: str = ""
    named_by_user: bool = False

    @property
    def requirement(self) -> str:
        """What a value must be, as text for an error message."""
        plain = _PLAIN[self.kind]
        if self.kind == "number" and self.finite:
            plain = "a whole number" if self.whole else "a finite number"
        limits = []
        if self.minimum > -math.inf:
            limits.append(f"of {self.minimum:g} or more")
        if self.above > -math.inf:
            limits.append(f"above {self.above:g}")
        if self.maximum < math.inf:
            limits.append(f"at most {self.maximum:g}")
        words = " ".join([plain, " and ".join(limits)]).strip()
        return f"{words} ({self.what})" if self.what else words

    @property
    def is_text(self) -> bool:
        return self.kind in ("text", "any")

    @property
    def empty_value(self) -> float | str | bool:
        """The value of an empty cell: the default of the column, or else the default of its kind."""
        if self.default is not None:
            return self.default
        if self.is_text:
            return ""
        if self.kind == "flag":
            return False
        return 0 if self.kind == "count" else math.nan


def match_header(path: str, names: Sequence[str], columns: Sequence[Column]) -> list[Column]:
    """Return the declared ``columns`` that the file has; ``names`` is its header. Raise ``InputError`` for
    repeated, missing and probably misspelt columns.

    >>> match_header("x.csv", ["item", "site"], [Column("item", "text"), Column("size", "number")])[0].name
    'item'
    >>> match_header("x.csv", ["item", "wieght"], [Column("weight", "number")])
    Traceback (most recent call last):
    afresh.values.errors.InputError: x.csv, column wieght: is unknown: did you mean 'weight'?
    """
    if any("\x00" in name or any("\ud800" <= letter <= "\udfff" for letter in name) for name in names):
        raise InputError("is not UTF-8 (its header is not): save the file as UTF-8", path=path)
    known = {column.name for column in columns}
    double = next((name for name in names if name in known and names.count(name) > 1), None)
    if double is not None:
        raise InputError("occurs twice in the header: keep one", path=path, column=double)
    absent = [column.name for column in columns if column.name not in names]
    unknown = [name for name in names if name not in known]
    fixed = [column.name for column in columns if column.name in absent and not column.named_by_user]
    for column in columns:
        if column.required and column.name in absent:
            raise InputError(_missing(column.name, unknown, names), path=path)
    for name in unknown:
        near = next((wanted for wanted in fixed if is_misspelling(name, wanted)), None)
        if near is not None:
            raise InputError(f"is unknown: did you mean {near!r}?", path=path, column=name)
    return [column for column in columns if column.name in names]


def is_misspelling(given: str, wanted: str) -> bool:
    """Return whether ``given`` is probably a misspelling of ``wanted``.

    The first letters must be equal. One error is allowed, or two if ``wanted`` has more than five letters. An
    error is an additional letter, a missing letter, two neighbours swapped or, in names of more than five
    letters, a different letter. Case, spaces, hyphens and underscores are ignored.

    >>> [is_misspelling(name, "weight") for name in ("Weight", "wieght", "weigth", "height", "width")]
    [True, True, True, False, False]
    >>> is_misspelling("site", "size"), is_misspelling("costs", "cost"), is_misspelling("Max-Age", "max_age")
    (False, True, True)
    """
    a, b = _letters(given), _letters(wanted)
    if a == b:
        return True
    if not a or not b or a[0] != b[0]:
        return False
    short = len(b) <= _SHORT
    return _count_errors(a, b, other_letter=2 if short else 1) <= (1 if short else 2)


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _count_errors(a: str, b: str, other_letter: int) -> int:
    """Return the number of errors that turn ``b`` into ``a``. A different letter counts ``other_letter``.
    This is the edit distance in which two swapped neighbours are one error (optimal string alignment)."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(row[-1] + 1, rows[-1][j] + 1, rows[-1][j - 1] + (0 if x == y else other_letter))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def _missing(name: str, unknown: Sequence[str], names: Sequence[str]) -> str:
    # The most common error is wrong case, and difflib does not find RATE similar to rate.
    near = next((other for other in unknown if is_misspelling(other, name)), None)
    hint = f": did you mean {near!r}?" if near else did_you_mean(name, unknown)
    shown = ", ".join(repr(other) if other.strip() != other or not other else other for other in names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"no column {name!r}{hint} It has {shown}{more}"
