"""Measure how much a record has changed between the local copy and the server.

A price that changed by a cent and a price that halved are both changes, but not the same loss. Each content
field has a measure of how much its texts a and b differ: ``absolute`` |a−b|, ``relative`` |a−b|/max(|a|,|b|),
``unequal`` 0 or 1, or a function of the user.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from afresh.values.errors import InputError, UsageError
from afresh.values.units import number_or_nan

Dissimilarity: TypeAlias = Callable[[str, str], float]


def absolute(old: str, new: str) -> float:
    """Return |old − new| of two numbers given as text.

    >>> absolute("10", "12.5")
    2.5
    """
    return abs(_number(new) - _number(old))


def relative(old: str, new: str) -> float:
    """Return |old − new|/max(|old|, |new|) of two numbers given as text; 0 if both are 0.

    >>> relative("10", "8"), relative("0", "0")
    (0.2, 0.0)
    """
    one, other = _number(old), _number(new)
    largest = max(abs(one), abs(other))
    return abs(one - other) / largest if largest else 0.0


def unequal(old: str, new: str) -> float:
    """Return 1 if the texts differ, else 0.

    >>> unequal("in stock", "sold out")
    1.0
    """
    return float(old != new)


DISSIMILARITIES: Mapping[str, Dissimilarity] = {
    "absolute": absolute,
    "relative": relative,
    "unequal": unequal,
}


def record_change(
    old: Mapping[str, str], new: Mapping[str, str], fields: Mapping[str, Dissimilarity]
) -> float:
    """Return how much a record changed: the sum of the dissimilarities of its ``fields``.
    A field that only one of the two versions has counts as 1.

    >>> record_change({"price": "10", "stock": "3"}, {"price": "9"}, {"price": absolute, "stock": unequal})
    2.0
    """
    total = 0.0
    for name, measure in fields.items():
        if (name in old) != (name in new):
            total += 1.0
        elif name in old:
            total += measure(old[name], new[name])
    if not (math.isfinite(total) and total >= 0):
        raise UsageError(f"a dissimilarity is {total}: it must be a finite number of 0 or more")
    return total


def _number(text: str) -> float:
    value = number_or_nan(text)
    if not math.isfinite(value):
        raise InputError(f"{text!r} is not a number: use the dissimilarity unequal for texts")
    return value
