"""The processes of a browser, as ``/proc`` shows them: how much memory they take, and how to end them."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path


def descendants(process: int) -> list[int]:
    """Return a process and all processes that it started, directly or not. Elsewhere than on Linux, only the
    process itself is found.

    >>> os.getpid() in descendants(os.getpid())
    True
    """
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            # The name of the program, in brackets, may contain anything.
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    found = [process]
    for one in found:
        found += children.get(one, [])
    return found


def find_marked(mark: str) -> int | None:
    """Return the first started of this process's descendants whose command line contains ``mark``."""
    for process in sorted(descendants(os.getpid())[1:]):
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{process}/cmdline").read_bytes():
                return process
    return None


def memory_bytes(process: int) -> int:
    """Return the memory that a process and its descendants take: what is their own, without shared pages."""
    total = 0
    for one in descendants(process):
        with suppress(OSError, ValueError, IndexError):
            _, resident, shared, *_ = map(int, Path(f"/proc/{one}/statm").read_text().split())
            total += max(resident - shared, 0) * resource.getpagesize()
    return total


def kill_tree(process: int) -> None:
    """Kill a process and its descendants; those that have ended are ignored."""
    for one in descendants(process):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
