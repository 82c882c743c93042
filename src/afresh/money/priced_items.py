"""Check the arguments that all functions of ``afresh.money`` have, and convert them to ``IncomeTerms``.

These are ``rate``, ``benefit``, ``cost`` and the options of ``IncomeOptions``; numbers and arrays broadcast
against each other. Benefit, stale cost and update cost are per record. ``cost`` is the cost of refreshing one
record. A refresh of n records together (``size``) costs ``cost`` times 1, √n, n or a function of n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from afresh.model.decay import Decay, decay_from
from afresh.money.terms import IncomeTerms
from afresh.values.arrays import ArrayLike, Float64s, Floats, nonnegative
from afresh.values.errors import InputError, one_of

DecayLike: TypeAlias = str | Decay | Sequence[str | Decay] | npt.NDArray[np.str_ | np.object_]
Rows: TypeAlias = npt.NDArray[np.intp]
CostOfSize: TypeAlias = str | Callable[[Float64s], ArrayLike]

_BLOCK = 1 << 15  # most items of a group, so that their arrays stay in the cache

COSTS_OF_SIZE: dict[str, Callable[[Float64s], Float64s]] = {
    "constant": np.ones_like,
    "sqrt": np.sqrt,
    "linear": np.array,
}
"""The cost of refreshing n records together, divided by the cost of refreshing one."""


@dataclass(frozen=True, slots=True)
class DecayGroup:
    """The positions (``rows``) of items with the same kind of decay function, and their decay function."""

    rows: Rows
    decay: Decay


class IncomeOptions(TypedDict, total=False):
    """The arguments that describe items in addition to rate, benefit and cost; see ``best_interval``."""

    update_cost: ArrayLike
    stale_cost: ArrayLike
    decay: DecayLike
    size: ArrayLike
    cost_of_size: CostOfSize


@dataclass(frozen=True, slots=True)
class PricedItems:
    """The checked arguments as flat arrays of equal length.
    ``shape`` is the broadcast shape of the arguments, ``storage`` the type of floating-point results."""

    groups: list[DecayGroup]
    rate: Float64s
    benefit: Float64s
    cost: Float64s
    size: Float64s
    terms: IncomeTerms
    shape: tuple[int, ...]
    storage: npt.DTypeLike

    def in_input_shape(self, values: Float64s) -> Floats:
        """Return ``values``, one per item, in the shape and floating-point type of the arguments."""
        # Numbers beyond the range of float32 become infinity, as they should.
        with np.errstate(over="ignore", under="ignore"):
            return values.reshape(self.shape).astype(self.storage, copy=False)

    def with_terms(self, terms: IncomeTerms) -> PricedItems:
        """Return the same items with other terms, in double precision."""
        return replace(self, terms=terms, storage=np.float64)


def build_items(
    rate: ArrayLike,
    benefit: ArrayLike,
    cost: ArrayLike,
    *,
    update_cost: ArrayLike = 0,
    stale_cost: ArrayLike = 0,
    decay: DecayLike = "exponential",
    size: ArrayLike = 1,
    cost_of_size: CostOfSize = "constant",
    along: tuple[str, ArrayLike] = ("interval", 0),
) -> PricedItems:
    """Return the items described by the arguments, which broadcast against each other.
    ``along`` is a tuple (name, array) of one more argument of the caller, which takes part in broadcasting.

    >>> build_items([0.1, 0.2], 1, 1, stale_cost=1, size=4, cost_of_size="sqrt").terms.check
    array([2., 2.])
    """
    given = {"rate": rate, "benefit": benefit, "cost": cost}
    given |= {"update_cost": update_cost, "stale_cost": stale_cost}
    named = {name: nonnegative(name, values) for name, values in given.items()}
    named |= {"size": check_positive("size", size), along[0]: np.asarray(along[1])}
    columns = [array for array in named.values() if array.ndim]
    names = np.array(decay, dtype=object) if isinstance(decay, Sequence | np.ndarray) else np.array(None)
    single = bool(columns) and all(array.dtype == np.float32 for array in columns)
    shape, (lam, earned, check, update, stale, records, _) = _broadcast_columns(named, names)
    if names.ndim:
        decay = np.broadcast_to(names, shape).ravel()
    terms = IncomeTerms(
        gain=records * (earned + stale),
        stale=records * stale,
        check=check * size_factor(records, cost_of_size),
        update=records * update,
    )
    storage = np.float32 if single else np.float64
    return PricedItems(decay_groups(decay, lam), lam, earned, check, records, terms, shape, storage)


def size_factor(size: Float64s, cost_of_size: CostOfSize) -> Float64s:
    """Return the cost of refreshing n = ``size`` records together, divided by the cost of refreshing one.

    >>> size_factor(np.array([1.0, 1024.0]), "sqrt")
    array([ 1., 32.])
    >>> size_factor(np.array([3.0]), lambda n: 1 + n / 10)
    array([1.3])
    """
    if isinstance(cost_of_size, str):
        return COSTS_OF_SIZE[one_of("cost of size", cost_of_size, COSTS_OF_SIZE)](size)
    factor = nonnegative("cost of size", cost_of_size(size))
    if factor.shape not in ((), size.shape):
        raise InputError(
            f"cost of size returned {factor.size} numbers for {size.size} sizes: must be as many"
        )
    return np.array(np.broadcast_to(factor, size.shape), dtype=np.float64)


def check_positive(name: str, given: ArrayLike) -> Floats:
    """Return ``given`` as a float array; raise ``InputError`` unless its numbers are finite and above 0.

    >>> check_positive("size", [1, 0])
    Traceback (most recent call last):
    afresh.values.errors.InputError: size is 0: must be above 0
    """
    array = nonnegative(name, given)
    if array.size and not array.min() > 0:
        raise InputError(f"{name} is 0: must be above 0")
    return array


def _broadcast_columns(
    named: dict[str, Floats], decay: npt.NDArray[np.object_]
) -> tuple[tuple[int, ...], list[Float64s]]:
    try:
        shape = np.broadcast_shapes(*(array.shape for array in named.values()), decay.shape)
    except ValueError:
        sizes = {name: array.size for name, array in named.items() if array.ndim} | {"decay": decay.size}
        said = ", ".join(f"{name} {size}" for name, size in sizes.items() if decay.ndim or name != "decay")
        raise InputError(f"lengths differ: {said}") from None
    return shape, [np.array(np.broadcast_to(a, shape), dtype=np.float64).ravel() for a in named.values()]


def decay_groups(decay: DecayLike, rate: Float64s) -> list[DecayGroup]:
    """Return the items grouped by decay function; ``rate`` is not used if ``decay`` is a ``Decay`` object.

    >>> groups = decay_groups(["linear", "exponential", "linear"], np.array([1.0, 2.0, 3.0]))
    >>> [(group.rows.tolist(), type(group.decay).__name__) for group in groups]
    [([0, 2], 'Linear'), ([1], 'Exponential')]
    """
    everything = np.arange(rate.size)
    if isinstance(decay, str):
        return _blocks(decay, everything, rate)
    if not isinstance(decay, Sequence | np.ndarray):
        size = np.asarray(decay.plateau()).size
        if size not in (1, rate.size):
            raise InputError(f"lengths differ: decay {size}, other columns {rate.size}")
        return [DecayGroup(everything, decay)]
    codes: dict[str | Decay, int] = {}  # a decay object is its own group
    coded = np.fromiter((codes.setdefault(name, len(codes)) for name in decay), dtype=np.int64)
    order = np.argsort(coded, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(coded, minlength=len(codes)))[:-1]) if codes else []
    return [group for name, rows in zip(codes, parts, strict=True) for group in _blocks(name, rows, rate)]


def _blocks(name: str | Decay, rows: Rows, rate: Float64s) -> list[DecayGroup]:
    """Return the items of one decay function in groups that fit into the processor's cache."""
    if not isinstance(name, str):
        return [DecayGroup(rows, name)]
    starts = range(0, max(rows.size, 1), _BLOCK)
    blocks = [rows[start : start + _BLOCK] for start in starts]
    return [DecayGroup(block, decay_from(name, rate[block])) for block in blocks]
