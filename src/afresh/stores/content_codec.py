"""Contents of copies: the hash that they are stored under, and their compressed form checked against it."""

from __future__ import annotations

from hashlib import blake2b

import zstandard

from afresh.values.errors import StoreCorruptError


def content_hash(content: bytes) -> bytes:
    """Return the hash that a content is stored under: BLAKE2b, 256 bits.

    >>> content_hash(b"").hex()[:16]
    '0e5751c026e543b2'
    """
    return blake2b(content, digest_size=32).digest()


def decompress(data: bytes, size: int, expected_hash: bytes, store: str) -> bytes:
    """Return the content, and refuse one that does not have its hash; ``store`` names the store that kept
    it."""
    try:
        content = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise StoreCorruptError(
            f"{store}: content {expected_hash.hex()[:16]} cannot be unpacked: {error}"
        ) from error
    if content_hash(content) != expected_hash:
        raise StoreCorruptError(f"{store}: content {expected_hash.hex()[:16]} is not what was stored")
    return content
