"""Planning is linear in the number of items, and 1e8 of them fit in 3 GB, columns and interpreter included.

Each size runs in a process of its own, which is this module: ``python -m bench.plan_scale SIZE``.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from afresh.allocation.large.allocate_large import allocate_large
from bench.items import make_items
from bench.process import run_python
from bench.rows import Row

_GIGABYTE = 1e9


def rows(*, quick: bool) -> list[Row]:
    """Measure time per item and peak memory at each size; the ratio is to the time per item at 1e7."""
    sizes = [10_000, 100_000] if quick else [100_000, 1_000_000, 10_000_000, 100_000_000]
    runs = {size: run_python("bench.plan_scale", str(size)) for size in sizes}
    per_item = {size: json.loads(run.output)["seconds"] / size for size, run in runs.items()}
    yardstick = per_item[sizes[-2]]
    table = [
        Row(f"plan of {size:.0e} items, per item", 1e9 * cost, "ns", ratio=cost / yardstick)
        for size, cost in per_item.items()
    ]
    last = sizes[-1]
    growth = per_item[last] / yardstick
    table[-1] = Row(table[-1].name, table[-1].measured, "ns", ratio=growth, at_most=None if quick else 1.5)
    peak = runs[last].peak_bytes / _GIGABYTE
    table.append(Row(f"peak memory with {last:.0e} items", peak, "GB", at_most=3.0))
    return table


def main(size: int) -> None:
    """Plan ``size`` items and print the least time of a few runs after a first one."""
    rates, weights = make_items(size)
    out = np.empty_like(rates)
    times = []
    for _ in range(2 if size > 10_000_000 else 5):
        start = time.perf_counter()
        allocate_large(rates, 0.5 * size, weights, out=out, engine="numba")
        times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(times[1:])}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
