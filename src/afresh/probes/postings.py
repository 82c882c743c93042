"""Posting lists in one array, and fast membership tests.

A posting list holds the numbers of the records that contain a keyword, or of the keywords of a record. List i
is ``members[starts[i]:starts[i+1]]`` (compressed sparse rows), in ascending order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Bools, Float64s, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Lists of ascending numbers (members) from 0 to ``width`` − 1. A list is called a row.

    >>> tuples = Postings.of_rows([[0, 2], [], [2]], width=3)
    >>> tuples.row(0), tuples.sizes, tuples.transposed().row(2)
    (array([0, 2]), array([2, 0, 1]), array([0, 2]))
    """

    starts: Ints
    members: Ints
    width: int

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[int]], width: int) -> Postings:
        """Return the postings of these lists, each of which is in ascending order."""
        starts = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=starts[1:])
        members = np.fromiter((member for row in rows for member in row), np.int64, int(starts[-1]))
        return cls(starts, members, width)

    @classmethod
    def of_pairs(cls, rows: Ints, members: Ints, height: int, width: int) -> Postings:
        """Return the postings in which row ``rows[i]`` contains ``members[i]``; all pairs differ."""
        order = np.lexsort((members, rows))
        starts = np.zeros(height + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=height), out=starts[1:])
        return cls(starts, np.asarray(members[order], dtype=np.int64), width)

    @property
    def height(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def row(self, index: int) -> Ints:
        """Return the members of one row, in ascending order."""
        return self.members[self.starts[index] : self.starts[index + 1]]

    def row_ids(self) -> Ints:
        """Return the number of the row of each member, in the sequence of ``members``."""
        return np.repeat(np.arange(self.height), self.sizes)

    def transposed(self) -> Postings:
        """Return, for each number from 0 to ``width`` − 1, the list of the rows that contain it."""
        return Postings.of_pairs(self.members, self.row_ids(), self.width, self.height)

    def take(self, rows: Ints) -> Postings:
        """Return the posting lists of these rows, in the order of ``rows``.

        >>> Postings.of_rows([[0], [1, 2]], width=3).take(np.array([1, 0])).members
        array([1, 2, 0])
        """
        sizes = self.sizes[rows]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        places = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], sizes)
        return Postings(starts, self.members[places], self.width)

    def keep(self, wanted: Bools) -> Postings:
        """Return the same rows with only those members m for which ``wanted[m]`` is true."""
        good = wanted[self.members]
        return Postings.of_pairs(self.row_ids()[good], self.members[good], self.height, self.width)

    def sums(self, values: Float64s) -> Float64s:
        """Return the sum of ``values[m]`` over the members m of each row; 0 for empty rows.

        >>> Postings.of_rows([[0, 1], []], width=2).sums(np.array([1.0, 2.5]))
        array([3.5, 0. ])
        """
        running = np.concatenate(([0.0], np.cumsum(values[self.members])))
        return np.asarray(running[self.starts[1:]] - running[self.starts[:-1]])


_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, which spreads neighbours over the table
_FEWEST_BITS, _MOST_BITS = 10, 24
_ROOM_BITS = 4  # the table has 16 entries per member, so one test in 16 is falsely positive


class SortedSet:
    """A function that tests which of many numbers occur in an ascending array.
    A hash table rejects most numbers that do not occur in it; bisection checks the rest.

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
        found = self._table[self._places(numbers)]
        likely = numbers[found]
        # Without members the table is all False, so ``likely`` is empty.
        place = np.searchsorted(self._ascending, likely)
        found[found] = self._ascending[np.minimum(place, len(self._ascending) - 1)] == likely
        return found

    def _places(self, numbers: Ints) -> Ints:
        return ((numbers.astype(np.uint64) * _FACTOR) >> self._shift).astype(np.int64)
