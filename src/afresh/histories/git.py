"""Reads the history of a git repository: each path is an item, each commit that touches it is a change.

The history covers a period from a start to an end, called the window. Only first parents are followed, so
that a branch counts once, when it is merged. Creating or deleting a file is a change too, because a copy made
before is then wrong. The items are all paths that exist at any time in the window, including those that never
change. Commits are read from newest to oldest, so an item has its last name, and renames tell earlier names.
"""

from __future__ import annotations

import subprocess
import tempfile
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

import numpy as np

from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import InputError
from afresh.values.leftovers import LEFTOVERS

_ALWAYS = ("-c", "log.showRoot=true", "-c", "log.showSignature=false", "-c", "diff.renameLimit=2000")
_DIFFS = ("--first-parent", "--diff-merges=first-parent", "--no-ext-diff", "--no-color", "--name-status")
_COMMITS_PER_REPORT = 500
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class GitHistory:
    """The changes of all items, sorted by time: ``items[item[j]]`` changed at ``time[j]`` (Unix seconds).
    The window is from ``start`` to ``end``. Commits at or before ``start`` are no changes."""

    items: list[str]
    item: Ints
    time: Float64s
    start: float
    end: float
    commits: int


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The commits of the window: those after the commit ``before`` (None for all), up to the commit ``last``.
    ``last`` is included. ``commits`` is their number; ``start`` and ``end`` are Unix seconds."""

    start: float
    end: float
    before: str | None
    last: str
    commits: int


def read_git_history(
    repository: str | Path,
    *,
    paths: Sequence[str] = (),
    start: float | None = None,
    end: float | None = None,
    follow_renames: bool = False,
    on_read: Callable[[float], None] | None = None,
) -> GitHistory:
    """Read the changes of all paths, or of those that match one of ``paths`` (git globs: ``docs/**``).
    The window goes from the first commit to the last unless ``start`` or ``end`` (Unix seconds) are given.
    With ``follow_renames``, a renamed file stays the same item, and a rename alone is no change. ``on_read``
    is called with the share of the commits, from 0 to 1, that has been read."""
    folder = Path(repository)
    window = find_commit_range(folder, start, end)
    specs = [spec if spec.startswith(":") else f":(top,glob){spec}" for spec in paths]
    changes = _Changes()
    for path in _paths_at(folder, window.last, specs):
        changes.item_of(path)
    for read, (time, touched) in enumerate(_commits(folder, window, specs, follow_renames)):
        # Clocks of committers differ: a commit that git places in the window gets a time in the window.
        changes.add(min(max(time, window.start + 1), window.end), touched)
        if on_read and read % _COMMITS_PER_REPORT == 0:
            on_read(read / max(window.commits, 1))
    return changes.history(window)


def find_commit_range(repository: Path, start: float | None, end: float | None) -> CommitRange:
    """Return the range of the first-parent commits in the window, found in one pass over all commits."""
    before = last = None
    before_count = last_count = count = 0
    newest = oldest = 0.0
    name = ""
    every = [*_ALWAYS, "log", "--first-parent", "--format=%H %ct", "--no-color"]
    for line in git_fields(repository, every, between=b"\n"):
        name, _, seconds = line.decode().partition(" ")
        oldest = float(seconds)
        newest = newest if count else oldest
        if last is None and (end is None or oldest <= end):
            last, last_count = name, count
        if before is None and start is not None and oldest <= start:
            before, before_count = name, count
        count += 1
    if last is None:
        raise InputError("has no commit before the end of the window", path=str(repository))
    if start is None:
        before, before_count = name, count - 1
    window_start, window_end = oldest if start is None else start, newest if end is None else end
    if window_start >= window_end:
        problem = f"the window is empty: it starts at {window_start:.0f} and ends at {window_end:.0f}"
        raise InputError(f"{problem} (Unix seconds)", path=str(repository))
    commits = (count if before is None else before_count) - last_count
    return CommitRange(window_start, window_end, before, last, commits)


def _commits(
    repository: Path, window: CommitRange, specs: Sequence[str], follow_renames: bool
) -> Iterator[tuple[float, list[_PathChange]]]:
    """Yield the time and the touched paths of each commit in the window, newest first."""
    if window.before == window.last:
        return
    renames = "--find-renames" if follow_renames else "--no-renames"
    span = window.last if window.before is None else f"{window.before}..{window.last}"
    fields = git_fields(
        repository, [*_ALWAYS, "log", "-z", *_DIFFS, renames, "--format=%ct", span, "--", *specs]
    )
    time, touched = None, list[_PathChange]()
    for raw in fields:
        word = raw.strip()  # git writes a newline between a commit and its paths
        if not word[:1].isalpha():
            if time is not None:
                yield time, touched
            time, touched = float(word), []
        elif word[:1] == b"R":
            before, after = next(fields), next(fields)
            touched.append(_PathChange(word[:1], _text(after), _text(before), word[1:] != b"100"))
        else:
            path = _text(next(fields))
            touched.append(_PathChange(word[:1], path, path))
    if time is not None:
        yield time, touched


def _paths_at(repository: Path, commit: str, specs: Sequence[str]) -> Iterator[str]:
    """Yield every path in a commit, by comparing it with an empty tree: only git's diffs understand globs."""
    (nothing,) = git_fields(repository, ["hash-object", "-t", "tree", "--stdin"], between=b"\n")
    arguments = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", _text(nothing), commit, "--", *specs]
    yield from map(_text, git_fields(repository, arguments))


def _text(path: bytes) -> str:
    return path.decode(errors="backslashreplace")


@dataclass(frozen=True, slots=True)
class _PathChange:
    """One path in one commit: git's status letter (A, D, M, T, R), the path after and before the commit, and
    whether its content changed."""

    letter: bytes
    after: str
    before: str
    content: bool = True


@dataclass(slots=True)
class _Changes:
    """Collects changes, newest first, and knows the item of each path at the commit that is being read."""

    _items: dict[str, int] = field(default_factory=dict)
    _moved: dict[str, int] = field(default_factory=dict)  # earlier name → item
    _item: array[int] = field(default_factory=lambda: array("q"))
    _time: array[float] = field(default_factory=lambda: array("d"))

    def item_of(self, path: str) -> int:
        """Return the item of ``path`` at the commit that is being read; an unknown path is a new item."""
        moved = self._moved.get(path)
        return self._items.setdefault(path, len(self._items)) if moved is None else moved

    def add(self, time: float, touched: Iterable[_PathChange]) -> None:
        """Record the changes of one commit. Undo its additions and renames in the map from paths to items,
        because the next commit that is read is the one before it."""
        for one in touched:
            item = self.item_of(one.after)
            if one.content:
                self._item.append(item)
                self._time.append(time)
            if one.letter in b"AR":
                self._moved.pop(one.after, None)
            if one.letter == b"R":
                self._moved[one.before] = item

    def history(self, window: CommitRange) -> GitHistory:
        """Return the history, with items sorted by name and changes sorted by time."""
        names = sorted(self._items)
        place = np.empty(len(names), dtype=np.int64)
        place[[self._items[name] for name in names]] = np.arange(len(names))
        item = place[np.frombuffer(self._item, dtype=np.int64)] if self._item else np.zeros(0, np.int64)
        time = np.frombuffer(self._time, dtype=np.float64) if self._time else np.zeros(0)
        order = np.lexsort((item, time))
        return GitHistory(names, item[order], time[order], window.start, window.end, window.commits)


def git_fields(
    repository: Path, arguments: Sequence[str], *, between: bytes = b"\0"
) -> Generator[bytes, None, None]:
    """Run ``git -C repository arguments…`` and yield its output, split at ``between``. At most one field and
    one chunk are in memory at a time. git is killed if the caller stops reading early."""
    with (
        tempfile.TemporaryFile() as messages,
        _start(repository, arguments, messages) as process,
        LEFTOVERS.process(process.pid),
    ):
        stream = cast("IO[bytes]", process.stdout)  # not None, because stdout is a pipe
        try:
            rest = b""
            while chunk := stream.read(_CHUNK_BYTES):
                *fields, rest = (rest + chunk).split(between)
                yield from fields
            if rest:
                yield rest
        except BaseException:  # the caller stopped reading, or was interrupted
            process.kill()
            raise
        if process.wait() != 0:
            messages.seek(0)
            raise InputError(_error_text(messages.read()), path=str(repository))


def _start(repository: Path, arguments: Sequence[str], messages: IO[bytes]) -> subprocess.Popen[bytes]:
    if not repository.is_dir():
        raise InputError("is no folder: give the folder of a git repository", path=str(repository))
    try:
        return subprocess.Popen(
            ["git", "-C", str(repository), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=messages,  # a file: git would block if a pipe that nobody reads were full
        )
    except FileNotFoundError:
        raise InputError("cannot be read: the command 'git' is not installed") from None


def _error_text(message: bytes) -> str:
    lines = message.decode(errors="replace").strip().splitlines()
    text = lines[0].removeprefix("fatal: ") if lines else "git failed without a message"
    if "not a git repository" in text:
        return "is not a git repository"
    return f"git says: {text}"
