"""Declarations of the columns that a kind of file must have; every reader checks them.

This file does not import NumPy or pyarrow, so that commands which only declare their files start quickly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "number", "count", "time", "flag"]
TEXT: Kind = "text"
NUMBER: Kind = "number"

_PLAIN = {
    "text": "text",
    "number": "a number",
    "count": "a whole number",
    "time": "Unix seconds or an ISO 8601 time such as 2026-01-31T12:00:00Z",
    "flag": "0 or 1 (or true, false, yes, no)",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its kind and the values that are allowed.

    ``required``  the file must have the column, and no cell of it may be empty.
    ``default``   the value of an empty cell of an optional column; None means NaN, "", 0 or False by kind.
    ``minimum``, ``maximum``  inclusive bounds; ``above`` is an exclusive lower one.
    ``finite``    whether ``inf`` is refused (NaN always is).
    ``whole``     whether a number must be whole although empty cells are NaN.
    ``if_set``    the name of a flag column: where that is 0, a required cell may be empty after all.
    ``what``      what the column means, in a few words, for messages and documentation.

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

    @property
    def requirement(self) -> str:
        """What a value must be, in words."""
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
    def empty_value(self) -> float | str | bool:
        """The value of an empty cell: the default, or the empty value of its kind."""
        if self.default is not None:
            return self.default
        if self.kind == "text":
            return ""
        if self.kind == "flag":
            return False
        return 0 if self.kind == "count" else math.nan
