"""Write files completely or not at all: under a temporary name first, synced to disk, then renamed.

If anything goes wrong before the rename (an exception, a full disk, Ctrl-C), the temporary file is removed
and an existing target is not changed. Devices and pipes are written directly, because a rename would replace
them."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from glob import escape
from hashlib import blake2b
from pathlib import Path
from typing import IO

from afresh.tables.formats import STANDARD_STREAM
from afresh.values.errors import OutputError, did_you_mean
from afresh.values.leftovers import LEFTOVERS, is_alive

_LONGEST_NAME = 100
_OWNER = re.compile(r"\.(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-[0-9a-f]{8}\.part")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def open_output(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that becomes ``path`` when the block ends without an error. ``-`` is standard
    output. If the reader of a pipe has closed it (``| head``), the block ends early, without an error."""
    name = "standard output" if str(path) == STANDARD_STREAM else str(path)
    with _translate_errors(name, path):
        if str(path) == STANDARD_STREAM:
            with _standard_output() as stream:
                yield stream
        elif _is_special(Path(path)):
            with Path(path).open("wb") as stream:
                yield stream
        else:
            target = Path(os.path.realpath(path))
            with replaced_file(target) as part, part.open("xb") as stream:
                if target.exists():
                    os.fchmod(stream.fileno(), stat.S_IMODE(target.stat().st_mode))
                yield stream


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path``, completely or not at all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bytes(f"{folder}/picture.svg", b"<svg/>")
    ...     [(entry.name, entry.read_bytes()) for entry in Path(folder).iterdir()]
    [('picture.svg', b'<svg/>')]
    """
    with open_output(path) as stream:
        stream.write(data)


def check_writable(path: str | Path) -> None:
    """Raise ``OutputError`` if ``path`` cannot be written. Call this before a long computation."""
    if str(path) == STANDARD_STREAM:
        return
    with _translate_errors(str(path), path):
        if _is_special(Path(path)):
            return
        part = _name_beside(Path(os.path.realpath(path)))
        with LEFTOVERS.path(part):
            try:
                part.open("xb").close()
            finally:
                part.unlink(missing_ok=True)


@contextmanager
def replaced_file(target: Path, *endings: str, is_one_of_many: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``target``. The file that the block creates there replaces it.
    If the block fails, or a signal ends the process, the temporary file is removed. So are files whose names
    are its name followed by one of ``endings``. What a killed process left behind is removed by the next one
    that writes ``target``. For ``is_one_of_many`` files, this and the syncing to disk are up to the
    caller."""
    if not is_one_of_many:
        remove_abandoned(target.parent, target.name)
    part = _name_beside(target)
    with LEFTOVERS.path(part, *endings):
        try:
            yield part
            if not is_one_of_many:
                with part.open("rb") as complete:
                    os.fsync(complete.fileno())
            part.replace(target)
        finally:
            for ending in ("", *endings):
                part.with_name(part.name + ending).unlink(missing_ok=True)
    if not is_one_of_many:
        _sync_folder(target.parent)


def remove_abandoned(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files for ``name``, or for all names, of processes that were killed on this
    machine."""
    with suppress(OSError):  # they do no harm, and writing will tell what is wrong
        for path in folder.glob(f".{'*' if name is None else escape(name[:_LONGEST_NAME])}.*.part*"):
            owner = _OWNER.search(path.name)
            if owner and owner["host"] == _host() and not is_alive(int(owner["pid"])):
                path.unlink(missing_ok=True)


def _name_beside(target: Path) -> Path:
    # Not tempfile: only the user could read its files, while the permissions of an output follow the umask.
    owner = f"{_host()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    return target.parent / f".{target.name[:_LONGEST_NAME]}.{owner}.part"


@cache
def _host() -> str:
    return blake2b(os.uname().nodename.encode(), digest_size=4).hexdigest()


def _sync_folder(folder: Path) -> None:
    """Sync the rename to disk. Errors are ignored, because the file is complete even without this."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _is_special(path: Path) -> bool:
    """Return whether ``path`` exists and is neither a file nor a folder."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
    return not stat.S_ISREG(mode)


@contextmanager
def _standard_output() -> Iterator[IO[bytes]]:
    if sys.stdout is None:
        raise OutputError("standard output: is closed")
    try:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except OSError:
        # Buffered data would cause the same error again, with a traceback, when the process ends.
        _discard_standard_output()
        raise


def _discard_standard_output() -> None:
    with suppress(OSError, ValueError):  # a replacement without a file descriptor has nothing to discard
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def _translate_errors(name: str, path: str | Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        return
    except OSError as error:
        raise OutputError(f"{name}: {_problem(error, Path(path))}") from None


def _problem(error: OSError, path: Path) -> str:
    if error.errno in _NO_SPACE:
        return "no space left to write it"
    if error.errno == errno.ENOENT:
        folder = path.parent
        beside = [entry.name for entry in folder.parent.iterdir()] if folder.parent.is_dir() else []
        hint = did_you_mean(folder.name, beside)
        return f"no folder {folder}{hint if hint != '.' else ': make it first'}"
    if error.errno == errno.ENOTDIR:
        return f"{path.parent} is a file, not a folder"
    if error.errno == errno.EISDIR:
        return "is a folder, not a file"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission to write in {path.parent}"
    if error.errno == errno.EROFS:
        return f"{path.parent} is read-only"
    return f"cannot be written: {error.strerror or error}"
