"""Is each of many numbers in a large sorted set? A bit table says no at once, bisection confirms a yes."""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import Bools, Ints

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads neighbours over the table
_FEWEST_BITS, _MOST_BITS = 10, 24
_ROOM_BITS = 4  # sixteen places for each member: one false alarm in sixteen


class SortedSet:
    """The members of an ascending array, to be asked for many numbers at once.

    >>> SortedSet(np.array([2, 3, 5]))(np.array([1, 2, 5]))
    array([False,  True,  True])
    """

    def __init__(self, ascending: Ints) -> None:
        self._ascending = ascending
        bits = min(max(len(ascending).bit_length() + _ROOM_BITS, _FEWEST_BITS), _MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, dtype=np.bool_)
        self._table[self._places(ascending)] = True

    def __call__(self, numbers: Ints) -> Bools:
        """Whether each of ``numbers`` is a member."""
        found = self._table[self._places(numbers)]
        likely = numbers[found]
        # An array with no members has an empty table, so nothing is likely then.
        place = np.searchsorted(self._ascending, likely)
        found[found] = self._ascending[np.minimum(place, len(self._ascending) - 1)] == likely
        return found

    def _places(self, numbers: Ints) -> Ints:
        return ((numbers.astype(np.uint64) * _FACTOR) >> self._shift).astype(np.int64)
