"""Items as users give them, checked once and put into the terms that every formula needs.

All functions of this layer take ``rate``, ``benefit`` and ``cost`` and the options of ``IncomeOptions``; scalars
and arrays broadcast against each other. Benefit, stale cost and update cost are per record, ``cost`` is that
of one refresh of one record; ``size`` n records refreshed together cost ``cost`` times 1, √n or n, or times
what a function of n returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from afresh.money.decay_groups import DecayGroup, DecayLike, decay_groups
from afresh.money.terms import IncomeTerms
from afresh.values.arrays import ArrayLike, Float64s, Floats, nonnegative
from afresh.values.errors import InputError, one_of

CostOfSize: TypeAlias = str | Callable[[Float64s], ArrayLike]

COSTS_OF_SIZE: dict[str, Callable[[Float64s], Float64s]] = {
    "constant": np.ones_like,
    "sqrt": np.sqrt,
    "linear": np.array,
}
"""By what factor a refresh of n records costs more than one of a single record."""


class IncomeOptions(TypedDict, total=False):
    """What may be said of items beside rate, benefit and cost."""

    update_cost: ArrayLike
    stale_cost: ArrayLike
    decay: DecayLike
    size: ArrayLike
    cost_of_size: CostOfSize


@dataclass(frozen=True, slots=True)
class PricedItems:
    """Checked columns, flat and of one length; ``shape`` is that of the columns given, broadcast."""

    groups: list[DecayGroup]
    rate: Float64s
    benefit: Float64s
    cost: Float64s
    size: Float64s
    terms: IncomeTerms
    shape: tuple[int, ...]
    storage: npt.DTypeLike

    def back(self, values: Float64s) -> Floats:
        """``values`` of the items in the shape and storage type of what was given."""
        # beyond float32's range is infinity there, which is what it should say
        with np.errstate(over="ignore", under="ignore"):
            return values.reshape(self.shape).astype(self.storage, copy=False)

    def with_terms(self, terms: IncomeTerms) -> PricedItems:
        """The same items at other costs, for further work in double precision."""
        fields = (self.groups, self.rate, self.benefit, self.cost, self.size)
        return PricedItems(*fields, terms, self.shape, np.float64)


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
    """The items, broadcast against each other and against a further column, given with its name.

    >>> build_items([0.1, 0.2], 1, 1, stale_cost=1, size=4, cost_of_size="sqrt").terms.check
    array([2., 2.])
    """
    named = {
        "rate": nonnegative("rate", rate),
        "benefit": nonnegative("benefit", benefit),
        "cost": nonnegative("cost", cost),
        "update_cost": nonnegative("update_cost", update_cost),
        "stale_cost": nonnegative("stale_cost", stale_cost),
        "size": check_positive("size", size),
        along[0]: np.asarray(along[1]),
    }
    columns = [array for array in named.values() if array.ndim]
    names = np.array(decay, dtype=object) if isinstance(decay, Sequence | np.ndarray) else np.array(None)
    single = bool(columns) and all(array.dtype == np.float32 for array in columns)
    shape, (lam, earned, check, update, stale, records, _) = _aligned(named, names)
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
    """C(n)/C(1): by what the cost of one refresh is multiplied for n records.

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
    """``given`` as a float array of finite numbers above 0.

    >>> check_positive("size", [1, 0])
    Traceback (most recent call last):
    afresh.values.errors.InputError: size is 0: must be above 0
    """
    array = nonnegative(name, given)
    if array.size and not array.min() > 0:
        raise InputError(f"{name} is 0: must be above 0")
    return array


def _aligned(
    named: dict[str, Floats], decay: npt.NDArray[np.object_]
) -> tuple[tuple[int, ...], list[Float64s]]:
    """The common shape, and the columns as flat float64 arrays of their own."""
    try:
        shape = np.broadcast_shapes(*(array.shape for array in named.values()), decay.shape)
    except ValueError:
        sizes = {name: array.size for name, array in named.items() if array.ndim} | {"decay": decay.size}
        said = ", ".join(f"{name} {size}" for name, size in sizes.items() if decay.ndim or name != "decay")
        raise InputError(f"lengths differ: {said}") from None
    return shape, [np.array(np.broadcast_to(a, shape), dtype=np.float64).ravel() for a in named.values()]
