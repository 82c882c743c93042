"""Matches the columns that a file has with the columns that it should have.

Unknown columns are ignored, since tables carry columns for other programs, unless the name looks like a
misspelt name of a column that is absent: ``wieght`` would otherwise silently mean that all weights are 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from afresh.tables.columns import Column
from afresh.values.errors import InputError, did_you_mean

_SHORT = 5  # in names this short one other letter makes another word: site is not size


def match_header(path: str, names: Sequence[str], columns: Sequence[Column]) -> list[Column]:
    """Return the declared columns that the file has; refuse double, missing and probably misspelt ones.

    >>> match_header("x.csv", ["item", "site"], [Column("item", "text"), Column("size", "number")])[0].name
    'item'
    >>> match_header("x.csv", ["item", "wieght"], [Column("weight", "number")])
    Traceback (most recent call last):
    afresh.values.errors.InputError: x.csv, column wieght: is unknown: did you mean 'weight'?
    """
    if any("\x00" in name or any("\ud800" <= letter <= "\udfff" for letter in name) for name in names):
        raise InputError("is not UTF-8 (its header is not): save the file as UTF-8", path=path)
    _refuse_doubles(path, names, {column.name for column in columns})
    absent = [column.name for column in columns if column.name not in names]
    known = {column.name for column in columns}
    unknown = [name for name in names if name not in known]
    for column in columns:
        if column.required and column.name in absent:
            raise InputError(_missing(column.name, unknown, names), path=path)
    for name in unknown:
        near = next((wanted for wanted in absent if is_misspelling(name, wanted)), None)
        if near is not None:
            raise InputError(f"is unknown: did you mean {near!r}?", path=path, column=name)
    return [column for column in columns if column.name in names]


def is_misspelling(given: str, wanted: str) -> bool:
    """Return whether ``given`` is probably ``wanted`` mistyped: same first letter, one slip, two in long
    names.

    A slip is a letter too many, too few, swapped with its neighbour, or, in names of more than
    five letters, another letter. Case, spaces, hyphens and underscores do not count.

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
    return _count_slips(a, b, other_letter=2 if short else 1) <= (1 if short else 2)


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _count_slips(a: str, b: str, other_letter: int) -> int:
    """Return the edit distance with swaps of neighbours (optimal string alignment)."""
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


def _refuse_doubles(path: str, names: Sequence[str], known: set[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen and name in known:
            raise InputError("stands twice in the header: keep one", path=path, column=name)
        seen.add(name)


def _missing(name: str, unknown: Sequence[str], names: Sequence[str]) -> str:
    # Case is the commonest slip of all, and difflib does not see RATE as near to rate.
    near = next((other for other in unknown if is_misspelling(other, name)), None)
    hint = f": did you mean {near!r}?" if near else did_you_mean(name, unknown)
    shown = ", ".join(repr(other) if other.strip() != other or not other else other for other in names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"no column {name!r}{hint} It has {shown}{more}"
