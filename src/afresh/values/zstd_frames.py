"""Zstandard frames: by Python itself from version 3.14 on, and by the backport of that module before."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["FrameCompressor", "decompress_frame", "zstd"]


class FrameCompressor:
    """Compresses contents, each to a frame of its own. One for many is faster than one for each."""

    def __init__(self, level: int = zstd.COMPRESSION_LEVEL_DEFAULT) -> None:
        self._compressor = zstd.ZstdCompressor(level=level)

    def compress(self, data: bytes) -> bytes:
        """Return ``data`` as one frame.

        >>> decompress_frame(FrameCompressor().compress(b"a text"), 100)
        b'a text'
        """
        return self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)


def decompress_frame(data: bytes, most_bytes: int) -> bytes:
    """Return the content of a frame. Raise ``zstd.ZstdError`` if the frame is damaged or cut off, or if its
    content has more than ``most_bytes``."""
    decompressor = zstd.ZstdDecompressor()
    # With one byte more than allowed, the end of a frame of exactly that size is seen as well.
    content = decompressor.decompress(data, most_bytes + 1)
    if len(content) > most_bytes:
        raise zstd.ZstdError(f"the content has more than {most_bytes} bytes")
    if not decompressor.eof:
        raise zstd.ZstdError("the frame is cut off")
    return content
