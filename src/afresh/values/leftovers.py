"""A list of the temporary files and child processes that this program has at the moment.

Normally the code that creates a file or process also removes it. If the program must end at once, that code
cannot run any more, and the program removes everything in the list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class Leftovers:
    """The files and processes that must be removed if the program ends now. Any thread may read the sets."""

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
        """List the child process with the id ``number`` until the context ends.
        ``leads_group=True`` lists the whole process group that the process leads."""
        listed = self.process_groups if leads_group else self.processes
        listed.add(number)
        try:
            yield
        finally:
            listed.discard(number)


LEFTOVERS = Leftovers()
"""The list of this program. It is global because signal handlers, which use it, are global too."""


def is_alive(process: int) -> bool:
    """Return whether there is a process with this number on this machine, of whatever user."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
