"""A list of the temporary files and child processes of this program, while they exist.

The code that creates a file or process also removes it. The list is for a program that must end at once: it
removes everything in the list, because the interrupted code cannot do so any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Leftovers:
    """What must be removed if the program ends now. Any thread may read the sets."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.process_groups: set[int] = set()
        self.processes: set[int] = set()

    @contextmanager
    def path(self, name: object, *endings: str) -> Iterator[None]:
        """List the path ``name``, and ``name`` followed by each of ``endings``, until the context ends.

        Enter the context before the file is created, so that every existing file is listed.

        >>> with LEFTOVERS.path("store.db", "-wal"):
        ...     sorted(LEFTOVERS.paths)
        ['store.db', 'store.db-wal']
        >>> LEFTOVERS.paths
        set()
        """
        names = {f"{name}{ending}" for ending in ("", *endings)}
        self.paths |= names
        try:
            yield
        finally:
            self.paths -= names

    @contextmanager
    def process(self, number: int, *, leads_group: bool = False) -> Iterator[None]:
        """List a child process until the context ends; ``leads_group`` lists its whole process group."""
        listed = self.process_groups if leads_group else self.processes
        listed.add(number)
        try:
            yield
        finally:
            listed.discard(number)


LEFTOVERS = Leftovers()
"""The list of this program. It is global because signal handlers, which use it, are global too."""
