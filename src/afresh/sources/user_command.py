"""Runs a command of the user, such as a hook or the refresh of a view, without a shell.

The input is a file, not a pipe, so that nobody waits for a command that does not read it. Of the standard
error only the end is kept. The command has ended when its own process ends: processes that it leaves behind
may go on, and keep nobody waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import IO

from afresh.values.formatting import one_line
from afresh.values.leftovers import LEFTOVERS

_TAIL_BYTES = 4096


NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class CommandFailedError(Exception):
    """A command did not end with 0, or could not be started; the message says why."""


async def run_command(
    command: tuple[str, ...],
    content: bytes,
    variables: Mapping[str, str] = NO_VARIABLES,
    *,
    grace_s: float = 0.0,
    reads_output: bool = False,
) -> None:
    """Run a command with ``content`` on its standard input, and with ``variables`` in its environment; raise
    ``CommandFailedError`` unless it ends with 0. If the caller is cancelled, the process group of the command
    is ended: at once, or ``grace_s`` seconds after a SIGTERM. With ``reads_output``, the error may name the
    last line of the standard output, because some programs write their errors there."""
    tail = _Tail()
    try:
        with await _input_file(content) as file:
            try:
                process = await _start(command, file, tail.write_end, variables, reads_output=reads_output)
            except OSError as error:
                raise CommandFailedError(f"{command[0]}: {error.strerror}") from None
        tail.start()
        with LEFTOVERS.process(process.pid, leads_group=True):
            try:
                await process.wait()
            finally:
                await _end(process, grace_s)
    finally:
        tail.close()
    if process.returncode != 0:
        raise CommandFailedError(f"{command[0]} ended with {process.returncode}: {tail.last_line()}")


async def _start(
    command: tuple[str, ...],
    stdin: IO[bytes],
    stderr: int,
    variables: Mapping[str, str],
    *,
    reads_output: bool,
) -> asyncio.subprocess.Process:
    """Start a command as the leader of a process group. If the caller is cancelled, the group is killed.

    The start is a task of its own. If asyncio is cancelled while it starts a process, it kills that process
    alone, and those that this process has started by then would go on."""
    stdout = stderr if reads_output else asyncio.subprocess.DEVNULL
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=os.environ | variables,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):  # the command could not be started
            await _end(await starting, 0.0)
        raise


async def _end(process: asyncio.subprocess.Process, grace_s: float) -> None:
    """End a command that has not ended, and the processes that it started; return when it has ended."""
    if process.returncode is not None:
        return
    try:
        if grace_s > 0:
            _signal_group(process, signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), grace_s)
    finally:  # even if the caller is cancelled once more
        _signal_group(process, signal.SIGKILL)
    await process.wait()


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # all of them have just ended
        os.killpg(process.pid, number)


async def _input_file(content: bytes) -> IO[bytes]:
    """Return an open file without a name that contains ``content``."""

    def write() -> IO[bytes]:
        file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
        try:
            file.write(content)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    try:
        return await asyncio.to_thread(write)
    except OSError as error:
        raise CommandFailedError(f"no file for the content: {error.strerror}") from None


class _Tail:
    """A pipe whose last few kilobytes are kept, while the event loop reads it."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._bytes, self._loop = b"", asyncio.get_running_loop()
        self._is_open = True

    def start(self) -> None:
        self._close_write_end()
        self._loop.add_reader(self._read_end, self._read)

    def close(self) -> None:
        """Read what is there, and close the pipe. A process that was left behind may still write to it."""
        self._close_write_end()
        self._loop.remove_reader(self._read_end)
        for _ in range(16):  # the size of a pipe in Linux is 64 KiB, that of one read too
            if not self._read():
                break
        os.close(self._read_end)

    def last_line(self) -> str:
        lines = self._bytes.decode(errors="replace").strip().splitlines()
        return one_line(lines[-1]) if lines else "no error message"

    def _read(self) -> bool:
        try:
            found = os.read(self._read_end, 1 << 16)
        except OSError:
            return False
        if not found:
            self._loop.remove_reader(self._read_end)  # all writers have ended
        self._bytes = (self._bytes + found)[-_TAIL_BYTES:]
        return bool(found)

    def _close_write_end(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.write_end)
