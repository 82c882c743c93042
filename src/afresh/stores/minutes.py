"""The ledger's grain."""

from __future__ import annotations

import math


def minute_of(time_s: float) -> int:
    """The minute that a time falls in.

    >>> minute_of(59.9), minute_of(60.0)
    (0, 1)
    """
    return math.floor(time_s / 60.0)
