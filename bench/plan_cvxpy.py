"""Planning 1e5 items against cvxpy with Clarabel, a general conic solver, on the same problem.

Freshness is f(1−e^{−λ/f})/λ: concave in f, with the perspective of the exponential, an exponential cone. With
g = f/λ the problem is: maximise Σ w·(g−t) subject to g·e^{−1/g} ≤ t, Σ c·λ·g = B; the cone holds (−1, g, t).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import numpy.typing as npt

import afresh
from bench.rows import Row
from bench.timing import seconds

_BUDGET_PER_ITEM = 0.5


def rows(*, quick: bool) -> list[Row]:
    """Measure the time and the objective reached; the yardstick is the time of afresh."""
    size = 300 if quick else 100_000
    rng = np.random.default_rng(1)
    # A moderate spread of rates: with more, the conic solver does not reach its accuracy.
    rates, weights = rng.lognormal(0, 1, size), rng.lognormal(0, 0.5, size)
    budget = _BUDGET_PER_ITEM * size
    (ours,) = seconds(lambda: afresh.allocate(rates, budget, weights=weights), repeats=2 if quick else 7)
    start = time.perf_counter()
    theirs_value = _by_cvxpy(rates, weights, budget)
    theirs = time.perf_counter() - start
    ours_value = afresh.allocate(rates, budget, weights=weights).freshness
    return [
        Row(f"plan of {size:.0e} items, afresh", ours, "s", ratio=1.0),
        Row(
            f"plan of {size:.0e} items, cvxpy + Clarabel",
            theirs,
            "s",
            ratio=theirs / ours,
            at_least=None if quick else 300.0,
        ),
        Row("difference in weighted mean freshness", abs(ours_value - theirs_value), "", at_most=1e-6),
    ]


def _by_cvxpy(rates: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], budget: float) -> float:
    share, stale = cp.Variable(len(rates)), cp.Variable(len(rates))
    constraints = [cp.ExpCone(-np.ones(len(rates)), share, stale), rates @ share / budget == 1]
    problem = cp.Problem(cp.Maximize(weights @ (share - stale) / weights.sum()), constraints)
    solve: Callable[..., float] = problem.solve  # cvxpy does not annotate it
    return float(solve(solver=cp.CLARABEL))
