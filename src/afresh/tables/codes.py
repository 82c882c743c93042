"""Texts that repeat (groups, policies) as whole numbers, consistent over batches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


class Codes:
    """Numbers texts in the order in which they first appear.

    >>> codes = Codes()
    >>> codes.encode(pa.array(["b", "a", "b"])), codes.encode(pa.array(["c", "a"])), codes.names
    (array([0, 1, 0]), array([2, 1]), ['b', 'a', 'c'])
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """The texts, each at the place of its number."""
        return list(self._codes)

    def encode(self, texts: pa.Array) -> npt.NDArray[np.int64]:
        """The numbers of ``texts``; new texts get the next free ones."""
        local = texts.dictionary_encode()
        known = [self._codes.setdefault(text, len(self._codes)) for text in local.dictionary.to_pylist()]
        places: npt.NDArray[np.int64] = np.asarray(known, dtype=np.int64)[local.indices.to_numpy()]
        return places
