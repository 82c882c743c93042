"""Check the parameters of a decay function; multiply and divide by rates that may be 0."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s, nonnegative
from afresh.values.errors import InputError

Size: TypeAlias = int | tuple[int, ...] | None


def check_parameter(
    name: str, given: ArrayLike, *, low: float = 0.0, high: float = np.inf, infinite: bool = False
) -> Float64s:
    """Return ``given`` as a float64 array; raise ``InputError`` if a number is outside [low, high].
    ``name`` names the parameter in the message. ``infinite=True`` allows infinite numbers.

    >>> check_parameter("shape", [0.5, 2.0], low=1.0)
    Traceback (most recent call last):
    afresh.values.errors.InputError: shape is 0.5: must be from 1 to inf
    """
    array = np.asarray(nonnegative(name, given, infinite=infinite), dtype=np.float64)
    wrong = (array < low) | (array > high)
    if wrong.any():
        raise InputError(f"{name} is {array[wrong].flat[0]}: must be from {low:g} to {high:g}")
    return array


def as_times(t: ArrayLike) -> Float64s:
    return np.asarray(t, dtype=np.float64)


def multiply_by_rate(t: Float64s, rate: Float64s) -> Float64s:
    """Return rate·t, the expected changes in the time t; 0 for a rate of 0, even if t is infinite.

    >>> multiply_by_rate(np.array(np.inf), np.array([0.0, 2.0]))
    array([ 0., inf])
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.where(rate > 0, t * rate, 0.0)


def divide_by_rate(amount: ArrayLike, rate: Float64s) -> Float64s:
    """Return amount/rate; infinite for a rate of 0.

    >>> divide_by_rate(3.0, np.array([0.0, 2.0]))
    array([inf, 1.5])
    """
    positive = np.where(rate > 0, rate, 1.0)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(rate > 0, np.asarray(amount, dtype=np.float64) / positive, np.inf)


def sample_shape(size: Size, *parameters: Float64s) -> tuple[int, ...]:
    """Return the shape of a sample: ``size``, or by default the broadcast shape of the parameters."""
    if size is None:
        return np.broadcast_shapes(*(array.shape for array in parameters))
    return (size,) if isinstance(size, int) else tuple(size)
