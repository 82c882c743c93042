"""The table of objectives: what a plan may pursue, five objectives under two orders of refreshing.

Every objective scales with time, so it is written without units. With r = λ/f (changes per refresh) its time
average for one item is λ^(1−p)·value(r), p its power; one more refresh per time buys λ^(−p)·marginal(r),
marginal = −r²·value'(r); and the frequency at which a refresh is worth just its price is f = λ/r with
marginal(r) = price·λ^p.

    objective    p   fixed order: −value          marginal          memoryless: −value   marginal
    freshness    1   −(1−e^{−r})/r                g(r)              −1/(1+r)             (r/(1+r))²
    age          2   r·(½−1/r+(1−e^{−r})/r²)      k(r)              r²/(1+r)             r³(r+2)/(1+r)²
    harmonic     1   Ein(r)−1+(1−e^{−r})/r        h(r)              ln(1+r)              r²/(1+r)
    missed       1   r/2                          r²/2              r                    r²
    lag          2   r²/6                         r³/3              r²                   2r³

Fixed order: an item is refreshed at even intervals. Random: at the times of a Poisson process (memoryless),
so that τ since the last refresh is exponential.
"""

from __future__ import annotations

from afresh.allocation.objectives import (
    age_objective,
    freshness_objective,
    harmonic_objective,
    lag_objective,
    missed_objective,
)
from afresh.allocation.objectives.objective import Objective
from afresh.model.refresh_order import ORDERS
from afresh.values.errors import one_of
from afresh.values.objective_names import OBJECTIVE_NAMES

_FIXED = {
    "freshness": freshness_objective.FIXED,
    "age": age_objective.FIXED,
    "harmonic": harmonic_objective.FIXED,
    "missed": missed_objective.FIXED,
    "lag": lag_objective.FIXED,
}
_MEMORYLESS = {
    "freshness": freshness_objective.MEMORYLESS,
    "age": age_objective.MEMORYLESS,
    "harmonic": harmonic_objective.MEMORYLESS,
    "missed": missed_objective.MEMORYLESS,
    "lag": lag_objective.MEMORYLESS,
}
OBJECTIVES: dict[tuple[str, str], Objective] = {(name, "fixed"): _FIXED[name] for name in OBJECTIVE_NAMES} | {
    (name, "random"): _MEMORYLESS[name] for name in OBJECTIVE_NAMES
}


def objective_order(order: str) -> str:
    """``fixed`` or ``random``, of which ``memoryless`` is another name.

    >>> objective_order("memoryless")
    'random'
    """
    return "random" if one_of("order", order, ORDERS) == "memoryless" else order


def objective_for(name: str, order: str) -> Objective:
    """The objective of that name under that order.

    >>> objective_for("freshness", "fixed").top
    1.0
    """
    return OBJECTIVES[one_of("objective", name, OBJECTIVE_NAMES), objective_order(order)]
