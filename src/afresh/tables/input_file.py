"""Inputs that can be read several times: a file, a file in an object store, standard input, or a pipe.

Inputs that cannot be read twice (standard input, pipes) or need random access (Parquet inside gzip) are first
copied to a temporary file. Errors of the operating system and of decompression become ``InputError`` here."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import sys
import tempfile
import uuid
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Self

from afresh.tables.formats import (
    STANDARD_STREAM,
    Compression,
    Format,
    Layout,
    compression_of,
    format_of,
    layout_of,
    named_format,
)
from afresh.tables.object_errors import explain
from afresh.tables.object_paths import is_address, size_of, split_options
from afresh.tables.streams import decompressed, open_raw
from afresh.values.errors import InputError, UsageError, did_you_mean
from afresh.values.formatting import one_line
from afresh.values.leftovers import LEFTOVERS
from afresh.values.zstd_frames import zstd

_COPY_BYTES = 1 << 20
_HEAD_BYTES = 4096


class InputFile:
    """An input opened for reading. Use it in a ``with`` block, so that its temporary copy is removed.
    ``name`` is the name of the input in messages. ``format`` is ``csv``, ``jsonl.gz``, and so on. If it is
    None, the format is taken from the extension, or from the first bytes if the input has no name."""

    def __init__(self, path: str | Path, *, format: str | None = None) -> None:  # noqa: A002
        self.name = "standard input" if str(path) == STANDARD_STREAM else split_options(str(path))[0]
        self._raw: Any = None
        self._spool = self._copy_if_needed(path)
        self._path = str(path) if self._spool is None else str(self._spool.path)
        try:
            self._choose_format(format)
        except BaseException:
            self.close()
            raise

    @property
    def layout(self) -> Layout:
        return self._format.layout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary copy, if there is one. The input can then not be read again."""
        if self._spool is not None:
            self._spool.close()

    @property
    def is_readable(self) -> bool:
        return self._spool is None or not self._spool.closed

    def stream(self) -> Any:
        """Return a new stream of the decompressed bytes, from the start of the input."""
        with translate_errors(self.name):
            self._raw = open_raw(self._path)
            return decompressed(self._raw, self._format.compression)

    def random_access(self) -> Any:
        """Return a file of pyarrow, which reads Parquet."""
        import pyarrow as pa

        with translate_errors(self.name):
            return open_raw(self._path) if is_address(self._path) else pa.OSFile(self._path, "rb")

    def share_read(self) -> float:
        """Return the share of the bytes that the latest stream has read, from 0 to 1."""
        try:
            return min(1.0, float(self._raw.tell()) / max(self._size, 1))
        except ValueError:  # the reader has closed the stream, because it has read everything
            return 1.0

    def _choose_format(self, given: str | None) -> None:
        with translate_errors(self.name):
            head = _read_head(self._path, None)
            self._size = size_of(self._path) if is_address(self._path) else Path(self._path).stat().st_size
        if not head:
            raise InputError("is empty (0 bytes)", path=self.name)
        seen = compression_of(head)
        if seen:
            with translate_errors(self.name, seen):
                head = _read_head(self._path, seen)
        self._format = self._named_or_detected(given, seen, head)
        if self._format.layout == "parquet" and seen:
            self._decompress(seen)

    def _named_or_detected(self, given: str | None, seen: Compression | None, head: bytes) -> Format:
        if given is not None:
            named = named_format(given)
        else:
            try:
                named = format_of(self.name)
            except UsageError:
                if self._spool is None:  # a file must have an extension; a pipe has no name
                    raise
                return Format(layout_of(head), seen)
        if self._spool is None or given is not None:
            self._refuse_misnamed(named, seen, head)
        return Format(named.layout, seen)

    def _refuse_misnamed(self, named: Format, seen: Compression | None, head: bytes) -> None:
        if named.compression and seen != named.compression:
            raise InputError(f"is not {named.compression} data (half-written or misnamed)", path=self.name)
        if seen and not named.compression:
            ending = {"gzip": ".gz", "zstd": ".zst"}[seen]
            raise InputError(f"is {seen} data: its name should end in {ending}", path=self.name)
        if (layout_of(head) == "parquet") != (named.layout == "parquet"):
            is_parquet = layout_of(head) == "parquet"
            problem = "is Parquet" if is_parquet else "is not Parquet (half-written or misnamed)"
            raise InputError(f"{problem}, but is named {named.layout}", path=self.name)

    def _copy_if_needed(self, path: str | Path) -> _TemporaryCopy | None:
        if str(path) == STANDARD_STREAM:
            if sys.stdin is None:
                raise InputError("is closed", path=self.name)
            return _copy_to_temporary_file(self.name, sys.stdin.buffer)
        if is_address(str(path)) or _is_regular(self.name):
            return None
        with translate_errors(self.name), Path(path).open("rb") as stream:
            return _copy_to_temporary_file(self.name, stream)

    def _decompress(self, compression: Compression) -> None:
        with (
            translate_errors(self.name, compression),
            decompressed(open_raw(self._path), compression) as stream,
        ):
            unpacked = _copy_to_temporary_file(self.name, stream)
        self.close()
        self._spool, self._path, self._format = unpacked, str(unpacked.path), Format("parquet")


@contextmanager
def translate_errors(name: str, compression: Compression | None = None) -> Iterator[None]:
    """Translate errors of the operating system and of decompression in the block into ``InputError``.
    ``name`` is the name of the input in the message, ``compression`` how it is compressed."""
    try:
        yield
    except InputError:
        raise
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise InputError(_problem(error, name, compression), path=name) from None


def _problem(error: Exception, name: str, compression: Compression | None) -> str:
    code = getattr(error, "errno", None)
    if code == errno.ENOENT:
        folder = Path(name).parent
        beside = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        hint = did_you_mean(Path(name).name, beside)
        return f"no such file{hint if hint != '.' else ''}"
    if code == errno.EISDIR:
        return "is a folder, not a file"
    if code in (errno.EACCES, errno.EPERM):
        return "no permission to read it"
    if code == errno.ENOSPC:
        return f"no space left in {tempfile.gettempdir()} to keep a copy of it"
    if isinstance(error, EOFError):
        return f"ends in the middle of its {compression or 'compressed'} data (half-written?)"
    if code is None and isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return f"cannot be read: {explain(error)}"  # of an object store
    if code is None:
        return f"cannot be read as {compression or 'compressed'} data: {one_line(error)}"
    return f"cannot be read: {os.strerror(code)}"


def _copy_to_temporary_file(name: str, stream: Any) -> _TemporaryCopy:
    """Copy the rest of ``stream`` to a temporary file, which is removed when it is closed."""
    spool = _TemporaryCopy()
    try:
        with translate_errors(name), spool.open() as copy:
            while block := stream.read(_COPY_BYTES):
                copy.write(block)
    except BaseException:
        spool.close()
        raise
    return spool


class _TemporaryCopy:
    """A temporary file that exists from ``open`` to ``close``, or until a signal ends the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.gettempdir()) / f"afresh-{uuid.uuid4().hex}"
        self.closed = False
        self._listed = ExitStack()
        self._listed.enter_context(LEFTOVERS.path(self.path))

    def open(self) -> IO[bytes]:
        """Create the file, readable only for this user, because the data in a pipe may be secret."""
        return os.fdopen(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        self._listed.close()
        self.closed = True


def _is_regular(name: str) -> bool:
    with translate_errors(name):
        mode = Path(name).stat().st_mode
    if stat.S_ISDIR(mode):
        raise InputError("is a folder, not a file", path=name)
    return stat.S_ISREG(mode)


def _read_head(path: str, compression: Compression | None) -> bytes:
    with decompressed(open_raw(path), compression) as stream:
        return bytes(stream.read(_HEAD_BYTES))
