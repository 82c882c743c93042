"""The processes of a browser, as ``/proc`` shows them: how much memory they take, and how to end them."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterable
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
        children.setdefault(parent_of(int(folder.name)), []).append(int(folder.name))
    found = [process]
    for one in found:
        found += children.get(one, [])
    return found


def parent_of(process: int) -> int:
    """Return the process that started another one; 0 if it is not known.

    >>> parent_of(os.getpid()) in (os.getppid(), 0)
    True
    """
    try:
        # The name of the program, in brackets, may contain anything.
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def own_child_above(process: int) -> int:
    """Return the child of this process from which a descendant of it comes; ``process`` itself if it comes
    from none."""
    child, parent = process, parent_of(process)
    while parent not in (0, os.getpid()):
        child, parent = parent, parent_of(parent)
    return child if parent else process


def find_marked(mark: str) -> int | None:
    """Return the browser among this process's descendants: the outermost one that runs the program of the
    innermost whose command line contains ``mark``. Outside of it may be scripts that started it with the same
    arguments, and inside of it processes that it has just forked, which have its command line until they
    start their own program."""
    marked = []
    for process in descendants(os.getpid())[1:]:
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{process}/cmdline").read_bytes():
                marked.append((process, program_of(process)))
    programs = [program for _, program in marked if program]
    return next((process for process, program in marked if program == programs[-1]), None)


def memory_bytes(process: int) -> int:
    """Return the memory that a process and its descendants take: what is their own, without shared pages."""
    total = 0
    for one in descendants(process):
        with suppress(OSError, ValueError, IndexError):
            _, resident, shared, *_ = map(int, Path(f"/proc/{one}/statm").read_text().split())
            total += max(resident - shared, 0) * resource.getpagesize()
    return total


def program_of(process: int) -> str:
    """Return the path of the program that a process runs; empty if it has ended."""
    try:
        return str(Path(f"/proc/{process}/exe").readlink())
    except OSError:
        return ""


def option_of(process: int, name: str) -> str:
    """Return the value of the option ``name=value`` of a process; empty if it has none."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    prefix = os.fsencode(name) + b"="
    return next((os.fsdecode(word[len(prefix) :]) for word in words if word.startswith(prefix)), "")


def kill_tree(process: int, known: Iterable[int], program: str) -> None:
    """Kill a process and its descendants, as far as they run ``program``: another process may have their
    numbers by now. ``known`` are earlier descendants, which are no longer found when it has ended."""
    for one in {*descendants(process), *known}:
        if program and program_of(one) == program:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
