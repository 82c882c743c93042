"""Every error afresh raises on purpose, as one tree.

    AfreshError                 the root of all
    ├── UsageError              the command or call is wrong: an option, a unit, a name (exit 2)
    ├── InputError              the data is wrong; names file, row and column where known (exit 1)
    ├── InfeasibleError         no answer meets the bounds; says by how much (exit 1)
    ├── OutputError             the result cannot be written (exit 1)
    ├── ListingError            a sitemap, feed or start page cannot be read (exit 1)
    └── StoreError              the store cannot do it (exit 1); nothing committed is lost
        ├── StoreMissingError   there is none at this address, or it may not be opened
        ├── StoreLockedError    another process holds it; try again
        ├── StoreReadOnlyError  it may be read but not written
        ├── StoreFullError      no space is left for it
        ├── StoreCorruptError   it is damaged, or no store of afresh
        └── StoreVersionError   a newer afresh wrote it

Library exceptions (OSError, ArrowInvalid, …) are turned into these where they arise; none leaks out.
``UsageError`` and ``InputError`` are also ``ValueError``, which is what a caller from Python expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


class AfreshError(Exception):
    """The root: its text is one line for people, its ``exit_code`` what the command returns."""

    exit_code = 1


class UsageError(AfreshError, ValueError):
    """The command or call is wrong: an unknown option value, unit or name."""

    exit_code = 2


class InputError(AfreshError, ValueError):
    """The data is wrong.

    >>> str(InputError("is -3, a rate must be 0 or more", path="items.csv", row=4, column="rate"))
    'items.csv, row 4 (line 5), column rate: is -3, a rate must be 0 or more'
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | None = None,
        row: int | None = None,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        """``row`` counts data rows from 1; ``line`` is the line in the file, by default row + 1, 0 if it has
        no lines."""
        self.problem, self.path, self.row, self.column = problem, path, row, column
        where = [path] if path else []
        if row is not None:
            number = row + 1 if line is None else line
            where.append(f"row {row} (line {number})" if number else f"row {row}")
        if column is not None:
            where.append(f"column {column}")
        super().__init__(f"{', '.join(where)}: {problem}" if where else problem)


class InfeasibleError(AfreshError):
    """No result meets the bounds; the text says which ones and by how much."""


class OutputError(AfreshError):
    """The result cannot be written; nothing half-written is left behind."""


class ListingError(AfreshError):
    """Some documents that list items could not be read. ``new`` is how many items the others added.

    >>> str(ListingError({"https://a.test/map.xml": "404 Not Found"}, 2))
    'https://a.test/map.xml cannot be read: 404 Not Found; it was not added'
    """

    def __init__(self, problems: Mapping[str, str], new: int = 0) -> None:
        self.problems, self.new = dict(problems), new
        said = "; ".join(f"{url} cannot be read: {problem}" for url, problem in self.problems.items())
        super().__init__(f"{said}; {'it was' if len(self.problems) == 1 else 'they were'} not added")


class StoreError(AfreshError):
    """The store cannot do what was asked; what was committed before is still there."""


class StoreMissingError(StoreError):
    """There is no store at this address, or it may not be opened."""


class StoreLockedError(StoreError):
    """Another process holds the store; the same call may succeed later."""


class StoreReadOnlyError(StoreError):
    """The store may be read but not written."""


class StoreFullError(StoreError):
    """No space is left; the same call succeeds once there is some."""


class StoreCorruptError(StoreError):
    """The store is damaged, or is no store of afresh."""


class StoreVersionError(StoreError):
    """A newer afresh wrote the store."""


def one_of(kind: str, given: str, known: Iterable[str]) -> str:
    """Return ``given`` if it is known, else refuse it with the nearest name.

    >>> one_of("objective", "freshness", ["freshness", "age"])
    'freshness'
    >>> one_of("policy", "optimum", ["optimal", "uniform"])
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown policy 'optimum': did you mean 'optimal'? One of optimal, uniform
    """
    names = list(known)
    if given in names:
        return given
    raise UsageError(f"unknown {kind} {given!r}{did_you_mean(given, names)} One of {', '.join(names)}")


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a suggestion of the most similar name, or a full stop.

    >>> did_you_mean("wieght", ["weight", "cost"]), did_you_mean("zzz", ["weight"])
    (": did you mean 'weight'?", '.')
    """
    near = get_close_matches(given, list(known), n=1, cutoff=0.6)
    return f": did you mean {near[0]!r}?" if near else "."
