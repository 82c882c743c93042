"""Mean freshness and age of a copy whose item changes λ times and is refreshed f times per unit of time.

    order     freshness                      age: the time since the first change that a copy has missed
    fixed        (1−e^{−r})/r                   T·(1/2 − 1/r + (1−e^{−r})/r²)
    shuffled     (1/r)·(1 − ((1−e^{−r})/r)²)    T·(1/3 + (1/2 − 1/r)² − ((1−e^{−r})/r²)²)
    memoryless   1/(1+r)                        T·r/(1+r)

with r = λ/f and T = 1/f (Cho & Garcia-Molina 2000, §4 and Table 2).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from afresh.model.curves import age_curve, freshness_curve
from afresh.model.shuffled_curves import shuffled_age, shuffled_freshness
from afresh.values.arrays import ArrayLike, Float64s, Floats, like_inputs, nonnegative
from afresh.values.errors import InputError, one_of

ORDERS = ("fixed", "shuffled", "memoryless")
"""How the refreshes of an item follow each other. fixed: at equal intervals · shuffled: once in each round,
whose sequence of items is shuffled · memoryless: at the times of a Poisson process."""


def check_order(order: str, *, random_means: str = "shuffled") -> str:
    """Return a refresh order of ``ORDERS``; Cho & Garcia-Molina's "purely random" becomes "memoryless".
    The deprecated name "random" becomes ``random_means``, with a warning: it is Cho & Garcia-Molina's
    "random order" (shuffled) in ``freshness`` and ``age``, and memoryless in plans.

    >>> check_order("purely random")
    'memoryless'
    """
    if order == "random":
        message = f"order 'random' is deprecated, because it has two meanings: here it is {random_means!r}"
        # Plans check the order one call deeper than ``freshness`` and ``age`` do.
        warnings.warn(message, DeprecationWarning, stacklevel=3 if random_means == "shuffled" else 4)
        return random_means
    return "memoryless" if order == "purely random" else one_of("order", order, ORDERS)


def check_rates_and_frequencies(rate: ArrayLike, frequency: ArrayLike) -> tuple[Floats, Floats]:
    """Return (rates, frequencies) as arrays; raise ``InputError`` if one is negative or they do not fit."""
    rates, frequencies = nonnegative("rate", rate), nonnegative("frequency", frequency, infinite=True)
    check_shapes(rate=rates, frequency=frequencies)
    return rates, frequencies


def check_shapes(**arrays: Floats) -> None:
    """Raise ``InputError`` if the shapes of the arrays do not broadcast together.

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
    """Return rate/frequency: 0 if an item never changes, infinite if it changes and is never refreshed.

    >>> changes_per_refresh(np.array([0.0, 2.0, 2.0]), np.array([0.0, 0.0, np.inf]))
    array([ 0., inf,  0.])
    """
    rate, frequency = rate.astype(np.float64), frequency.astype(np.float64)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        return np.where(rate > 0, rate / frequency, 0.0)


def cast_like_inputs(result: Float64s, *inputs: Floats) -> Any:
    """Return ``result`` as a float if it is a scalar, as float32 if all array inputs are float32, else as is.

    >>> cast_like_inputs(np.array([1e300]), np.ones(1, np.float32), np.array(2.0))
    array([inf], dtype=float32)
    """
    with np.errstate(over="ignore", under="ignore"):
        return like_inputs(result, *(array for array in inputs if array.ndim))


def freshness(rate: ArrayLike, frequency: ArrayLike, order: str = "fixed") -> Any:
    """Return the share of time in which a copy is correct, from 0 to 1; a float for scalars, else an array.

    ``rate`` is in changes and ``frequency`` in refreshes per unit of time; ``order`` is one of ``ORDERS``. An
    item that never changes has freshness 1; an item that changes and is never refreshed has freshness 0. If
    rate and frequency are equal, a copy is correct 63 % of the time in fixed order, 30 % more than in purely
    random order (Cho & Garcia-Molina 2000, §4).

    >>> [round(freshness(1.0, 1.0, order), 4) for order in ORDERS]
    [0.6321, 0.6004, 0.5]
    >>> freshness([0.0, 3.0, 3.0], [0.0, 0.0, np.inf])
    array([1., 0., 1.])
    """
    order = check_order(order)
    rates, frequencies = check_rates_and_frequencies(rate, frequency)
    r = changes_per_refresh(rates, frequencies)
    if order == "memoryless":
        return cast_like_inputs(np.asarray(1 / (1 + r)), rates, frequencies)
    return cast_like_inputs(
        freshness_curve(r) if order == "fixed" else shuffled_freshness(r), rates, frequencies
    )


def age(rate: ArrayLike, frequency: ArrayLike, order: str = "fixed") -> Any:
    """Return the mean age of a copy, in the time unit of the rates; a float for scalars, else an array.

    ``rate`` is in changes and ``frequency`` in refreshes per unit of time; ``order`` is one of ``ORDERS``. An
    item that changes and is never refreshed has an infinite age. If rate and frequency are equal, the age in
    fixed order is "one fourth" of the age in purely random order (Cho & Garcia-Molina 2000, §4).

    >>> round(age(1.0, 1.0) / age(1.0, 1.0, "purely random"), 3)
    0.264
    >>> age([0.0, 3.0, 3.0], [0.0, 0.0, np.inf])
    array([ 0., inf,  0.])
    """
    order = check_order(order)
    rates, frequencies = check_rates_and_frequencies(rate, frequency)
    r = changes_per_refresh(rates, frequencies)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        value = np.where(r > 0, _age_in_intervals(r, order) / frequencies.astype(np.float64), 0.0)
    return cast_like_inputs(value, rates, frequencies)


def _age_in_intervals(r: Float64s, order: str) -> Float64s:
    """Return the mean age in units of 1/frequency, for r changes per refresh."""
    if order == "fixed":
        return age_curve(r)
    if order == "memoryless":
        return np.where(np.isinf(r), 1.0, r / (1 + r))
    return shuffled_age(r)
