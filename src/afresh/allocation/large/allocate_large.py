"""The freshness plan of millions of items: one pass fills a histogram, another writes the frequencies.

The plan maximises Σ w·F subject to Σ c·f = B, without bounds (Cho & Garcia-Molina 2000, §4; weight w,
freshness F, cost c, frequency f, budget B, refreshes at equal intervals). The first pass over the items fills
a ``Histogram``, in which the cut-off price is found. The few items near the cut-off are then counted again in
narrower bins. The last pass writes the frequencies and adds up spend, freshness and age exactly. If this
spend differs from the budget by a share of more than 5e−10, all frequencies are scaled. If it differs by more
than 1e−7, the histogram is first solved again for a corrected budget.

The loops of Numba run on threads. Without Numba, NumPy does the same work a few times slower.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import TypeVar

import numpy as np

from afresh.allocation.large import passes_numpy
from afresh.allocation.large.cutoff import Cutoff
from afresh.allocation.large.histogram import Histogram
from afresh.allocation.large.item_columns import WHOLE, ItemColumns, PlanSums, PriceWindow
from afresh.allocation.large.plan_search import find_plan
from afresh.allocation.problem import check_budget
from afresh.values.arrays import ArrayLike, Floats
from afresh.values.errors import InputError, UsageError, one_of
from afresh.values.results import Allocation

ENGINES = ("auto", "numba", "numpy")

_NUMBA_FROM = 2_000_000  # for fewer items, importing and loading Numba takes longer than the plan

_T = TypeVar("_T")


def allocate_large(
    rates: ArrayLike,
    budget: float,
    weights: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    *,
    out: Floats | None = None,
    engine: str = "auto",
    threads: int | None = None,
) -> Allocation:
    """Return the optimal freshness plan; the frequencies are written to the array ``out`` if it is given.

    Frequencies are float32 if all arguments are, which rounds each by up to 6e−8; the reported sums are
    computed before rounding. ``engine`` is numba, numpy, or auto (Numba if it is installed and there are
    millions of items). ``threads`` is by default the number of processors, or 1 without Numba.

    >>> plan = allocate_large([1.0, 2.0, 3.0, 4.0, 5.0], 5.0)  # Cho & Garcia-Molina 2000, Table 5 (b)
    >>> plan.frequency.round(4), round(plan.spend, 9), plan.dropped
    (array([1.1499, 1.3584, 1.3538, 1.1379, 0.    ]), 5.0, 1)
    """
    columns, budget = ItemColumns.from_arrays(rates, weights, costs), check_budget(budget)
    out = _output(columns, out)
    passes = choose_passes(engine, columns.size)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = threads or min(available, passes.THREADS)
    with ThreadPoolExecutor(workers) as pool:
        run = _Run(columns, out, passes, pool, workers)
        return _solve(run, budget)


def _output(columns: ItemColumns, out: Floats | None) -> Floats:
    if out is None:
        given = [c for c in (columns.rates, columns.weights, columns.costs) if c is not None]
        return np.empty(columns.size, dtype=np.result_type(*given))
    if out.shape != columns.rates.shape or out.dtype not in (np.float32, np.float64):
        raise InputError(f"out is {out.dtype} of shape {out.shape}: give {columns.size} float32 or float64")
    return out


def choose_passes(engine: str, items: int) -> ModuleType:
    """Return the module ``passes_numba`` or ``passes_numpy`` for about so many ``items``."""
    one_of("engine", engine, ENGINES)
    if engine == "numpy" or (engine == "auto" and items < _NUMBA_FROM):
        return passes_numpy
    if find_spec("numba") is None:
        if engine == "numba":
            raise UsageError("engine 'numba' needs Numba: pip install 'afresh[fast]'")
        return passes_numpy
    from afresh.allocation.large import passes_numba

    return passes_numba


@dataclass(frozen=True, slots=True)
class _Run:
    """The items, the array that receives their frequencies, and the threads that run the passes."""

    columns: ItemColumns
    out: Floats
    passes: ModuleType
    pool: ThreadPoolExecutor
    workers: int

    def build_histogram(self, window: PriceWindow = WHOLE) -> Histogram:
        """Return the histogram of the items whose price lies in ``window``, in one pass over the items."""

        def one(start: int, stop: int) -> Histogram:
            histogram: Histogram = self.passes.build_histogram(self.columns.part(start, stop), window)
            return histogram

        first, *others = self._run_on_threads(one, self.workers)
        return sum(others, start=first)

    def write_plan(self, cutoff: Cutoff, scale: float, *, with_age: bool) -> PlanSums:
        """Write the frequencies of the plan with this cut-off, times ``scale``; return sums over the plan."""

        def one(start: int, stop: int) -> list[PlanSums]:
            sums = []
            for first in range(start, stop, self.passes.PART):
                rows = slice(first, min(first + self.passes.PART, stop))
                items, out = self.columns[rows], self.out[rows]
                sums.append(self.passes.write_plan(items, cutoff, scale, out, with_age=with_age))
            return sums

        parts = self._run_on_threads(one, 4 * self.workers)
        return PlanSums.of_parts([part for several in parts for part in several])

    def _run_on_threads(self, job: Callable[[int, int], _T], jobs: int) -> list[_T]:
        """Call ``job(start, stop)`` on the threads, for about ``jobs`` ranges that cover all items."""
        stretch = max(-(-self.columns.size // jobs), 1 << 14)
        starts = range(0, max(self.columns.size, 1), stretch)
        return list(self.pool.map(lambda start: job(start, min(start + stretch, self.columns.size)), starts))


def _solve(run: _Run, budget: float) -> Allocation:
    found = find_plan(run, budget)
    if found.cutoff is None:
        run.out[:] = 0
    rounding = 2.0**-24 if run.out.dtype == np.float32 else 2.0**-53
    return Allocation(
        frequency=run.out,
        multiplier=found.multiplier,
        spend=found.sums.spend,
        gap=found.gap(budget, rounding),
        freshness=found.freshness,
        age=found.age,
        dropped=found.sums.dropped,
    )
