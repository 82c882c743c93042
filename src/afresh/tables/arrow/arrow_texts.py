"""A column of text as an Arrow array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from afresh.tables.text_columns import EncodedTexts, Texts
from afresh.values.arrays import Ints


class ArrowTexts:
    """Implements ``Texts``. ``array`` is a LargeStringArray without nulls."""

    def __init__(self, array: pa.LargeStringArray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __getitem__(self, row: int) -> str:
        return str(self.array[row].as_py())

    def tolist(self) -> list[str]:
        texts: list[str] = self.array.to_pylist()
        return texts

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> ArrowTexts:
        return ArrowTexts(self.array.take(pa.array(rows)))

    def encode(self) -> EncodedTexts:
        return encode_arrow_texts([self])

    def lengths(self) -> Ints:
        found: Ints = pc.utf8_length(self.array).to_numpy(zero_copy_only=False).astype(np.int64)
        return found


def arrow_texts(values: Sequence[str]) -> ArrowTexts:
    return ArrowTexts(pa.array(values, pa.large_string()))


def repeat_arrow_text(text: str, rows: int) -> ArrowTexts:
    return ArrowTexts(pa.repeat(pa.scalar(text, pa.large_string()), rows))


def join_arrow_texts(parts: Sequence[Texts]) -> ArrowTexts:
    return ArrowTexts(pa.concat_arrays([arrow_array(part) for part in parts]))


def encode_arrow_texts(parts: Sequence[Texts]) -> EncodedTexts:
    """Encode the rows of all ``parts`` without joining them."""
    chunks = pa.chunked_array([arrow_array(part) for part in parts], pa.large_string())
    if len(chunks):
        encoded = chunks.dictionary_encode().combine_chunks()
    else:  # pyarrow 20 cannot combine no chunks
        encoded = pa.array([], pa.large_string()).dictionary_encode()
    return EncodedTexts(encoded.indices.to_numpy(zero_copy_only=False), ArrowTexts(encoded.dictionary))


def arrow_array(texts: Texts) -> pa.LargeStringArray:
    """Return the texts as an Arrow array."""
    return texts.array if isinstance(texts, ArrowTexts) else pa.array(texts.tolist(), pa.large_string())
