"""Convert the arrays that users pass into checked float arrays.

float32 columns stay float32, which halves the memory at 1e8 items. Code that computes with a column converts
it to float64, chunk by chunk.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.values.errors import InputError

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Float64s: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
ArrayLike: TypeAlias = npt.ArrayLike


def as_floats(name: str, given: ArrayLike) -> Floats:
    """Return ``given`` as a float array. float32 stays float32; every other type becomes float64.
    ``name`` names the array in the message of the ``InputError`` for what cannot be read as numbers.

    >>> as_floats("rate", [1, 2]).dtype, as_floats("rate", np.float32([1])).dtype
    (dtype('float64'), dtype('float32'))
    """
    try:
        array = np.asarray(given)
        return array if array.dtype == np.float32 else np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a list of numbers: {error}") from None


def nonnegative(name: str, given: ArrayLike, *, infinite: bool = False) -> Floats:
    """Return ``given`` as a float array; raise ``InputError`` if a number is below 0, NaN or infinite.
    ``infinite=True`` allows infinite numbers. ``name`` names the array in the error message.

    >>> nonnegative("rate", [1.0, -2.0])
    Traceback (most recent call last):
    afresh.values.errors.InputError: rate[1] is -2.0: must be a number of 0 or more
    """
    array = as_floats(name, given)
    # The minimum and maximum are enough: NaN propagates into both, and fails every comparison.
    good = array.size == 0 or (array.min() >= 0 and (infinite or array.max() < np.inf))
    if not good:
        bad = np.isnan(array) | (array < 0)
        if not infinite:
            bad |= np.isinf(array)
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f"{name}[{', '.join(map(str, index))}]" if index else name
        limit = "0 or more" if infinite else "0 or more, and finite"
        limit = "0 or more" if array[index] < 0 else limit
        raise InputError(f"{where} is {array[index]}: must be a number of {limit}")
    return array


def like_inputs(result: Float64s, *inputs: Floats) -> Any:
    """Return ``result`` as a Python float if it is a scalar, and as float32 if all ``inputs`` are float32.

    >>> like_inputs(np.array([0.5]), np.float32([1.0])).dtype
    dtype('float32')
    >>> like_inputs(np.array(0.5), np.array(1.0))
    0.5
    """
    if result.ndim == 0:
        return float(result)
    if inputs and all(array.dtype == np.float32 for array in inputs):
        return result.astype(np.float32)
    return result
