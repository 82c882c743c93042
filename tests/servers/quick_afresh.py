"""``afresh`` as processes that begin at once: forks of one that has imported everything (``warm_afresh.py``).

Starting Python and importing NumPy is most of what a small command costs. A fork is a process like any other
and can be stopped and killed; only what happens before ``main`` is not in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tests.waiting import LIMIT_S, until

_SERVER = Path(__file__).parent / "warm_afresh.py"
# What runs in place of afresh in a shell: it needs little of Python, and so starts at once.
_CALLER = """\
import os, socket, struct, sys
import json
_, address, file, *words = sys.argv
given = {"file": file, "words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
text = json.dumps(given).encode()
with socket.socket(socket.AF_UNIX) as line:
    line.connect(address)
    socket.send_fds(line, [struct.pack("!I", len(text))], [0, 1, 2])
    line.sendall(text)
    line.recv(4)
    code = line.recv(4)
sys.exit(struct.unpack("!i", code)[0] if code else 70)
"""


class QuickProcess:
    """A command under way, with the methods of ``subprocess.Popen`` that tests need."""

    def __init__(self, line: socket.socket, words: Sequence[str]) -> None:
        self._line, self._words = line, words
        head, (self._handle,), _, _ = socket.recv_fds(line, 4, 1)
        (self.pid,) = struct.unpack("!I", head)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code once it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for its end."""
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(list(self._words), timeout)
            (self.returncode,) = struct.unpack("!i", self._line.recv(4))
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def stop(self) -> None:
        """Send SIGSTOP, and wait until none of its threads runs."""
        self.send_signal(signal.SIGSTOP)
        threads = Path(f"/proc/{self.pid}/task")
        until(lambda: all(_is_stopped(each) for each in threads.iterdir()), "it stops")

    def close(self) -> None:
        """Kill it unless it has ended, and let go of it."""
        if self._handle < 0:
            return
        self.send_signal(signal.SIGKILL)
        self.wait(LIMIT_S)
        self._line.close()
        os.close(self._handle)
        self._handle = -1


class QuickAfresh:
    """Starts commands as forks of the process that listens at ``address``."""

    def __init__(self, address: Path) -> None:
        self._address, self._caller = address, address.with_suffix(".py")

    @property
    def shell(self) -> str:
        """For bash: ``quick FILE WORDS…`` runs a file of Python, or ``afresh`` where it is empty.

        ``"${quick[@]}"`` are the words of that call, for ``exec``.
        """
        return (
            f'quick=("{sys.executable}" -S -E "{self._caller}" "{self._address}")\n'
            'quick() { "${quick[@]}" "$@"; }\n'
        )

    def start(
        self,
        *words: str,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        out: IO[bytes] | None = None,
        err: IO[bytes] | None = None,
        file: str = "",
    ) -> QuickProcess:
        """``afresh`` with these words, or the Python program ``file``; to be closed. What it prints where no
        file is given for it is lost."""
        given = {
            "file": file,
            "words": words,
            "folder": str(folder or Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
        }
        text = json.dumps(given).encode()
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(self._address))
        with Path(os.devnull).open("r+b") as nothing:
            streams = [nothing, out or nothing, err or nothing]
            socket.send_fds(line, [struct.pack("!I", len(text))], [one.fileno() for one in streams])
        line.sendall(text)
        return QuickProcess(line, words)

    def run(
        self, *words: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """What a command printed and how it ended."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.start(*words, folder=folder, environment=environment, out=out, err=err)
            try:
                code = process.wait(LIMIT_S)
            finally:
                process.close()
            texts = [os.pread(one.fileno(), 1 << 24, 0).decode() for one in (out, err)]
        return subprocess.CompletedProcess(list(words), code, *texts)


def _is_stopped(thread: Path) -> bool:
    # The name stands in parentheses and may hold anything; after it comes the state.
    return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "T"


@contextmanager
def shared_quick_afresh(meeting_place: Path) -> Iterator[QuickAfresh]:
    """One for all processes that meet at a folder: the first starts it, and it ends with the last of them."""
    meeting_place.mkdir(exist_ok=True)
    address = meeting_place / "afresh.sock"
    with (meeting_place / "turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        line = _joined(address)
        if line is None:
            address.with_suffix(".py").write_text(_CALLER)
            address.unlink(missing_ok=True)
            _start(address, [sys.executable], os.environ)
            line = _joined(address)
            assert line is not None
    with line:
        yield QuickAfresh(address)


@contextmanager
def quick_afresh_of(
    python: Sequence[str], environment: Mapping[str, str], folder: Path
) -> Iterator[QuickAfresh]:
    """Commands of another Python, begun by these words in this environment; only the command line is imported
    for all of them, so that each imports, or misses, what it needs."""
    address = folder / "afresh.sock"
    _start(address, python, environment, "command-line")
    line = _joined(address)
    assert line is not None
    with line:
        yield QuickAfresh(address)


def _joined(address: Path) -> socket.socket | None:
    """A line that tells the process that we use it; none where there is no such process any more."""
    line = socket.socket(socket.AF_UNIX)
    with suppress(FileNotFoundError, ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        line.connect(str(address))
        line.sendall(struct.pack("!I", 0))
        if line.recv(1):
            return line
    line.close()
    return None


def _start(address: Path, python: Sequence[str], environment: Mapping[str, str], *imported: str) -> None:
    """In a session of its own: it outlives the process that starts it, if others use it."""
    heard, said = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, said, 1),
    ]
    words = [*python, str(_SERVER), str(address), *imported]
    os.posix_spawn(python[0], words, environment, file_actions=actions, setsid=True)
    os.close(said)
    with os.fdopen(heard) as output:
        assert output.read() == "ready\n"
