"""A sample of the items of a log, chosen by a hash of their keys: the same in whatever order they come.

Season, drift and jumps are learned from these items, so that a log that is estimated in parts on many
machines gets the same rates as one that is read at once. Priors are learned from the first of them only
(``prior_items``), so many that more would hardly change a prior, and so few that ``afresh why`` can read them
from a store each time: both find the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

from afresh.rates.poll_table import PollTable
from afresh.values.arrays import Ints

SAMPLED = 50_000  # items
FEWEST_OF_PRIOR, MOST_OF_PRIOR = 100, 2000  # items with polls from which priors are learned
POLLS_OF_PRIOR = 20_000  # no more polls are needed, if the fewest items have them
POLLS_OF_ITEM = 200  # of an item with more polls, only so many count for this number
Hashes = npt.NDArray[np.uint64]


def hash_keys_evenly(keys: Iterable[str]) -> Hashes:
    """Return a number of 64 bits for each key, the same in every process. All its bits look random.

    >>> [hex(number) for number in hash_keys_evenly(["a", "b"]).tolist()]
    ['0x2c3debbc7335b4ee', '0x645f1e1d7a7ff68f']
    """
    mixed = np.fromiter((crc32(key.encode()) for key in keys), dtype=np.uint64)
    # The finaliser of SplitMix64 (Steele, Lea & Flood 2014) spreads the 32 bits over all 64.
    mixed += np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)


def sample_keys(keys: Sequence[str], number: int = SAMPLED) -> Ints:
    """Return the positions of the ``number`` keys with the smallest hashes, by hash. Of equal hashes the key
    that comes first in the alphabet is before the other.

    >>> sample_keys(["a", "b", "c"]).tolist(), sample_keys(["c", "b", "a"], 2).tolist()
    ([0, 1, 2], [2, 1])
    """
    hashes = hash_keys_evenly(keys)
    if hashes.size > number:
        last = np.partition(hashes, number - 1)[number - 1]
        chosen = np.flatnonzero(hashes <= last)
    else:
        chosen = np.arange(hashes.size)
    order = sorted(chosen.tolist(), key=lambda at: (int(hashes[at]), keys[at]))
    return np.array(order[:number], dtype=np.int64)


def prior_items(polls_per_item: Ints) -> int:
    """Return how many items from the beginning of a sample priors are learned from, given the number of polls
    of each: enough items with polls, or all.

    >>> prior_items(np.array([3] * 5000)), prior_items(np.array([0, 900] * 5000)), prior_items(np.array([2]))
    (2000, 200, 1)
    """
    items = np.cumsum(polls_per_item > 0)
    polls = np.cumsum(np.minimum(polls_per_item, POLLS_OF_ITEM))
    enough = (items >= MOST_OF_PRIOR) | ((items >= FEWEST_OF_PRIOR) & (polls >= POLLS_OF_PRIOR))
    return int(enough.argmax()) + 1 if enough.any() else polls_per_item.size


def polls_of_sample(polls: PollTable, items: Ints) -> PollTable:
    """Return the polls of these items, renumbered in their order.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> table = polls_from_intervals([1.0, 2.0, 3.0], [1, 0, 1], item=[0, 1, 1])
    >>> found = polls_of_sample(table, np.array([1, 0]))
    >>> found.item.tolist(), found.elapsed.tolist()
    ([0, 0, 1], [2.0, 3.0, 1.0])
    """
    first, end = np.searchsorted(polls.item, items), np.searchsorted(polls.item, items + 1)
    number = end - first
    begin = np.cumsum(number) - number
    rows = np.arange(int(number.sum())) + np.repeat(first - begin, number)
    return polls.take_rows(rows, np.repeat(np.arange(items.size), number), items.size)


def join_samples(
    samples: Sequence[tuple[Sequence[str], PollTable]], number: int = SAMPLED
) -> tuple[list[str], PollTable]:
    """Return a tuple (keys, polls): the sample of all items from those of parts without common items."""
    keys = [key for own, _ in samples for key in own]
    offsets = np.cumsum([0, *(table.items for _, table in samples)])
    tables = [table for _, table in samples]
    whole = PollTable(
        np.concatenate([table.item + offset for table, offset in zip(tables, offsets, strict=False)]),
        np.concatenate([table.elapsed for table in tables]),
        np.concatenate([table.changed for table in tables]),
        int(offsets[-1]),
        *(_joined([getattr(table, name) for table in tables]) for name in ("since", "count", "end")),
    )
    chosen = sample_keys(keys, number)
    return [keys[at] for at in chosen], polls_of_sample(whole, chosen)


def _joined(columns: Sequence[npt.NDArray[np.float64] | None]) -> npt.NDArray[np.float64] | None:
    given = [column for column in columns if column is not None]
    return np.concatenate(given) if len(given) == len(columns) and given else None
