"""What refreshing costs and earns, checked and put into the four numbers that every formula needs.

With benefit B, stale cost O and update cost C_U per record and time or update, n records refreshed
together and a cost C(n) of one refresh, net income is

    NI(u) = G·F(u) − S − K/u − U·(1−z(u))/u,    G = n(B+O),  S = nO,  K = C(n),  U = n·C_U

(Razniewski 2016, Eqs. 6, 12, 13 and 15, the last with 1−z(u) for z(u)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import ArrayLike, Floats, nonnegative
from afresh.values.errors import InputError, one_of

Array = npt.NDArray[np.float64]
CostOfSize = str | Callable[[Array], ArrayLike]

COSTS_OF_SIZE: dict[str, Callable[[Array], Array]] = {
    "constant": np.ones_like,
    "sqrt": np.sqrt,
    "linear": np.array,
}
"""By what a refresh of n records costs more than one of a single record."""


@dataclass(frozen=True, slots=True)
class Terms:
    """G, S, K and U of the formula above, one number per item."""

    gain: Array
    stale: Array
    check: Array
    update: Array

    def take(self, rows: npt.NDArray[np.intp]) -> Terms:
        """The terms of some of the items."""
        return Terms(self.gain[rows], self.stale[rows], self.check[rows], self.update[rows])


def size_factor(size: Array, cost_of_size: CostOfSize) -> Array:
    """C(n)/C(1): what the cost of one refresh is multiplied by for n records.

    >>> size_factor(np.array([1.0, 1024.0]), "sqrt")
    array([ 1., 32.])
    >>> size_factor(np.array([3.0]), lambda n: 1 + n / 10)
    array([1.3])
    """
    if isinstance(cost_of_size, str):
        return COSTS_OF_SIZE[one_of("cost of size", cost_of_size, COSTS_OF_SIZE)](size)
    factor = np.asarray(nonnegative("the cost of size", cost_of_size(size)), dtype=np.float64)
    return align({"the cost of size": factor, "size": size})[0]


def positive(name: str, given: ArrayLike) -> Floats:
    """``given`` as a float array of finite numbers above 0."""
    array = nonnegative(name, given)
    if array.size and not array.min() > 0:
        raise InputError(f"{name} is 0: must be above 0")
    return array


def align(named: dict[str, Floats]) -> list[Array]:
    """The arrays as float64, broadcast to one shape.

    >>> align({"rate": np.ones(2), "cost": np.ones(3)})
    Traceback (most recent call last):
    afresh.values.errors.InputError: lengths differ: rate 2, cost 3
    """
    try:
        # reductions and fancy indexing follow: contiguous copies of scalars are not worth avoiding
        lifted = [np.asarray(array, dtype=np.float64) for array in named.values()]
        return [np.array(array) for array in np.broadcast_arrays(*lifted)]
    except ValueError:
        shapes = {name: array.size for name, array in named.items() if array.ndim}
        said = ", ".join(f"{name} {size}" for name, size in shapes.items())
        raise InputError(f"lengths differ: {said}") from None


def terms_of(
    benefit: ArrayLike,
    cost: ArrayLike,
    *,
    update_cost: ArrayLike = 0,
    stale_cost: ArrayLike = 0,
    size: ArrayLike = 1,
    cost_of_size: CostOfSize = "constant",
) -> Terms:
    """The terms of items given as users give them: per record, and ``cost`` per refresh of one record.

    >>> terms_of(1, 1, stale_cost=1, size=4, cost_of_size="sqrt")
    Terms(gain=array(8.), stale=array(4.), check=array(2.), update=array(0.))
    """
    named = {
        "benefit": nonnegative("benefit", benefit),
        "cost": nonnegative("cost", cost),
        "update_cost": nonnegative("update_cost", update_cost),
        "stale_cost": nonnegative("stale_cost", stale_cost),
        "size": positive("size", size),
    }
    earned, check, update, stale, records = align(named)
    return Terms(
        gain=np.asarray(records * (earned + stale)),
        stale=np.asarray(records * stale),
        check=np.asarray(check * size_factor(records, cost_of_size)),
        update=np.asarray(records * update),
    )
