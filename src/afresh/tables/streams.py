"""Streams of the decompressed bytes of a file."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO, Any

from afresh.tables.formats import Compression
from afresh.tables.object_paths import is_address, open_random_access
from afresh.values.zstd_frames import zstd

_BLOCK_BYTES = 1 << 20


def open_raw(path: str) -> IO[bytes]:
    """Return the file at a local path or an address for reading at any position."""
    if is_address(path):
        stream: IO[bytes] = open_random_access(path)
        return stream
    return Path(path).open("rb")


def decompressed(raw: IO[bytes], compression: Compression | None) -> IO[bytes]:
    """Return a stream of the decompressed bytes of ``raw``. To close it closes ``raw`` too.
    Data that ends too early raises ``EOFError``, as do the gzip streams of Python."""
    if compression is None:
        return raw
    packed = _ZstdBytes(raw) if compression == "zstd" else _GzipBytes(raw)
    return io.BufferedReader(packed, _BLOCK_BYTES)


class _GzipBytes(gzip.GzipFile):
    """A gzip stream that closes the file below it, which ``GzipFile`` leaves open."""

    def __init__(self, raw: IO[bytes]) -> None:
        super().__init__(fileobj=raw, mode="rb")
        self._raw_file = raw

    def close(self) -> None:
        super().close()
        self._raw_file.close()


class _ZstdBytes(io.RawIOBase):
    """The bytes of one or more Zstandard frames. The stream of the library takes the end of a cut file for
    the end of the data."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw_file = raw
        self._frame: Any = None
        self._given, self._unpacked = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._unpacked:
            self._given = self._given or self._raw_file.read(_BLOCK_BYTES)
            if not self._given:
                if self._frame is not None:
                    raise EOFError("truncated Zstandard data")
                return 0
            self._unpack()
        size = min(len(buffer), len(self._unpacked))
        buffer[:size] = self._unpacked[:size]
        self._unpacked = self._unpacked[size:]
        return size

    def _unpack(self) -> None:
        if self._frame is None:
            self._frame = zstd.ZstdDecompressor()
        self._unpacked, self._given = memoryview(self._frame.decompress(self._given)), b""
        if self._frame.eof:
            self._given, self._frame = self._frame.unused_data, None

    def close(self) -> None:
        if not self.closed:
            self._raw_file.close()
        super().close()
