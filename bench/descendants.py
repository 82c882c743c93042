"""What all processes that a benchmark starts take together: memory and processor time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_EVERY_S = 0.25
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Work:
    """What a command took, with all processes that it started: time, processor time, and peak memory."""

    seconds: float
    processor_s: float
    peak_bytes: float


@dataclass(slots=True)
class Seen:
    """What was seen of the descendants of this process: the processor time of each, and the peak of their
    memory together."""

    peak_bytes: float = 0.0
    each_s: dict[int, float] = field(default_factory=dict)

    @property
    def processor_s(self) -> float:
        return sum(self.each_s.values())

    def look(self) -> None:
        """Look at all descendants once. The last quarter second of a process may be missing."""
        below = _descendants()
        self.each_s |= below
        self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_size, below)))


@contextmanager
def watching_descendants() -> Iterator[Seen]:
    """Yield what is seen of the descendants of this process until the block ends."""
    seen, ended = Seen(), threading.Event()

    def watch() -> None:
        while not ended.wait(_EVERY_S):
            seen.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def _descendants() -> dict[int, float]:
    """Return the processor time of every process below this one, in seconds, by process."""
    found = dict(filter(None, map(_stat, Path("/proc").glob("[0-9]*"))))
    below = {os.getpid()}
    while more := {child for child, (parent, _) in found.items() if parent in below} - below:
        below |= more
    return {process: found[process][1] for process in below - {os.getpid()}}


def _stat(folder: Path) -> tuple[int, tuple[int, float]] | None:
    """Return a tuple (process, (its parent, its processor time)); None if it has ended."""
    try:
        # After the name, which may contain anything: state, parent, …, user and system time as 12th and 13th.
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(folder.name), (int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS_PER_S)


def _proportional_size(process: int) -> float:
    """Return the memory of a process in bytes; what several processes share counts in parts."""
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024.0 * float(line.split()[1])
    except OSError:
        pass  # it has ended
    return 0.0
