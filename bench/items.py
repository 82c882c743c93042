"""The items that benchmarks plan for: rates over six decades and weights over three, both log-normal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float32s = npt.NDArray[np.float32]


def make_items(size: int, seed: int = 0) -> tuple[Float32s, Float32s]:
    """Return rates per day and weights in float32, made in parts to keep the peak memory low."""
    rng = np.random.default_rng(seed)
    rates, weights = np.empty(size, np.float32), np.empty(size, np.float32)
    for column, spread in ((rates, 2.0), (weights, 1.0)):
        for start in range(0, size, 1 << 20):
            part = column[start : start + (1 << 20)]
            rng.standard_normal(out=part, dtype=np.float32)
            part *= spread
            np.exp(part, out=part)
    return rates, weights
