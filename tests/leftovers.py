"""A pytest plugin: a run of the tests leaves no process and no temporary file behind, or it fails.

The run gets a mark of its own in the environment and a folder of its own for temporary files; every program
that a test starts inherits both. At the end, processes that still carry the mark (or are children, or work in
the folder) and files that are still in the folder are named, ended and removed, and the run has failed. The
same happens when the run is interrupted or told to end. Sockets need no look of their own: a port is open
only as long as a process holds it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import tempfile
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest

MARK = "AFRESH_TEST_RUN"
# A process that was told to end needs a moment; one that was forgotten stays however long one waits.
TIME_TO_END_S = float(os.environ.get("AFRESH_TEST_TIME_TO_END", "10"))
# What Python itself keeps beside a process, and ends with it.
_PYTHONS_OWN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
_PYTESTS_OWN = "pytest-of-"
_LEAST_MEMORY = 4 << 30  # bytes: several times what the temporary files of a run take


@dataclass(frozen=True, slots=True)
class Process:
    """A running process, as ``/proc`` shows it."""

    pid: int
    parent: int
    command: str

    def __str__(self) -> str:
        """For the report."""
        return f"process {self.pid}: {self.command}"


def _quickest_folder() -> str | None:
    """Return a folder in memory for temporary files, if there is a large one; None for the usual one.

    A store waits for the disk at every commit. On a disk that others use too, that was a fifth of the run.
    """
    memory = "/dev/shm"
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK | os.X_OK):
        return None
    found = os.statvfs(memory)
    is_large = found.f_bavail * found.f_frsize > _LEAST_MEMORY
    return memory if is_large and not found.f_flag & os.ST_NOEXEC else None


class Leftovers:
    """Marks the run at its beginning, and looks for what is left at its end."""

    def __init__(self) -> None:
        """Mark this process, for those that it starts."""
        # An inner run of pytest belongs to the outer one too.
        self._mark = f"{os.environ.get(MARK, '')}/{uuid.uuid4()}"
        self._outer = {name: os.environ.get(name) for name in (MARK, "TMPDIR")}
        folder = tempfile.mkdtemp(prefix="afresh-", dir=_quickest_folder())  # short: paths of sockets are
        self._folder = Path(folder)
        self._folder.chmod(0o1777)  # as /tmp: some tests run programs as another user
        os.environ |= {MARK: self._mark, "TMPDIR": str(self._folder)}
        tempfile.tempdir = None  # to be read again from the environment

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Told to end, pytest clears up as after Ctrl-C; it would just stop otherwise."""

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            signal.signal(
                signal.SIGTERM, signal.SIG_IGN
            )  # once is enough: clearing up is not to be disturbed
            session.shouldstop = "told to end by SIGTERM"  # also where a test takes the exception for its own
            raise KeyboardInterrupt

        signal.signal(signal.SIGTERM, interrupt)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Look when all fixtures and all workers have ended."""
        try:
            yield
        finally:
            before = signal.signal(
                signal.SIGINT, signal.SIG_IGN
            )  # an impatient second one must not disturb it
            found = [str(one) for one in self._processes()]
            found += [f"temporary file {path}" for path in self._files()]
            self._clear()
            signal.signal(signal.SIGINT, before)
            if found:
                _report(session.config, found)
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_unconfigure(self) -> None:
        """Give the process its environment back."""
        self._clear()
        for name, value in self._outer.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        tempfile.tempdir = None

    def _processes(self) -> list[Process]:
        """Those that do not end by themselves within the limit; they have been ended when this returns."""
        left = [one for one in self._of_this_run() if not _ends_within(one.pid, TIME_TO_END_S)]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for one in left:
                with suppress(ProcessLookupError):
                    os.kill(one.pid, number)
            for one in left:
                _ends_within(one.pid, TIME_TO_END_S)
        return left

    def _of_this_run(self) -> Iterator[Process]:
        """In the order of their ids."""
        everything = {one.pid: one for one in _all_processes()}
        for pid, one in sorted(everything.items()):
            if pid == os.getpid() or any(name in one.command for name in _PYTHONS_OWN):
                continue
            if _is_below(one, everything) or self._is_marked(one):
                yield one

    def _is_marked(self, one: Process) -> bool:
        folder = str(self._folder)
        mark = f"{MARK}={self._mark}".encode()
        inherited = any(entry.startswith(mark) for entry in _read(one.pid, "environ").split(b"\0"))
        return inherited or folder in one.command or _works_in(one.pid).startswith(folder)

    def _files(self) -> list[Path]:
        """All but the folder of ``tmp_path``, which pytest clears itself."""
        if not self._folder.exists():
            return []
        return sorted(path for path in self._folder.iterdir() if not path.name.startswith(_PYTESTS_OWN))

    def _clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    """In the process that the user started; its workers inherit what it sets."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Leftovers(), "leftovers of the run")


def _report(config: pytest.Config, found: list[str]) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    reporter.ensure_newline()
    reporter.section("left behind by the tests", sep="=", red=True, bold=True)
    for line in found:
        reporter.write_line(line)
    reporter.write_line("Ended or removed now. A test that starts something also ends it, whatever happens.")


def _all_processes() -> Iterator[Process]:
    """All that live; a zombie has ended, and only waits to be asked for its exit status."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        # The name stands in parentheses and may hold anything; after it come the state and the parent.
        after_name = _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()
        if after_name and after_name[0] not in "ZX":
            command = _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
            yield Process(pid, int(after_name[1]), command)


def _is_below(one: Process, everything: dict[int, Process]) -> bool:
    """Is it a child of this process, or of one of its children?"""
    above: Process | None = one
    while above is not None:
        if above.parent == os.getpid():
            return True
        above = everything.get(above.parent)
    return False


def _read(pid: int, name: str) -> bytes:
    """Nothing of a process that has ended or belongs to somebody else."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def _works_in(pid: int) -> str:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/cwd").readlink())
    return ""


def _ends_within(pid: int, seconds: float) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)
