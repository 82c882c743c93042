"""Runs the git command for its output; its error messages become an ``InputError`` of one line."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO, cast

from afresh.values.errors import InputError
from afresh.values.leftovers import LEFTOVERS

_CHUNK_BYTES = 1 << 20


def git_fields(
    repository: Path, arguments: Sequence[str], *, between: bytes = b"\0"
) -> Generator[bytes, None, None]:
    """Yield the output of ``git -C repository arguments…`` as it comes, split at ``between``.

    Only one field and one chunk are in memory at a time. git is ended if the reader stops early.
    """
    with (
        tempfile.TemporaryFile() as messages,
        _start(repository, arguments, messages) as process,
        LEFTOVERS.process(process.pid),
    ):
        stream = cast("IO[bytes]", process.stdout)  # a pipe was asked for, so it is there
        try:
            rest = b""
            while chunk := stream.read(_CHUNK_BYTES):
                *fields, rest = (rest + chunk).split(between)
                yield from fields
            if rest:
                yield rest
        except BaseException:  # the reader has stopped early, or is interrupted
            process.kill()
            raise
        if process.wait() != 0:
            messages.seek(0)
            raise InputError(_error_text(messages.read()), path=str(repository))


def git_text(repository: Path, *arguments: str) -> str:
    """Return the output of a git command that writes little, without its last newline."""
    return b"\n".join(git_fields(repository, arguments, between=b"\n")).decode()


def _start(repository: Path, arguments: Sequence[str], messages: IO[bytes]) -> subprocess.Popen[bytes]:
    if not repository.is_dir():
        raise InputError("is no folder: give the folder of a git repository", path=str(repository))
    try:
        return subprocess.Popen(
            ["git", "-C", str(repository), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=messages,  # a file, so that a git that writes much never waits for us
        )
    except FileNotFoundError:
        raise InputError("cannot be read: the command 'git' is not installed") from None


def _error_text(message: bytes) -> str:
    lines = message.decode(errors="replace").strip().splitlines()
    text = lines[0].removeprefix("fatal: ") if lines else "git failed without a word"
    if "not a git repository" in text:
        return "is not a git repository"
    return f"git says: {text}"
