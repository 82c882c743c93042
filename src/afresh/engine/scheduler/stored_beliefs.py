"""The stored form of the belief of an item: the evidence of its polls, and when it may be polled again.

The evidence is ln(posterior/prior) at each rate of the policy's grid, shifted so that the largest is 0, in
four bytes per rate. The prior is left out, so that the evidence can be combined with a prior that is learned
later. Also stored are the lowest rate of the grid, the class of rates by which the item is calibrated, the
number of its last polls without a change, the information that its next regular poll gives, and its families.
Version 3 added the number of its polls, the changes expected from its families and those attributed to them,
version 4 the age of the item at its first poll. Versions 2 and 3 are still read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from afresh.policy.adaptive.age_priors import UNKNOWN
from afresh.policy.adaptive.saved_state import POLLS_BEFORE, Arrays
from afresh.values.arrays import Float64s, Ints

VERSION, WITHOUT_AGES, WITHOUT_POLLS = 4, 3, 2
_OF_FAMILIES = {"shocks.exposed": "exposed", "shocks.felt": "felt"}  # key of ``Adaptive.rows``: stored field
_MOST = np.iinfo(np.uint16).max  # larger counts are stored as this one
_HEAD = 4  # bytes: version, number of rates of the grid, number of kinds of families, calibration class
_LEAST = 1e-26
FORGOTTEN = b"\0"
"""The stored belief of an item of which all that was learned was forgotten; ``unpack`` reads none from it."""

Sizes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StoredBeliefs:
    """The beliefs of a batch of items, as read from a store. ``known`` has the positions in the batch of
    those items that have a belief. ``rows`` (as of ``Adaptive.rows``) and ``families`` have an entry for each
    of these, ``not_before_s`` for every item: −∞ if nothing delays its next poll."""

    not_before_s: Float64s
    known: Ints
    rows: Arrays
    families: Ints


def pack(rows: Arrays, not_before_s: Float64s, families: Ints) -> list[bytes]:
    """Return the belief of each item as bytes; ``rows`` are arrays that ``Adaptive.rows`` returned."""
    count, steps = rows["evidence"].shape
    table = np.zeros(count, dtype=_row_type(VERSION, steps, families.shape[1]))
    table["version"], table["steps"], table["kinds"] = VERSION, steps, families.shape[1]
    evidence = rows["evidence"] / np.maximum(rows["evidence"].max(axis=1, keepdims=True), _LEAST)
    table["evidence"] = np.log(np.maximum(evidence, _LEAST))
    table["rate_class"], table["lowest"] = rows["rate_class"], rows["lowest"]
    table["quiet"], table["polls"] = (np.minimum(rows[name], _MOST) for name in ("quiet", "polls"))
    table["spared"], table["age"] = rows["spared"], rows["age"]
    table["not_before_s"], table["families"] = not_before_s, families
    for key, name in _OF_FAMILIES.items():
        table[name] = rows.get(key, 0.0)  # a policy without families has none
    packed, size = table.tobytes(), table.itemsize
    return [packed[begin : begin + size] for begin in range(0, len(packed), size)]


def unpack(beliefs: bytes, sizes: Sizes) -> StoredBeliefs:
    """Return the beliefs of items whose stored bytes, ``sizes`` bytes per item, are joined in ``beliefs``.
    Bytes in a format other than the most frequent one are ignored, unless only the version differs.

    >>> unpack(b"", np.array([0, 0])).not_before_s.tolist()
    [-inf, -inf]
    """
    not_before_s = np.full(sizes.size, -np.inf)
    ends = np.cumsum(sizes)
    known, table = _read_main_format(beliefs, sizes, ends)
    not_before_s[known] = table["not_before_s"]
    rows: Arrays = {
        "evidence": np.exp(table["evidence"]),  # as exact as it was stored, in half the memory
        "lowest": table["lowest"],
        "polled": np.ones(known.size, dtype=bool),
        "rate_class": table["rate_class"].astype(np.int64),
        "quiet": table["quiet"].astype(np.int64),
        "polls": table["polls"].astype(np.int64),
        "spared": table["spared"].astype(np.float64),
        "age": table["age"],
    }
    rows |= {key: table[name].astype(np.float64) for key, name in _OF_FAMILIES.items()}
    return StoredBeliefs(not_before_s, known, rows, table["families"].astype(np.int64))


def _read_main_format(beliefs: bytes, sizes: Sizes, ends: Sizes) -> tuple[Ints, npt.NDArray[Any]]:
    """Return a tuple (positions, table) for items in the most frequent format, in all versions of it."""
    long = sizes[sizes > _HEAD]
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=_row_type(VERSION, 1, 0))
    if long.size == 0:
        return nothing
    every = np.frombuffer(beliefs, dtype=np.uint8)
    size = int(np.bincount(long).argmax())
    begin = int(ends[np.argmax(sizes == size)]) - size
    version, steps, kinds = every[begin : begin + 3].tolist()
    versions = (VERSION, WITHOUT_AGES, WITHOUT_POLLS)
    if version not in versions or _row_type(version, steps, kinds).itemsize != size:
        return nothing
    found = [_read_rows(every, sizes, ends, (version, steps, kinds)) for version in versions]
    if not any(older.size for older, _ in found[1:]):
        return found[0]
    positions = np.concatenate([some for some, _ in found])
    table = np.concatenate(
        [_upgrade(version, one) for version, (_, one) in zip(versions, found, strict=True)]
    )
    order = np.argsort(positions)
    return positions[order], table[order]


def _upgrade(version: int, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the table of a version in the format of today."""
    if version == VERSION:
        return table
    steps, kinds = (table.dtype[name].shape[0] for name in ("evidence", "families"))
    upgraded = np.zeros(table.size, dtype=_row_type(VERSION, steps, kinds))
    for name in table.dtype.names or ():
        upgraded[name] = table[name]
    upgraded["age"] = UNKNOWN
    if version == WITHOUT_POLLS:
        upgraded["polls"] = POLLS_BEFORE
    return upgraded


def _read_rows(
    every: npt.NDArray[np.uint8], sizes: Sizes, ends: Sizes, head: tuple[int, int, int]
) -> tuple[Ints, npt.NDArray[Any]]:
    """Return a tuple (positions, table) for items whose bytes begin with ``head``."""
    kind = _row_type(*head)
    size = kind.itemsize
    positions = np.flatnonzero(sizes == size)
    if positions.size * size != every.size:
        every = every[(ends[positions][:, None] - size + np.arange(size)).ravel()]
    joined = every.reshape(-1, size)
    same = (joined[:, :3] == head).all(axis=1)
    return positions[same], np.ascontiguousarray(joined[same]).view(kind).reshape(-1)


def _row_type(version: int, steps: int, kinds: int) -> np.dtype[Any]:
    of_families = [(name, "<f4") for name in _OF_FAMILIES.values()]
    later = [("polls", "<u2"), *of_families] if version > WITHOUT_POLLS else []
    later += [("age", "i1")] if version > WITHOUT_AGES else []
    return np.dtype(
        [
            ("version", "u1"),
            ("steps", "u1"),
            ("kinds", "u1"),
            ("rate_class", "u1"),
            ("quiet", "<u2"),
            ("spared", "<f4"),
            ("evidence", "<f4", (steps,)),
            ("lowest", "<f8"),
            ("not_before_s", "<f8"),
            ("families", "<i8", (kinds,)),
            *later,
        ]
    )
