"""All errors that afresh raises on purpose, as one tree.

    AfreshError                 the base class of all errors
    ├── UsageError              the command or call is wrong: an option, a unit, a name (exit 2)
    │   ├── UnknownItemError    there is no item with the key that was given
    │   ├── AmbiguousKeyError   several sources have an item with the key that was given
    │   └── WrongSettingsError  settings are wrong; has all problems
    ├── InputError              the data is wrong; names file, row and column if they are known (exit 1)
    │   └── CursorError         the change feed cannot be followed from this cursor any more: start again
    ├── InfeasibleError         no result meets the bounds; says by how much (exit 1)
    ├── OutputError             the result cannot be written (exit 1)
    ├── ListingError            a sitemap, feed or start page cannot be read (exit 1)
    └── StoreError              the store cannot do what was asked (exit 1); committed data is safe
        ├── StoreMissingError   there is no store at this address, or it may not be opened
        ├── StoreLockedError    another process has locked the store; try again
        ├── StoreReadOnlyError  the store may be read but not written
        ├── StoreFullError      no disk space is left for the store
        ├── StoreCorruptError   the store is damaged, or afresh did not write it
        └── StoreVersionError   a newer version of afresh wrote the store

Exceptions of libraries (OSError, ArrowInvalid, …) are translated into these errors where they occur.
``UsageError`` and ``InputError`` are also ``ValueError``, which Python callers expect for wrong arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from afresh.values.printable_text import hide_credentials


class AfreshError(Exception):
    """The base class of all errors of afresh. Its text is one line for people.
    ``exit_code`` is the exit status of a command that ends with this error. Commands print ``option_hint``
    after the text: it names options, which callers of Python and of the API do not have."""

    exit_code = 1
    option_hint = ""


class UsageError(AfreshError, ValueError):
    """The command or call is wrong: an unknown option value, unit or name."""

    exit_code = 2


class UnknownItemError(UsageError):
    """There is no item with this key."""


class AmbiguousKeyError(UsageError):
    """Several sources have an item with the key ``key``, and it was not said which of them is meant.

    >>> str(AmbiguousKeyError("'17'", ["shop-b", "shop-a"]))
    "item '17' is in several sources: shop-a, shop-b; name one of them"
    """

    option_hint = " (--source)"

    def __init__(self, key: str, sources: Iterable[str], where: str = "") -> None:
        """``key`` is the key for the message, in quotation marks; ``where`` is a place in the input."""
        self.key, self.sources = key, tuple(sorted(sources))
        names = ", ".join(self.sources)
        words = f"item {key} is in several sources: {names}; name one of them"
        super().__init__(f"{where}: {words}" if where else words)


class WrongSettingsError(UsageError):
    """Settings are wrong. ``problems`` has a sentence for each; the text is the first of them.

    >>> str(WrongSettingsError(["line 2: a", "line 5: b"]))
    "line 2: a (1 more: 'afresh config check')"
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        more = f" ({len(self.problems) - 1} more: 'afresh config check')" if len(self.problems) > 1 else ""
        super().__init__(self.problems[0] + more)


class InputError(AfreshError, ValueError):
    """The data is wrong; the message names file, row, line and column.

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
        """Build the message from the problem and its place.
        ``row`` is the number of the data row, from 1. ``line`` is its line in the file, by default row + 1;
        0 leaves the line out of the message."""
        self.problem, self.path, self.row, self.column = problem, path, row, column
        where = [path] if path else []
        if row is not None:
            number = row + 1 if line is None else line
            where.append(f"row {row} (line {number})" if number else f"row {row}")
        if column is not None:
            where.append(f"column {column}")
        super().__init__(f"{', '.join(where)}: {problem}" if where else problem)


class CursorError(InputError):
    """The change feed cannot be followed from a cursor: it is too old, or of another feed. The text says how
    to start again."""


class InfeasibleError(AfreshError):
    """No result meets the bounds that were given; the text says which bounds fail and by how much."""


class OutputError(AfreshError):
    """The result cannot be written. No partly written file is left behind."""


class ListingError(AfreshError):
    """One or more documents that list items (sitemaps, feeds) could not be read.
    ``problems`` maps the address of each one to its problem. ``new`` is the number of items that were added
    from the other documents.

    >>> str(ListingError({"https://a.test/map.xml": "404 Not Found"}, 2))
    'https://a.test/map.xml cannot be read: 404 Not Found; it was not added'
    """

    def __init__(self, problems: Mapping[str, str], new: int = 0) -> None:
        self.problems, self.new = dict(problems), new
        told = [f"{url} cannot be read: {problem}" for url, problem in self.problems.items()]
        said = "; ".join(map(hide_credentials, told))
        super().__init__(f"{said}; {'it was' if len(self.problems) == 1 else 'they were'} not added")


class StoreError(AfreshError):
    """The store cannot do what was asked. Data that was already committed is safe."""


class StoreMissingError(StoreError):
    """There is no store at this address, or it may not be opened."""


class StoreLockedError(StoreError):
    """Another process has locked the store; the same call may succeed later."""


class StoreReadOnlyError(StoreError):
    """The store may be read but not written."""


class StoreFullError(StoreError):
    """No disk space is left for the store; the same call can succeed after space was freed."""


class StoreCorruptError(StoreError):
    """The store is damaged, or the file is not a store of afresh."""


class StoreVersionError(StoreError):
    """A newer version of afresh wrote the store."""


def one_of(kind: str, given: str, known: Iterable[str]) -> str:
    """Return ``given`` if it is in ``known``; else raise ``UsageError`` with the most similar name.

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
    """Return the end of an error message: the name in ``known`` that is most similar to ``given``, or ".".

    >>> did_you_mean("wieght", ["weight", "cost"]), did_you_mean("zzz", ["weight"])
    (": did you mean 'weight'?", '.')
    """
    near = get_close_matches(given, list(known), n=1, cutoff=0.6)
    return f": did you mean {near[0]!r}?" if near else "."
