"""Estimators on ten million polls of a million items in memory: polls per second, and peak memory."""

from __future__ import annotations

import sys
import time

import numpy as np

from afresh.rates.estimator import estimate_many
from bench.process import run_python
from bench.rows import Row

METHODS = ("grid", "gamma", "mle", "moment", "cho")


def rows(*, quick: bool) -> list[Row]:
    """Measure every method in a process of its own; the limits are a million polls a second and 4 GB."""
    items = 10_000 if quick else 1_000_000
    found = []
    for method in METHODS:
        done = run_python("bench.rates_speed", method, str(items))
        speed = float(done.output.split()[-1])
        found.append(
            Row(f"{method}, {10 * items:.0e} polls", speed, "polls/s", at_least=None if quick else 1e6)
        )
        found.append(Row(f"{method}, peak memory", done.peak_bytes / 1e9, "GB", at_most=4.0))
    return found


def polls_per_second(method: str, items: int) -> float:
    """Estimate rates and intervals from times and bits, and print the time; the prior is learned, too."""
    rng = np.random.default_rng(0)
    number = rng.multinomial(7 * items, np.full(items, 1.0 / items)) + 3
    item = np.repeat(np.arange(items), number)
    elapsed = rng.exponential(1.0, item.size) + 0.01
    changed = rng.random(item.size) < -np.expm1(-rng.gamma(0.5, 1.0, items)[item] * elapsed)
    times = np.cumsum(elapsed)
    start = time.process_time()  # other processes on a busy machine do not count
    estimate_many(item, times, changed, items=items, method=method)
    return item.size / (time.process_time() - start)


if __name__ == "__main__":
    print(polls_per_second(sys.argv[1], int(sys.argv[2])))
