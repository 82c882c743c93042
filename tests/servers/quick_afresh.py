"""``afresh`` for many short commands in a row: forked from a process that has imported everything already.

Starting Python and importing NumPy is most of what a small command costs. A caller hands its arguments,
folder, environment and standard streams over a socket; a fork of ours becomes that command.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import struct
import sys
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import Self

# What runs in place of afresh: it needs little of Python, and so starts at once.
_CALLER = """\
import os, socket, struct, sys
import json
words = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    socket.send_fds(line, [struct.pack("!I", len(words))], [0, 1, 2])
    line.sendall(words)
    code = line.recv(4)
sys.exit(struct.unpack("!i", code)[0] if code else 70)
"""


class QuickAfresh:
    """A server of ``afresh`` commands; ``shell`` is a definition of ``afresh`` for bash."""

    def __init__(self, folder: Path) -> None:
        self._socket, self._caller = folder / "afresh.sock", folder / "afresh_caller.py"

    def __enter__(self) -> Self:
        self._caller.write_text(_CALLER)
        ready, told = get_context("spawn").Pipe(duplex=False)
        # Spawned, not forked: the commands' parent must have no threads.
        self._server = get_context("spawn").Process(target=_serve, args=(str(self._socket), told))
        self._server.start()
        told.close()
        ready.recv()
        ready.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._server.pid or 0, signal.SIGTERM)  # with commands that are still running
        self._server.join()
        self._server.close()

    @property
    def shell(self) -> str:
        """``afresh`` as a function of bash."""
        return f'afresh() {{ "{sys.executable}" -S -E "{self._caller}" "{self._socket}" "$@"; }}\n'


def _serve(path: str, told: object) -> None:
    """Fork for every caller, which waits for its command's exit code."""
    os.setsid()
    _import_everything()
    gc.freeze()  # forks share what is never collected
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(64)
        told.send(True)  # type: ignore[attr-defined]
        parent = parent_process()
        assert parent is not None
        while True:
            if parent.sentinel in wait([server, parent.sentinel]):
                os.killpg(0, signal.SIGKILL)  # who started us is gone, and nobody else will end us
            line, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _answer(line)
            line.close()


def _import_everything() -> None:
    import afresh

    for module in pkgutil.walk_packages(afresh.__path__, "afresh."):
        if "numba" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _answer(line: socket.socket) -> None:
    """Become the command in a fork of its own, and tell the caller how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(line, 4, 3)
    (length,) = struct.unpack("!I", head)
    words = b""
    while len(words) < length:
        words += line.recv(length - len(words))
    pid = os.fork()
    if pid == 0:
        line.close()
        arguments, folder, environment = json.loads(words)
        _become(arguments, folder, environment, streams)
    _, status = os.waitpid(pid, 0)
    line.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _become(words: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    from afresh.cli.app import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = ["afresh", *words]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
