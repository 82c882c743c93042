"""The status of an item in a plan: why it has its frequency. The first that fits counts.

static       it never changes
unweighted   its freshness is worth nothing
ceiling      it has its upper bound
capped       the cap of its group keeps it below what the budget alone would give it
floor        it has its lower bound, above 0
dropped      it is not worth a refresh at this budget
kept         its marginal value equals the multiplier
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from afresh.allocation.problem import AllocationProblem
from afresh.values.arrays import Float64s

STATUSES = ("static", "unweighted", "ceiling", "capped", "floor", "dropped", "kept")
STATIC, UNWEIGHTED, CEILING, CAPPED, FLOOR, DROPPED, KEPT = range(len(STATUSES))

_ROUNDING = 1e-9  # spends and prices closer than this are the same


def statuses(problem: AllocationProblem, frequency: Float64s, multiplier: float) -> npt.NDArray[np.uint8]:
    """The code of each item, an index into ``STATUSES``."""
    code = np.where(frequency > 0, np.uint8(KEPT), np.uint8(DROPPED))
    if problem.lower is not None:
        code[(problem.lower > 0) & (frequency <= problem.lower)] = FLOOR
    if problem.caps is not None:
        spent = problem.caps.sums(problem.spends(frequency))
        full = problem.caps.spread(spent - problem.caps.cap * (1 - _ROUNDING), -1.0) >= 0
        code[full & (problem.prices(frequency) > multiplier * (1 + _ROUNDING))] = CAPPED
    if problem.upper is not None:
        code[frequency >= problem.upper] = CEILING
    code[problem.weight == 0] = UNWEIGHTED
    code[problem.rate == 0] = STATIC
    return code
