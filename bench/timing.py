"""Timing that gives comparable results on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(*jobs: Callable[[], object], repeats: int) -> list[float]:
    """Return the least time of each job; they take turns, so that all meet the same load.

    One untimed round comes first: it compiles, fills caches and touches pages.
    """
    best = [float("inf")] * len(jobs)
    for turn in range(repeats + 1):
        for index, job in enumerate(jobs):
            start = time.perf_counter()
            job()
            elapsed = time.perf_counter() - start
            if turn:
                best[index] = min(best[index], elapsed)
    return best
