"""Families: groups of items that are likely to change together, found from the names of the items.

A mass edit changes the pages of a directory, a release changes the packages of a project. Names suggest which
items belong together: ``docs/tasks/install`` is in the directory ``docs/tasks``; ``GLMakie`` and
``GLMakieTests`` have the same first words; ``en/docs/tasks`` and ``ja/docs/tasks`` are the same path in two
top directories. Each kind of family is one column of an array that holds the number of each item's family,
or −1 for none. A family's number is a hash of its name alone, so it is the same in another process and after
items were added or removed. The polls teach whether a family does change together; most do not.

Names come from outside, so time and memory grow with the total length of the names only, not with the number
of beginnings that they have: neighbours in sorted order show how much of a name others share.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from afresh.policy.shared_beginnings import shared_beginnings
from afresh.values.arrays import Ints

FEWEST_IN_DIRECTORY = 4  # a directory with fewer items is merged into its parent directory

Label: TypeAlias = Hashable | None
_Directories: TypeAlias = dict[str, list[int]]
"""The rows of the names in each directory, by the name of the directory."""


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
    families = np.full((len(names), 3), -1, dtype=np.int64)
    directories: _Directories = {}
    for row, name in enumerate(names):
        directories.setdefault(name.rpartition("/")[0], []).append(row)
    _number_words(names, directories, families[:, 0])
    _number_directories(directories, families[:, 1])
    _number_paths_below_top(names, families[:, 2])
    return families


def number_labels(labels: Sequence[Label]) -> Ints:
    """Return a 48-bit hash of each label's text, or −1 for None and for labels that occur only once.

    >>> number_labels(["b", None, "a", "b"]).tolist()
    [118289355612116, -1, -1, 118289355612116]
    """
    count = Counter(labels)
    number = {label: _number(label) for label in count if label is not None and count[label] > 1}
    return np.array([-1 if label is None else number.get(label, -1) for label in labels], dtype=np.int64)


def _number(label: Label) -> int:
    return int.from_bytes(blake2b(repr(label).encode(), digest_size=6).digest())


def _number_words(names: Sequence[str], directories: _Directories, numbers: Ints) -> None:
    """Write the number of the family of each name whose first words others in its directory share."""
    for directory, rows in directories.items():
        if len(rows) > 1:
            stems = [names[row].rpartition("/")[2] for row in rows]
            for beginning, members in shared_beginnings(stems):
                numbers[[rows[member] for member in members]] = _number((directory, beginning))


def _number_directories(directories: _Directories, numbers: Ints) -> None:
    """Write for each name the number of its directory, or of the nearest one above it with enough items.

    Directories with too few items move up one level at the same time, then those that still have too few,
    and so on. A directory is known by the hashes of its beginnings, so that no level needs a text of its own.
    """
    folders = [folder for folder in directories if folder]
    beginnings = [_hash_levels(folder) for folder in folders]
    level = [len(hashes) - 1 for hashes in beginnings]
    settled: set[int] = set()
    moving = list(range(len(folders)))
    while moving:
        count: Counter[int] = Counter()
        for folder in moving:
            count[beginnings[folder][level[folder]]] += len(directories[folders[folder]])
        settled.update(place for place, items in count.items() if items >= FEWEST_IN_DIRECTORY)
        moving = [one for one in moving if level[one] and beginnings[one][level[one]] not in settled]
        for folder in moving:
            level[folder] -= 1
    members: dict[int, list[int]] = {}
    for folder, hashes in enumerate(beginnings):
        members.setdefault(hashes[level[folder]], []).append(folder)
    for found in members.values():
        rows = [row for folder in found for row in directories[folders[folder]]]
        place = "/".join(folders[found[0]].split("/", level[found[0]] + 1)[: level[found[0]] + 1])
        if place and len(rows) > 1:
            numbers[rows] = _number(place)


def _hash_levels(folder: str) -> array[int]:
    """Return a hash of ``a``, of ``a/b`` and of ``a/b/c`` for the folder ``a/b/c``."""
    hashes = array("q")
    above = blake2b(digest_size=8)
    for part in folder.split("/"):
        above.update(_encode(part + "/"))
        hashes.append(_as_number(above.copy().digest()))
    return hashes


def _hash_text(text: str) -> int:
    return _as_number(blake2b(_encode(text), digest_size=8).digest())


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _as_number(digest: bytes) -> int:
    """Return a number from 0 to 2⁶³−1. Unlike Python's ``hash`` of a text it is the same in every process."""
    return int.from_bytes(digest) >> 1


def _number_paths_below_top(names: Sequence[str], numbers: Ints) -> None:
    below = (name.partition("/")[2] if name.count("/") >= 2 else None for name in names)
    hashes = array("q", (-1 if text is None else _hash_text(text) for text in below))
    _, first, which, count = np.unique(
        np.frombuffer(hashes, dtype=np.int64), return_index=True, return_inverse=True, return_counts=True
    )
    shared = count > 1
    shared &= np.frombuffer(hashes, dtype=np.int64)[first] != -1
    number_of = np.full(first.size, -1, dtype=np.int64)
    for place in np.flatnonzero(shared):
        number_of[place] = _number(names[first[place]].partition("/")[2])
    numbers[:] = number_of[which]
