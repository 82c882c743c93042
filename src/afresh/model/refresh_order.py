"""The orders in which a database can be refreshed (Cho & Garcia-Molina 2000, §4), and argument checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s, Floats, like_inputs, nonnegative
from afresh.values.errors import InputError, one_of

ORDERS = ("fixed", "random", "memoryless")
"""fixed: each item at even intervals · random: shuffled before each round · memoryless: at Poisson times."""


def check_order(order: str) -> str:
    """One of ``ORDERS``; Cho's "purely random" is memoryless.

    >>> check_order("purely random")
    'memoryless'
    """
    return "memoryless" if order == "purely random" else one_of("order", order, ORDERS)


def check_rates_and_frequencies(rate: npt.ArrayLike, frequency: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Both as checked arrays: rates are finite, frequencies 0 to infinity, and their shapes broadcast."""
    rates, frequencies = nonnegative("rate", rate), nonnegative("frequency", frequency, infinite=True)
    check_shapes(rate=rates, frequency=frequencies)
    return rates, frequencies


def check_shapes(**arrays: Floats) -> None:
    """Refuse arrays that do not broadcast together.

    >>> check_shapes(rate=np.ones(2), frequency=np.ones(3))
    Traceback (most recent call last):
    afresh.values.errors.InputError: rate of shape (2,) and frequency of shape (3,) do not fit: use one length
    """
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = " and ".join(f"{name} of shape {array.shape}" for name, array in arrays.items())
        raise InputError(f"{shapes} do not fit: use one length") from None


def changes_per_refresh(rate: Floats, frequency: Floats) -> Float64s:
    """r = λ/f in float64: 0 for what never changes, infinite for what changes and is never refreshed.

    >>> changes_per_refresh(np.array([0.0, 2.0, 2.0]), np.array([0.0, 0.0, np.inf]))
    array([ 0., inf,  0.])
    """
    rate, frequency = rate.astype(np.float64), frequency.astype(np.float64)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        return np.where(rate > 0, rate / frequency, 0.0)


def cast_like_inputs(result: Float64s, *inputs: Floats) -> Any:
    """A float for scalars, float32 for float32 arrays (beside scalars or not), float64 for the rest.

    >>> cast_like_inputs(np.array([1e300]), np.ones(1, np.float32), np.array(2.0))
    array([inf], dtype=float32)
    """
    with np.errstate(over="ignore", under="ignore"):
        return like_inputs(result, *(array for array in inputs if array.ndim))
