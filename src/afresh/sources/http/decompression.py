"""Decompress bodies while they arrive, within limits, so that a decompression bomb is stopped early."""

from __future__ import annotations

import zlib
from typing import Final

_WINDOW: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_GRACE_BYTES = 1 << 20  # up to this size any compression ratio is allowed
IDENTITY = frozenset({"", "identity"})
ENCODINGS = (*_WINDOW, "identity")


class BadEncodingError(Exception):
    """The body does not have the encoding that its Content-Encoding header states."""


class TooLargeError(Exception):
    """The body is larger than a limit, which the message names."""


class Inflater:
    """Decompresses a body chunk by chunk, and raises ``TooLargeError`` when a limit is exceeded.
    ``max_bytes`` limits the decompressed size. ``max_ratio`` limits its ratio to the compressed size, but a
    body of up to 1 MiB may have any ratio.

    >>> inflater = Inflater("gzip", max_bytes=1000, max_ratio=100)
    >>> inflater.feed(zlib.compress(b"x" * 900, wbits=31))[:5]
    b'xxxxx'
    >>> inflater.finish()
    """

    def __init__(self, encoding: str, *, max_bytes: int, max_ratio: float) -> None:
        self._encoding = encoding.strip().lower()
        self._max_bytes, self._max_ratio = max_bytes, max_ratio
        self._wire = self._plain = 0
        self._held, self._started = b"", False
        self._engine = None
        if self._encoding not in IDENTITY:
            if self._encoding not in _WINDOW:
                raise BadEncodingError(f"content encoding {self._encoding[:40]!r} was not asked for")
            self._engine = zlib.decompressobj(_WINDOW[self._encoding])

    def feed(self, chunk: bytes) -> bytes:
        """Return the decompressed bytes of the next chunk."""
        self._wire += len(chunk)
        if self._engine is None:
            self._count(len(chunk))
            return chunk
        chunk = self._held + chunk
        self._held = b""
        try:
            return self._inflate(chunk)
        except zlib.error as error:
            raise BadEncodingError(f"body is not {self._encoding}: {error}") from None

    def finish(self) -> None:
        """Raise ``BadEncodingError`` if the compressed stream is not complete."""
        if self._engine is not None and self._wire and not self._engine.eof:
            raise BadEncodingError(f"{self._encoding} body breaks off")

    def _inflate(self, chunk: bytes) -> bytes:
        plain = bytearray()
        while chunk:
            assert self._engine is not None
            if (self._engine.eof or not self._started) and not self._start(chunk):
                break
            # One byte more than allowed shows that the body is too large; steps of 1 MiB limit the memory.
            part = self._engine.decompress(chunk, min(self._max_bytes - self._plain + 1, 1 << 20))
            self._count(len(part))
            plain += part
            chunk = self._engine.unconsumed_tail or self._engine.unused_data
        return bytes(plain)

    def _start(self, chunk: bytes) -> bool:
        """Choose the decompressor by the first two bytes. Return False if they start no compressed stream."""
        if len(chunk) < 2:
            self._held = chunk
            return False
        if not self._started:
            self._started = True
            has_zlib_header = chunk[0] & 0x0F == 8 and int.from_bytes(chunk[:2], "big") % 31 == 0
            if self._encoding == "deflate" and not has_zlib_header:
                self._engine = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send raw deflate
            return True
        if not self._encoding.endswith("gzip") or not chunk.startswith(b"\x1f\x8b"):
            return False  # padding after the end of the stream, which browsers ignore too
        self._engine = zlib.decompressobj(_WINDOW[self._encoding])  # a gzip file may have several members
        return True

    def _count(self, plain: int) -> None:
        self._plain += plain
        if self._plain > self._max_bytes:
            raise TooLargeError(f"body is larger than {self._max_bytes} bytes")
        if self._plain > max(_GRACE_BYTES, self._max_ratio * self._wire):
            raise TooLargeError(f"body expands more than {self._max_ratio:g} times: a decompression bomb")
