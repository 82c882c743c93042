"""Families: groups of items that are likely to change together, found from the names of the items.

A mass edit changes the pages of a directory, a release changes the packages of a project. Names suggest which
items belong together: ``docs/tasks/install`` is in the directory ``docs/tasks``; ``GLMakie`` and
``GLMakieTests`` have the same first words; ``en/docs/tasks`` and ``ja/docs/tasks`` are the same path in two
top directories. Each kind of family is one column of an array that holds the number of each item's family,
or −1 for none. A family's number is a hash of its name alone, so it is the same in another process and after
items were added or removed. The polls teach whether a family does change together; most do not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from afresh.values.arrays import Ints

FEWEST_IN_DIRECTORY = 4  # a directory with fewer items is merged into its parent directory
MOST_WITH_WORDS = 200  # if more items share their first words, that is a naming convention, not a family
LEAST_LETTERS = 3
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z\d]")

Label: TypeAlias = Hashable | None


def families_of(names: Sequence[str]) -> Ints:
    """Return the families of each item, with a row per name and a column per kind of family.
    The columns are: same first words, same directory, same path in another top directory.

    >>> words, directory, same_path = families_of(["en/a/x", "en/a/y", "de/a/x", "de/b"]).T
    >>> words.max(), bool(directory[0] == directory[1] != directory[2]), bool(same_path[0] == same_path[2])
    (np.int64(-1), True, True)
    >>> makie, tests, zygote = families_of(["GLMakie", "GLMakieTests", "Zygote"])[:, 0]
    >>> bool(makie == tests), int(zygote)
    (True, -1)
    """
    kinds: tuple[Callable[[Sequence[str]], list[Label]], ...] = (_words, _directories, _paths_below_top)
    return np.stack([number_labels(kind(names)) for kind in kinds], axis=1)


def number_labels(labels: Sequence[Label]) -> Ints:
    """Return a 48-bit hash of each label's text, or −1 for None and for labels that occur only once.

    >>> number_labels(["b", None, "a", "b"]).tolist()
    [118289355612116, -1, -1, 118289355612116]
    """
    count = Counter(labels)
    shared = (label for label in count if label is not None and count[label] > 1)
    digests = {label: blake2b(repr(label).encode(), digest_size=6).digest() for label in shared}
    number = {label: int.from_bytes(digest) for label, digest in digests.items()}
    return np.array([-1 if label is None else number.get(label, -1) for label in labels], dtype=np.int64)


def _words(names: Sequence[str]) -> list[Label]:
    """Return the longest beginning of whole words of each name that 2 to 200 names of its directory share."""
    split = [(name.rpartition("/")[0], _WORDS.findall(name.rpartition("/")[2])) for name in names]
    count: Counter[tuple[str, str]] = Counter()
    for directory, words in split:
        count.update((directory, prefix) for prefix in _prefixes(words))

    def longest(directory: str, words: list[str]) -> Label:
        for prefix in reversed(_prefixes(words)):
            if len(prefix) >= LEAST_LETTERS and 2 <= count[directory, prefix] <= MOST_WITH_WORDS:
                return directory, prefix
        return None

    return [longest(*each) for each in split]


def _prefixes(words: list[str]) -> list[str]:
    return ["".join(words[: end + 1]) for end in range(len(words))]


def _directories(names: Sequence[str]) -> list[Label]:
    """Return for each name its directory, or the nearest one above it that has enough items."""
    folders = [name.rpartition("/")[0] for name in names]
    while True:
        count = Counter(folders)
        raised = [
            folder if count[folder] >= FEWEST_IN_DIRECTORY or "/" not in folder else folder.rpartition("/")[0]
            for folder in folders
        ]
        if raised == folders:
            return [folder or None for folder in folders]
        folders = raised


def _paths_below_top(names: Sequence[str]) -> list[Label]:
    return [name.partition("/")[2] if name.count("/") >= 2 else None for name in names]
