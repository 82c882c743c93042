"""Polls of many items as checked arrays: what each poll found, and what the source reported with it.

Each poll of an item ends an interval: the time ``elapsed`` since its previous poll. A poll gives

- always one bit: whether the content differs from the copy (``changed``);
- perhaps the time since the last modification, if the source states it and it is credible (``since``);
- perhaps the number of changes in the interval (``count``), from a counter, a log or a feed.

A poll that failed (unreachable) gives no information and is left out. The next interval starts at the last
successful poll, because the copy is of that time. The first poll of an item only starts its first interval.

A modification time from the source, such as Last-Modified, is called a stamp here. Some servers send wrong
stamps. A stamp is wrong if it is in the future, is the time of the poll ("always now"), says that there was
no modification although the content changed ("older than the copy"), or says that there was one although the
content did not change. Wrong stamps are not used; if over a tenth of an item's stamps are wrong, none is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints, as_floats
from afresh.values.errors import InputError

Numbers: TypeAlias = npt.NDArray[np.number[Any]]

WRONG_STAMPS_TOLERATED = 0.1  # share of an item's stamps
SHORTEST, LONGEST = 1e-150, 1e150  # the square of an interval must neither underflow nor overflow
MOST_CHANGES = 1e12  # in one interval; a larger number is regarded as a mistake
_COUNT = f"a whole number of changes from 0 to {MOST_CHANGES:g}"
NOW = 1e-4  # a stamp less than this share of the interval before the poll is taken for the time of the poll


@dataclass(frozen=True, slots=True)
class PollTable:
    """Polls of ``items`` items as flat arrays, sorted by item and, within an item, by time.

    ``item``     number of the polled item, 0 … items−1, in ascending order.
    ``elapsed``  time since the previous poll of the item, > 0 (``SHORTEST`` to ``LONGEST``).
    ``changed``  whether the content differed from the copy.
    ``since``    time from the last modification to the poll, NaN if not credibly known; None if all unknown.
    ``count``    changes since the previous poll, NaN if not known; None if all unknown.
    ``end``      time of the poll; None if not needed (only seasons and forgetting need it).
    ``weight``   weight of the poll, 0 to 1; None means 1 for all (only forgetting sets it).

    >>> p = PollTable(np.array([0, 0, 1]), np.array([1.0, 2.0, 5.0]), np.array([True, False, True]), items=3)
    >>> p.polls_per_item().tolist(), p.changes_per_item().tolist(), p.time_per_item().tolist()
    ([2, 1, 0], [1, 1, 0], [3.0, 5.0, 0.0])
    """

    item: Ints
    elapsed: Float64s
    changed: Bools
    items: int
    since: Float64s | None = None
    count: Float64s | None = None
    end: Float64s | None = None
    weight: Float64s | None = None

    def __post_init__(self) -> None:
        for name in ("elapsed", "changed", "since", "count", "end", "weight"):
            column = getattr(self, name)
            if column is not None and column.shape != self.item.shape:
                raise InputError(f"{name} has {column.size} values for {self.item.size} polls")
        if self.item.size == 0:
            return
        if self.item[0] < 0 or self.item[-1] >= self.items or np.any(self.item[1:] < self.item[:-1]):
            raise InputError(f"item must be sorted rows from 0 to {self.items - 1}")
        bad = ~((self.elapsed >= SHORTEST) & (self.elapsed <= LONGEST))
        _refuse_if("elapsed", self.elapsed, bad, f"a time above 0, from {SHORTEST:g} to {LONGEST:g}")
        if self.since is not None:
            with np.errstate(invalid="ignore"):
                bad = (self.since < 0) | (self.changed & (self.since > self.elapsed))
            _refuse_if("since", self.since, bad, "within the interval in which the change was found")
        if self.count is not None:
            _refuse_if("count", self.count, _no_counts(self.count), _COUNT)
            bad = ~np.isnan(self.count) & ((self.count > 0) != self.changed)
            _refuse_if("count", self.count, bad, "above 0 where changed and 0 elsewhere")

    @property
    def size(self) -> int:
        return int(self.item.size)

    def polls_per_item(self) -> Ints:
        return np.bincount(self.item, minlength=self.items)

    def changes_per_item(self) -> Ints:
        """Return the changes of every item: its counted changes plus its polls with a change but no count."""
        if self.count is None:
            return np.bincount(self.item[self.changed], minlength=self.items)
        counted = np.where(np.isnan(self.count), self.changed, self.count)
        return np.bincount(self.item, counted, minlength=self.items).astype(np.int64)

    def time_per_item(self) -> Float64s:
        """Return the time over which every item was polled: the sum of its ``elapsed``."""
        return np.asarray(np.bincount(self.item, self.elapsed, minlength=self.items), dtype=np.float64)

    def of_items(self, chosen: Bools) -> PollTable:
        """Return only the polls of the items marked in ``chosen``, with the items renumbered from 0."""
        rows = np.cumsum(chosen) - 1
        keep = chosen[self.item]
        return self._take(keep, rows[self.item[keep]], int(np.count_nonzero(chosen)))

    def of_polls(self, chosen: Bools) -> PollTable:
        """Return only the polls marked in ``chosen``; the items keep their numbers."""
        return self._take(chosen, self.item[chosen], self.items)

    def between(self, first: int, end: int) -> PollTable:
        """Return the polls of the items ``first`` to ``end`` − 1, renumbered from 0. Most arrays are views.

        >>> polls_from_intervals(np.ones(3), [0, 1, 0], item=[0, 1, 2]).between(1, 3).changed.tolist()
        [True, False]
        """
        part = slice(*np.searchsorted(self.item, (first, end)))
        return self._take(part, self.item[part] - first, end - first)

    def take_rows(self, rows: Ints, item: Ints, items: int) -> PollTable:
        """Return the polls in these rows; ``item`` are their new item numbers, below ``items``."""
        return self._take(rows, item, items)

    def _take(self, which: Bools | Ints | slice, item: Ints, items: int) -> PollTable:
        columns = (self.since, self.count, self.end, self.weight)
        optional = (None if column is None else column[which] for column in columns)
        return PollTable(item, self.elapsed[which], self.changed[which], items, *optional)


def polls_from_intervals(
    elapsed: ArrayLike,
    changed: ArrayLike,
    *,
    item: ArrayLike | None = None,
    items: int | None = None,
    since: ArrayLike | None = None,
    count: ArrayLike | None = None,
) -> PollTable:
    """Return the table of polls with these times since the previous poll (``elapsed``).
    ``item`` are the numbers of the polled items, in ascending order; by default each item has one poll.

    >>> polls_from_intervals(2.0, True).size
    1
    """
    time = np.atleast_1d(np.asarray(as_floats("elapsed", elapsed), dtype=np.float64))
    rows = np.arange(time.size) if item is None else np.atleast_1d(np.asarray(item, dtype=np.int64))
    total = items if items is not None else int(rows.max(initial=-1)) + 1
    bits = np.atleast_1d(as_flags("changed", changed))
    return PollTable(rows, time, bits, total, _optional("since", since), _optional("count", count))


def polls_from_times(
    item: ArrayLike,
    times: ArrayLike,
    changed: ArrayLike,
    *,
    items: int | None = None,
    modified: ArrayLike | None = None,
    count: ArrayLike | None = None,
    reached: ArrayLike | None = None,
    now: float | None = None,
) -> PollTable:
    """Return the table of polls that were made at these ``times``; the arrays may be in any order.
    Polls of an item at the same time count as one. The first poll of each item is left out, because no
    interval ends there. ``modified`` are the modification times stated by the source, ``count`` the changes
    since the previous poll (NaN if unknown). ``reached`` is false if a poll failed. Polls after ``now`` raise
    ``InputError``.

    >>> polls_from_times([0, 0, 0], [10.0, 0.0, 4.0], [True, False, False]).elapsed.tolist()
    [4.0, 6.0]
    """
    columns = _RecordedPolls.from_arrays(item, times, changed, modified, count, now)
    if items is not None:
        _refuse_if("item", columns.item, columns.item >= items, f"below the number of items, {items}")
    if reached is not None:
        columns = columns.take(_same_length("reached", as_flags("reached", reached), columns.item))
    columns = columns.sort().merge_same_instants()
    total = items if items is not None else int(columns.item.max(initial=-1)) + 1
    later = np.zeros(columns.item.size, dtype=bool)
    np.equal(columns.item[1:], columns.item[:-1], out=later[1:])
    ends = columns.take(np.flatnonzero(later))
    elapsed = columns.time[:-1][later[1:]]
    np.subtract(ends.time, elapsed, out=elapsed)
    counted = ends.count
    bits = ends.changed if counted is None else np.where(np.isnan(counted), ends.changed, counted > 0)
    since = None
    if ends.modified is not None:
        since = credible_since(ends.item, ends.time, elapsed, bits, ends.modified, total)
    return PollTable(ends.item, elapsed, bits, total, since, counted, ends.time)


def credible_since(
    item: Ints, end: Float64s, elapsed: Float64s, changed: Bools, modified: Float64s, items: int
) -> Float64s:
    """Return the time from the last modification to each poll; NaN if the stamp is unknown or not credible.
    ``end`` is the time of each poll, ``modified`` its stamp. A stamp is judged as the file's docstring says.

    >>> row = np.zeros(2, dtype=np.int64)
    >>> credible_since(row, np.array([5.0, 9.0]), np.array([5.0, 4.0]), np.array([True, True]),
    ...                np.array([3.0, 9.5]), 1).tolist()       # one stamp of two is in the future
    [nan, nan]
    """
    age = end - modified
    known = ~np.isnan(modified)
    with np.errstate(invalid="ignore"):
        newer = age < elapsed
        wrong = known & ((age <= NOW * elapsed) | (newer != changed))
    wrongs = np.bincount(item[wrong], minlength=items)
    distrusted = wrongs > WRONG_STAMPS_TOLERATED * np.bincount(item[known], minlength=items)
    return np.where(known & ~wrong & ~distrusted[item], age, np.nan)


@dataclass(frozen=True, slots=True)
class _RecordedPolls:
    """Polls with their times, as they were recorded, before they become a ``PollTable``."""

    item: Ints
    time: Float64s
    changed: Bools
    modified: Float64s | None
    count: Float64s | None

    @classmethod
    def from_arrays(
        cls,
        item: ArrayLike,
        times: ArrayLike,
        changed: ArrayLike,
        modified: ArrayLike | None,
        count: ArrayLike | None,
        now: float | None,
    ) -> _RecordedPolls:
        rows, time = as_whole_numbers("item", item), np.asarray(as_floats("times", times), dtype=np.float64)
        stamps, counts = _optional("modified", modified), _optional("count", count)
        polls = cls(rows, time, as_flags("changed", changed), stamps, counts)
        for name in ("time", "changed", "modified", "count"):
            column = getattr(polls, name)
            if column is not None:
                _same_length(name, column, rows)
        _refuse_if("times", time, ~np.isfinite(time), "a finite time")
        if now is not None:
            _refuse_if("times", time, time > now, f"no later than now ({now})")
        if polls.count is not None:
            _refuse_if("count", polls.count, _no_counts(polls.count), _COUNT)
        return polls

    def take(self, which: Bools | Ints) -> _RecordedPolls:
        optional = (None if c is None else c[which] for c in (self.modified, self.count))
        return _RecordedPolls(self.item[which], self.time[which], self.changed[which], *optional)

    def sort(self) -> _RecordedPolls:
        """Return the polls sorted by item and time. Only items whose polls are not in order are sorted."""
        if bool(np.all(self.is_in_order())):
            return self
        polls = self.sorted_by_item()
        right = polls.is_in_order()
        if bool(np.all(right)):
            return polls
        wrong = np.zeros(int(polls.item[-1]) + 1, dtype=bool)
        wrong[polls.item[1:][~right]] = True
        places = np.flatnonzero(wrong[polls.item])
        order = np.arange(polls.item.size)
        order[places] = places[np.lexsort((polls.time[places], polls.item[places]))]
        return polls.take(order)

    def sorted_by_item(self) -> _RecordedPolls:
        """Return the polls sorted by item; the polls of an item keep their sequence.
        NumPy's plain sort of integers is several times faster than its stable sort. So the numbers that are
        sorted consist of the item in the high bits and the position of the poll in the low bits."""
        bits = max(self.item.size - 1, 1).bit_length()
        if int(self.item.max(initial=0)) >> (63 - bits):
            return self.take(np.argsort(self.item, kind="stable"))
        keys = self.item << bits
        keys += np.arange(keys.size)
        keys.sort()
        order = keys & ((1 << bits) - 1)
        keys >>= bits
        return replace(self.take(order), item=keys)

    def is_in_order(self) -> Bools:
        """Return for each poll from the second on whether it follows its predecessor by item and time."""
        later, same = self.item[1:] > self.item[:-1], self.item[1:] == self.item[:-1]
        return np.asarray(later | (same & (self.time[1:] >= self.time[:-1])))

    def merge_same_instants(self) -> _RecordedPolls:
        """Merge polls of an item at the same time into one, which found a change if any of them did."""
        first = np.ones(self.item.size, dtype=bool)
        first[1:] = (self.item[1:] != self.item[:-1]) | (self.time[1:] != self.time[:-1])
        if bool(np.all(first)):
            return self
        starts = np.flatnonzero(first)
        return _RecordedPolls(
            self.item[starts],
            self.time[starts],
            np.logical_or.reduceat(self.changed, starts),
            None if self.modified is None else np.fmax.reduceat(self.modified, starts),
            None if self.count is None else np.fmax.reduceat(self.count, starts),
        )


def as_whole_numbers(name: str, given: ArrayLike) -> Ints:
    """Return ``given`` as integers of 0 or more, such as numbers of items; raise ``InputError`` if it is not.

    >>> as_whole_numbers("item", [0, 2]).tolist()
    [0, 2]
    """
    numbers = as_floats(name, given) if not isinstance(given, np.ndarray) else given
    if not np.issubdtype(numbers.dtype, np.integer):
        numbers = as_floats(name, numbers)
        _refuse_if(name, numbers, numbers != np.floor(numbers), "a whole number of 0 or more")
    _refuse_if(name, numbers, ~(numbers >= 0), "a whole number of 0 or more")
    return numbers.astype(np.int64, copy=False)


def as_flags(name: str, given: ArrayLike) -> Bools:
    """Return ``given`` as booleans; raise ``InputError`` unless all are booleans or the numbers 0 and 1.

    >>> as_flags("changed", [1, 0]).tolist()
    [True, False]
    """
    array = np.asarray(given)
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "iuf":
        wrong = [each for each in array.ravel().tolist() if not isinstance(each, bool)]
        if wrong:
            raise InputError(f"{name} holds {wrong[0]!r}: must be true or false, or 1 or 0")
        return array.astype(bool)
    numbers = as_floats(name, array)
    if array.size and not np.all((numbers == 0) | (numbers == 1)):
        row = int(np.argmax(((numbers != 0) & (numbers != 1)).ravel()))
        raise InputError(f"{name}[{row}] is {array.ravel()[row]}: must be true or false, or 1 or 0")
    return np.asarray(numbers == 1)


def _same_length(name: str, column: npt.NDArray[Any], rows: Ints) -> npt.NDArray[Any]:
    if column.shape != rows.shape:
        raise InputError(f"{name} has {column.size} values for {rows.size} polls")
    return column


def _no_counts(count: Float64s) -> Bools:
    """Mark the values that are not valid counts; NaN (unknown) is valid."""
    some = np.nan_to_num(count, nan=0.0)
    wrong: Bools = (some != np.floor(some)) | (some < 0) | (some > MOST_CHANGES)
    return wrong


def _optional(name: str, given: ArrayLike | None) -> Float64s | None:
    return None if given is None else np.atleast_1d(np.asarray(as_floats(name, given), dtype=np.float64))


def _refuse_if(name: str, column: Numbers, bad: Bools, wanted: str) -> None:
    if np.any(bad):
        row = int(np.argmax(bad))
        raise InputError(f"{name}[{row}] is {column[row]}: must be {wanted}")
