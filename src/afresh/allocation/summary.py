"""What a plan achieves, in two numbers: weighted mean freshness and age of the copies."""

from __future__ import annotations

import numpy as np

from afresh.allocation.problem import Problem
from afresh.values.arrays import Float64s


def mean_freshness(problem: Problem, frequency: Float64s) -> float:
    """Σ w·F/Σ w; static items are always fresh. Where nothing has weight, nothing is stale: 1."""
    fresh = np.where(problem.rate > 0, problem.freshness.value(frequency), 1.0)
    total = problem.weight.sum()
    return float((problem.weight * fresh).sum() / total) if total > 0 else 1.0


def mean_age(problem: Problem, frequency: Float64s) -> float:
    """Σ w·A/Σ w; static items have age 0, a changing item never refreshed an infinite one."""
    active = problem.active()
    total = problem.weight.sum()
    if total == 0:
        return 0.0
    if (active & (frequency == 0)).any():
        return float("inf")
    age = np.where(active, -problem.age.value(frequency), 0.0)
    return max(0.0, float((problem.weight * age).sum() / total))
