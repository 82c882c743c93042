"""Columns of text: many strings, without gaps. The rest of the program uses them through ``Texts``.

With pyarrow they are held as an Arrow array, which needs little memory and is passed on to files as it is.
Without it (``ListedTexts``) they are Python strings in a NumPy array. Both behave the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.tables.backend import has_pyarrow
from afresh.values.arrays import Ints

Codes: TypeAlias = npt.NDArray[np.int32]


class Texts(Protocol):
    """A column of text."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[str]: ...

    def __getitem__(self, row: int) -> str: ...

    def tolist(self) -> list[str]: ...

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Texts:
        """Return the texts of these rows, in this order."""
        ...

    def encode(self) -> EncodedTexts:
        """Return the distinct texts, in the order in which they first occur, and which of them each row has.

        >>> encoded = as_texts(["b", "a", "b"]).encode()
        >>> encoded.code.tolist(), encoded.labels.tolist()
        ([0, 1, 0], ['b', 'a'])
        """
        ...

    def lengths(self) -> Ints:
        """Return the number of characters of each text."""
        ...


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """Texts of which many are equal: row i has the text ``labels[code[i]]``."""

    code: Codes
    labels: Texts

    def decode(self) -> Texts:
        return self.labels.take(self.code)


class ListedTexts:
    """Texts as Python strings in a NumPy array."""

    def __init__(self, values: npt.NDArray[np.object_]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __getitem__(self, row: int) -> str:
        return str(self._values[row])

    def tolist(self) -> list[str]:
        texts: list[str] = self._values.tolist()
        return texts

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> ListedTexts:
        return ListedTexts(self._values[rows])

    def encode(self) -> EncodedTexts:
        numbers: dict[str, int] = {}
        code = np.fromiter(
            (numbers.setdefault(text, len(numbers)) for text in self.tolist()), np.int32, len(self)
        )
        return EncodedTexts(code, listed_texts(list(numbers)))

    def lengths(self) -> Ints:
        return np.fromiter(map(len, self.tolist()), np.int64, len(self))


def listed_texts(values: Sequence[str]) -> ListedTexts:
    """Return ``ListedTexts`` of these strings."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return ListedTexts(array)


def as_texts(values: Sequence[str]) -> Texts:
    """Return a column of these strings."""
    if has_pyarrow():
        from afresh.tables.arrow.arrow_texts import arrow_texts

        return arrow_texts(values)
    return listed_texts(values)


def repeat_text(text: str, rows: int) -> Texts:
    """Return a column in which every row has the same text."""
    if has_pyarrow():
        from afresh.tables.arrow.arrow_texts import repeat_arrow_text

        return repeat_arrow_text(text, rows)
    return ListedTexts(np.full(rows, text, dtype=object))


def encode_together(parts: Sequence[Texts]) -> EncodedTexts:
    """Encode the rows of all ``parts``, one after the other.

    This is faster than to join the codes of each part, because every text is hashed only once.

    >>> encode_together([as_texts(["a", "b"]), as_texts(["c", "a"])]).code.tolist()
    [0, 1, 2, 0]
    """
    if all(isinstance(part, ListedTexts) for part in parts):
        return join_texts(parts).encode()
    from afresh.tables.arrow.arrow_texts import encode_arrow_texts

    return encode_arrow_texts(parts)


def join_texts(parts: Sequence[Texts]) -> Texts:
    """Return the rows of all ``parts``, one after the other."""
    if all(isinstance(part, ListedTexts) for part in parts):
        return listed_texts([text for part in parts for text in part.tolist()])
    from afresh.tables.arrow.arrow_texts import join_arrow_texts

    return join_arrow_texts(parts)


def join_encoded(parts: Sequence[EncodedTexts]) -> EncodedTexts:
    """Join parts with few labels.

    >>> parts = [as_texts(["a", "b"]).encode(), as_texts(["c", "a"]).encode()]
    >>> join_encoded(parts).decode().tolist()
    ['a', 'b', 'c', 'a']
    """
    numbers: dict[str, int] = {}
    codes = []
    for part in parts:
        places = [numbers.setdefault(label, len(numbers)) for label in part.labels]
        codes.append(np.array(places, dtype=np.int32)[part.code])
    return EncodedTexts(np.concatenate(codes), as_texts(list(numbers)))


def positions_in(labels: Texts, texts: Texts) -> Ints:
    """Return, for each of ``texts``, its position in ``labels``, or -1 if it is not one of them.

    >>> positions_in(as_texts(["a", "b"]), as_texts(["b", "c"])).tolist()
    [1, -1]
    """
    place = {label: at for at, label in enumerate(labels)}
    encoded = texts.encode()
    of_label = np.array([place.get(label, -1) for label in encoded.labels], dtype=np.int64)
    return of_label[encoded.code]
