"""Planning 1e7 weighted items against one streaming pass over the same float32 columns."""

from __future__ import annotations

import numpy as np

from afresh.allocation.large.allocate_large import allocate_large
from bench.items import make_items
from bench.rows import Row
from bench.timing import seconds

_BURST = 30


def rows(*, quick: bool) -> list[Row]:
    """Measure the NumPy and the Numba passes; the yardstick is ``np.multiply(a, b, out=c)``."""
    size, repeats = (100_000, 2) if quick else (10_000_000, 7)
    rates, weights = make_items(size)
    out, budget = np.empty_like(rates), 0.5 * size

    def burst() -> None:
        """Repeat the pass until it lasts as long as a plan: a short one could escape the load of others."""
        for _ in range(_BURST):
            np.multiply(rates, weights, out=out)

    burst_time, numba, numpy = seconds(
        burst,
        lambda: allocate_large(rates, budget, weights, out=out, engine="numba"),
        lambda: allocate_large(rates, budget, weights, out=out, engine="numpy"),
        repeats=repeats,
    )
    stream = burst_time / _BURST
    # A short column fits the cache, and fixed costs dominate: the ratio has no limit there.
    wanted = (None, None) if quick else (30.0, 120.0)
    return [
        Row(f"one multiplication of {size:.0e} items", stream, "s", ratio=1.0),
        Row(f"plan of {size:.0e} items, Numba", numba, "s", ratio=numba / stream, at_most=wanted[0]),
        Row(f"plan of {size:.0e} items, NumPy", numpy, "s", ratio=numpy / stream, at_most=wanted[1]),
    ]
