"""Where a falling function of one number crosses zero."""

from __future__ import annotations

from collections.abc import Callable


def falling_root(function: Callable[[float], float], low: float, high: float) -> float:
    """The root in [low, high] by bisection, or the end that comes nearest to it.

    >>> round(falling_root(lambda x: 2 - x * x, 0.0, 2.0), 12), falling_root(lambda x: -x, 1.0, 2.0)
    (1.414213562373, 1.0)
    """
    if function(low) <= 0:
        return low
    if function(high) >= 0:
        return high
    for _ in range(80):
        middle = (low + high) / 2
        if function(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
