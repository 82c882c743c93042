"""The end of a PostgreSQL server, whatever state it is in; as a program, the guard that waits for that end.

It imports nothing of the virtual environment, so that the guard starts at once.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

USERS = "users"
_REMOVE = 0  # IPC_RMID
_SEGMENT_LINE = 6  # of postmaster.pid, from 0: key and id of the shared memory


def end_server(folder: Path) -> None:
    """Kill the processes that work in the folder; remove their shared memory and the folder.

    Nothing of it is needed any more, and ``pg_ctl`` can stop a server but not an ``initdb`` in its middle.
    """
    while pids := list(_working_in(folder)):
        for pid in pids:
            _kill(pid)
    with suppress(OSError, IndexError):  # a server that has been stopped has removed it
        line = (folder / "data" / "postmaster.pid").read_text().splitlines()[_SEGMENT_LINE]
        ctypes.CDLL(None).shmctl(int(line.split()[1]), _REMOVE, None)
    shutil.rmtree(folder, ignore_errors=True)


def _working_in(folder: Path) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it is no process, somebody else's, or has just ended
            if (entry / "cwd").readlink().is_relative_to(folder):
                yield int(entry.name)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [])
        finally:
            os.close(handle)


if __name__ == "__main__":
    # Files of the test run that can be inherited, as Ray's logs, would seem to be in use as long as it waits.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    with (Path(sys.argv[1]) / USERS).open() as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        end_server(Path(sys.argv[1]))
