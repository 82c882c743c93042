"""What contents are addressed by."""

from __future__ import annotations

from hashlib import blake2b


def content_hash(content: bytes) -> bytes:
    """The address of a content: BLAKE2b, 256 bits.

    >>> content_hash(b"").hex()[:16]
    '0e5751c026e543b2'
    """
    return blake2b(content, digest_size=32).digest()
