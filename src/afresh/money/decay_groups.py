"""Which items follow which decay function: one for all, one object, or a name per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.model.decay import Decay, decay_from
from afresh.values.arrays import Float64s
from afresh.values.errors import InputError

DecayLike: TypeAlias = str | Decay | Sequence[str] | npt.NDArray[np.str_ | np.object_]
Rows: TypeAlias = npt.NDArray[np.intp]

_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class DecayGroup:
    """The rows that share a decay function, and that function with their parameters."""

    rows: Rows
    decay: Decay


def decay_groups(decay: DecayLike, rate: Float64s) -> list[DecayGroup]:
    """Items grouped by decay. A ``Decay`` object brings its own parameters, and ``rate`` is not used then.

    >>> groups = decay_groups(["linear", "exponential", "linear"], np.array([1.0, 2.0, 3.0]))
    >>> [(group.rows.tolist(), type(group.decay).__name__) for group in groups]
    [([0, 2], 'Linear'), ([1], 'Exponential')]
    """
    everything = np.arange(rate.size)
    if isinstance(decay, str):
        return _blocks(decay, everything, rate)
    if not isinstance(decay, Sequence | np.ndarray):
        _check_length(decay, rate.size)
        return [DecayGroup(everything, decay)]
    codes: dict[str, int] = {}
    coded = np.fromiter((codes.setdefault(str(name), len(codes)) for name in decay), dtype=np.int64)
    order = np.argsort(coded, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(coded, minlength=len(codes)))[:-1]) if codes else []
    return [group for name, rows in zip(codes, parts, strict=True) for group in _blocks(name, rows, rate)]


def _blocks(name: str, rows: Rows, rate: Float64s) -> list[DecayGroup]:
    """One decay in groups that fit into the processor's cache."""
    starts = range(0, max(rows.size, 1), _BLOCK)
    blocks = [rows[start : start + _BLOCK] for start in starts]
    return [DecayGroup(block, decay_from(name, rate[block])) for block in blocks]


def _check_length(decay: Decay, items: int) -> None:
    """Refuse a decay whose parameters are arrays of another length."""
    size = np.asarray(decay.plateau()).size
    if size not in (1, items):
        raise InputError(f"lengths differ: decay {size}, other columns {items}")
