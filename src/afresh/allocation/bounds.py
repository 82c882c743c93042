"""Floors and ceilings of frequencies, and why they cannot be met."""

from __future__ import annotations

import numpy as np

from afresh.allocation.problem import Problem
from afresh.values.errors import InfeasibleError

_ROUNDING = 1e-12  # floors that use up a budget or cap to the last digit are fine


def check_bounds(problem: Problem) -> None:
    """Refuse floors above ceilings, and floors that break the cap of their group."""
    if problem.lower is None:
        return
    if problem.upper is not None and (problem.lower > problem.upper).any():
        item = int(np.argmax(problem.lower > problem.upper))
        raise InfeasibleError(
            f"item {item} has lower bound {problem.lower[item]:g} above upper bound {problem.upper[item]:g}, "
            f"by {problem.lower[item] - problem.upper[item]:g}"
        )
    if problem.caps is not None:
        floors = problem.caps.sums(problem.spends(problem.lower))
        over = floors > problem.caps.cap * (1 + _ROUNDING)
        if over.any():
            row = int(np.argmax(over))
            raise InfeasibleError(
                f"group {problem.caps.labels[row]!r} needs {floors[row]:g} for its lower bounds, "
                f"{floors[row] - problem.caps.cap[row]:g} more than its cap of {problem.caps.cap[row]:g}"
            )


def check_floor(problem: Problem, budget: float) -> float:
    """The spend of the floors alone, refused if above the budget."""
    floor = problem.spend(problem.floor())
    if floor > budget * (1 + _ROUNDING):
        raise InfeasibleError(
            f"the lower bounds need a budget of {floor:g}: {floor - budget:g} more than {budget:g}"
        )
    return floor
