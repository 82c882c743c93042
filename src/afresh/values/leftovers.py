"""The temporary files and child processes of this program, listed while they exist.

Whoever makes one removes it. The list is for a program that has to end at once: it can then clear away what
the code that was interrupted no longer can.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Leftovers:
    """What has to be removed if the program ends now. Any thread may read the sets."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.process_groups: set[int] = set()
        self.processes: set[int] = set()

    @contextmanager
    def path(self, name: object, *endings: str) -> Iterator[None]:
        """A file or folder of this name may exist while the context lasts; with ``endings`` others beside it.

        Enter it before the file is made, so that there is never a file that is not listed.

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
        """A child process exists while the context lasts; ``leads_group``: its own children end with it."""
        listed = self.process_groups if leads_group else self.processes
        listed.add(number)
        try:
            yield
        finally:
            listed.discard(number)


LEFTOVERS = Leftovers()
"""Those of this program: a process has one list, as it has one set of signal handlers."""
