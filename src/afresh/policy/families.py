"""Families: items that are likely to change together, read from their names or given.

A mass edit changes the pages of a directory, a release the packages of a project. Names tell who belongs
together: ``docs/tasks/install`` has the directory ``docs/tasks``, ``GLMakie`` and ``GLMakieTests`` share
words, ``ja/docs/tasks`` is ``docs/tasks`` elsewhere. Each kind of family is a column of numbers, −1 for none.
A family's number is made of its name alone: it is the same in another process and when items come and go.
Whether families do change together is learned from the polls, and most often they do not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from afresh.values.arrays import Ints

FEWEST_IN_DIRECTORY = 4  # a smaller directory counts as part of the one above
MOST_WITH_WORDS = 200  # so many items that share words share only a habit of naming
LEAST_LETTERS = 3
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z\d]")

Label: TypeAlias = Hashable | None


def families_of(names: Sequence[str]) -> Ints:
    """A row per item; columns: shared first words, directory, the same path elsewhere.

    >>> words, directory, elsewhere = families_of(["en/a/x", "en/a/y", "de/a/x", "de/b"]).T
    >>> words.max(), bool(directory[0] == directory[1] != directory[2]), bool(elsewhere[0] == elsewhere[2])
    (np.int64(-1), True, True)
    >>> makie, tests, zygote = families_of(["GLMakie", "GLMakieTests", "Zygote"])[:, 0]
    >>> bool(makie == tests), int(zygote)
    (True, -1)
    """
    kinds: tuple[Callable[[Sequence[str]], list[Label]], ...] = (_words, _directories, _elsewhere)
    return np.stack([number_labels(kind(names)) for kind in kinds], axis=1)


def number_labels(labels: Sequence[Label]) -> Ints:
    """Labels as numbers of 48 bits made of each label's text; −1 for None and for whoever is alone.

    >>> number_labels(["b", None, "a", "b"]).tolist()
    [118289355612116, -1, -1, 118289355612116]
    """
    count = Counter(labels)
    number = {label: _of_text(repr(label)) for label in count if label is not None and count[label] > 1}
    return np.array([-1 if label is None else number.get(label, -1) for label in labels], dtype=np.int64)


def _of_text(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest())


def _words(names: Sequence[str]) -> list[Label]:
    """The longest run of first words that another name in the same directory shares."""
    split = [(name.rpartition("/")[0], _WORDS.findall(name.rpartition("/")[2])) for name in names]
    count: Counter[tuple[str, str]] = Counter()
    for directory, words in split:
        count.update((directory, prefix) for prefix in _prefixes(words))
    return [
        next(
            (
                (directory, prefix)
                for prefix in reversed(_prefixes(words))
                if len(prefix) >= LEAST_LETTERS and 2 <= count[directory, prefix] <= MOST_WITH_WORDS
            ),
            None,
        )
        for directory, words in split
    ]


def _prefixes(words: list[str]) -> list[str]:
    return ["".join(words[: end + 1]) for end in range(len(words))]


def _directories(names: Sequence[str]) -> list[Label]:
    """The directory, or the first one above it with enough items."""
    folders = [name.rpartition("/")[0] for name in names]
    while True:
        count = Counter(folders)
        risen = [
            folder if count[folder] >= FEWEST_IN_DIRECTORY or "/" not in folder else folder.rpartition("/")[0]
            for folder in folders
        ]
        if risen == folders:
            return [folder or None for folder in folders]
        folders = risen


def _elsewhere(names: Sequence[str]) -> list[Label]:
    """The path below the top directory."""
    return [name.partition("/")[2] if name.count("/") >= 2 else None for name in names]
