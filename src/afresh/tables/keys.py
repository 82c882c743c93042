"""Finds rows with the same key by 64-bit hashes, and confirms them on the keys themselves.

1e7 keys cost 80 MB of hashes, and as much again while these are sorted, however long the texts are.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from afresh.values.arrays import Ints


class KeyHashes:
    """The hashes of all keys so far.

    >>> seen = KeyHashes()
    >>> seen.add(pa.array(["a", "b"]))
    >>> seen.add(pa.array(["c", "a"]))
    >>> first_repeat([pa.array(["a", "b", "c", "a"])], seen.find_repeated())
    ('a', 0, 3)
    """

    def __init__(self) -> None:
        self._parts: list[Ints] = []

    def add(self, keys: pa.Array) -> None:
        """Add the hashes of ``keys``."""
        self._parts.append(_hashes(keys))

    def find_repeated(self) -> Ints:
        """Return the hashes that occur more than once, sorted, and forget all hashes."""
        if not self._parts:
            return np.empty(0, dtype=np.int64)
        hashes = np.concatenate(self._parts)
        self._parts.clear()
        hashes.sort()
        return np.unique(hashes[1:][hashes[1:] == hashes[:-1]])


def first_repeat(batches: Iterable[pa.Array], suspects: Ints) -> tuple[str, int, int] | None:
    """Return the first find_repeated key with both its rows (from 0); None if only hashes collided."""
    first: dict[str, int] = {}
    start = 0
    for keys in batches:
        for index in np.flatnonzero(np.isin(_hashes(keys), suspects)):
            key, row = keys[int(index)].as_py(), start + int(index)
            if key in first:
                return key, first[key], row
            first[key] = row
        start += len(keys)
    return None


def _hashes(keys: pa.Array) -> Ints:
    # Python's own SipHash: 64 bits, keyed per process, so that no file can be built to collide.
    return np.fromiter(map(hash, keys.to_pylist()), dtype=np.int64, count=len(keys))
