"""What contents are addressed by, and contents checked against it."""

from __future__ import annotations

from hashlib import blake2b

import zstandard

from afresh.values.errors import StoreCorruptError


def content_hash(content: bytes) -> bytes:
    """The address of a content: BLAKE2b, 256 bits.

    >>> content_hash(b"").hex()[:16]
    '0e5751c026e543b2'
    """
    return blake2b(content, digest_size=32).digest()


def unpacked(packed: bytes, size: int, address: bytes, store: str) -> bytes:
    """The content, if it is what its address says; ``store`` names the store that kept it."""
    try:
        content = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
    except zstandard.ZstdError as error:
        raise StoreCorruptError(
            f"{store}: content {address.hex()[:16]} cannot be unpacked: {error}"
        ) from error
    if content_hash(content) != address:
        raise StoreCorruptError(f"{store}: content {address.hex()[:16]} is not what was stored")
    return content
