"""A process that has imported all of afresh: a fork of it is a command that begins at once.

Run as ``python warm_afresh.py SOCKET``; it says "ready" on its standard output when the socket can be used.
With ``command-line`` as a second argument it imports the command line alone, as every command does.

A caller that sends nothing but a length of 0 is a user: the process ends when its last user has gone, however
that ended. Any other caller hands over its standard streams and, as JSON, what is to run: an ``afresh``
command or a Python file, with arguments, folder and environment. It gets a handle of the command's process
with its number, and then the exit code. A caller that goes before that ends the command.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
import traceback
from contextlib import redirect_stdout, suppress
from typing import Any, NoReturn

import afresh


class _Server:
    """Its users, and the commands under way with their callers."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._users: set[socket.socket] = set()
        self._callers: dict[int, socket.socket] = {}  # by the handle of the command's process

    def serve(self) -> None:
        """Fork for every caller, until the last user has gone."""
        while True:
            watched: list[socket.socket | int] = [self._listening, *self._users]
            ready = select.select([*watched, *self._callers, *self._callers.values()], [], [])[0]
            for handle, line in list(self._callers.items()):
                if handle in ready or line in ready:
                    self._finish(handle, ended=handle in ready)
            gone = self._users.intersection(ready)
            if gone and gone == self._users:
                for handle in list(self._callers):
                    self._finish(handle, ended=False)
                return
            self._users -= gone
            if self._listening in ready:
                self._receive()

    def _finish(self, handle: int, *, ended: bool) -> None:
        """Tell the caller how its command ended, or end the command because the caller has gone."""
        if not ended:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        found = os.waitid(os.P_PIDFD, handle, os.WEXITED)
        assert found is not None
        code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        os.close(handle)
        with self._callers.pop(handle) as line, suppress(BrokenPipeError):
            line.sendall(struct.pack("!i", code))

    def _receive(self) -> None:
        line, _ = self._listening.accept()
        with suppress(ConnectionResetError):
            head, streams, _, _ = socket.recv_fds(line, 4, 3)
            (length,) = struct.unpack("!I", head or bytes(4))
            words = line.recv(length, socket.MSG_WAITALL)
            if head and not length:
                line.sendall(b"1")
                self._users.add(line)
                return
            if head and len(words) == length:
                self._start(line, json.loads(words), streams)
                return
        line.close()

    def _start(self, line: socket.socket, given: dict[str, Any], streams: list[int]) -> None:
        number = os.fork()
        if number == 0:
            for one in (self._listening, line, *self._users, *self._callers.values()):
                one.close()
            _become(given, streams)
        for stream in streams:
            os.close(stream)
        handle = os.pidfd_open(number)
        self._callers[handle] = line
        with suppress(BrokenPipeError):
            socket.send_fds(line, [struct.pack("!I", number)], [handle])


def _import_everything() -> None:
    for module in pkgutil.walk_packages(afresh.__path__, "afresh."):
        if "numba" not in module.name and not module.name.endswith(("__main__", "child_entry")):
            importlib.import_module(module.name)


def _build_command_line() -> None:
    """Let the command line build its commands and help: both are kept."""
    # Not by the program's own main, which would start a thread: forks are made of processes without any.
    from afresh.cli.app import perform

    sys.argv = ["afresh", "--help"]
    with redirect_stdout(io.StringIO()), suppress(SystemExit):
        perform()


def _become(given: dict[str, Any], streams: list[int]) -> NoReturn:
    """Run what was given in this process, with its streams, folder and environment, and exit."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.setsid()
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])
    sys.path[:0] = given["environment"].get("PYTHONPATH", "").split(os.pathsep)
    code = 1
    try:
        _run(given["file"], given["words"])
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001  # as Python itself ends a program
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(file: str, words: list[str]) -> None:
    sys.argv = [file or "afresh", *words]
    if file:
        runpy.run_path(file, run_name="__main__")
        return
    from afresh.cli.entry import main as afresh_main

    afresh_main()


def main(path: str, imported: str = "everything") -> None:
    """Get ready, and serve."""
    if imported == "everything":
        _import_everything()
    _build_command_line()
    gc.freeze()  # forks share what is never collected
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        os.write(1, b"ready\n")
        os.close(1)
        _Server(listening).serve()
    os._exit(0)  # at once


if __name__ == "__main__":
    main(*sys.argv[1:])
