"""Checks of the arguments of ``allocate``, ``budget_for`` and ``budget_curve``; they build the problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from afresh.allocation.gains import Gains, RateGains
from afresh.allocation.group_caps import CapsLike, Labels, parse_caps
from afresh.allocation.objectives.decay_gains import decay_gains
from afresh.allocation.objectives.registry import objective_for, objective_order
from afresh.allocation.problem import AllocationProblem
from afresh.model.decay import Decay
from afresh.values.arrays import ArrayLike, Float64s, nonnegative
from afresh.values.errors import InputError, UsageError

_LEAST, _MOST = 1e-50, 1e50


class ProblemOptions(TypedDict, total=False):
    """The options of a problem: everything except its rates and its budget."""

    weights: ArrayLike | None
    costs: ArrayLike | None
    update_costs: ArrayLike | None
    objective: str
    order: str
    decay: str | Sequence[str] | Decay | None
    lower: ArrayLike | None
    upper: ArrayLike | None
    groups: Labels | None
    caps: CapsLike | None


def build_problem(
    rates: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    update_costs: ArrayLike | None = None,
    objective: str = "freshness",
    order: str = "fixed",
    decay: str | Sequence[str] | Decay | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    groups: Labels | None = None,
    caps: CapsLike | None = None,
) -> AllocationProblem:
    """The problem, after wrong values, lengths and combinations have been refused."""
    rate = nonnegative("rate", rates).astype(np.float64, copy=False)
    if rate.ndim != 1:
        raise InputError(f"rate has {rate.ndim} dimensions: give a list of numbers, one for each item")
    _check_range("rate", rate)
    decay = _simplify_decay(decay)
    _check_combination(objective, order, decay, update_costs)
    cost = _column("cost", costs, rate, 1.0)
    if cost.size and cost.min() <= 0:
        raise InputError(f"cost[{int(np.argmin(cost))}] is 0: a refresh must cost more than nothing")
    # Static items get nothing, so any rate above 0 may stand for theirs.
    safe = np.where(rate > 0, rate, 1.0)
    problem = AllocationProblem(
        rate=rate,
        weight=_column("weight", weights, rate, 1.0),
        cost=cost,
        gains=_gains(objective, order, decay, safe),
        freshness=_gains("freshness", order, decay, safe),
        age=_gains("age", order, decay, safe),
        update_cost=None if update_costs is None else _column("update_cost", update_costs, rate, 0.0),
        lower=None if lower is None else _column("lower", lower, rate, 0.0),
        upper=None if upper is None else _column("upper", upper, rate, np.inf, infinite=True),
        caps=parse_caps(groups, caps, len(rate)),
    )
    problem.check_bounds()
    return problem


def _simplify_decay(decay: str | Sequence[str] | Decay | None) -> str | Sequence[str] | Decay | None:
    """None if all items decay exponentially, which needs no decay object."""
    if isinstance(decay, str):
        return None if decay.strip() == "exponential" else decay
    if isinstance(decay, Sequence) and len(decay) and all(spec == "exponential" for spec in decay):
        return None
    return decay


def _check_range(name: str, column: Float64s) -> None:
    """Refuse magnitudes whose squares and quotients would leave the range of floating point."""
    wrong = (column > 0) & ((column < _LEAST) | (column > _MOST))
    if wrong.any():
        item = int(np.argmax(wrong))
        raise InputError(
            f"{name}[{item}] is {column[item]:g}: "
            f"must be 0 or from {_LEAST:g} to {_MOST:g}; choose another unit"
        )


def check_budget(budget: float) -> float:
    """A finite number of 0 or more."""
    value = nonnegative("budget", budget)
    if value.ndim != 0:
        raise InputError("budget must be one number")
    return float(value)


def _check_combination(objective: str, order: str, decay: object, update_costs: object) -> None:
    objective_for(objective, order)
    fixed = objective_order(order) == "fixed"
    if decay is not None:
        if objective not in ("freshness", "age"):
            raise UsageError(f"objective {objective!r} needs exponential decay: use freshness or age")
        if not fixed:
            raise UsageError("decay functions other than exponential need order 'fixed'")
        if update_costs is not None:
            raise UsageError("update costs need exponential decay")
    if update_costs is not None and not (fixed and objective == "freshness"):
        raise UsageError("update costs need objective 'freshness' and order 'fixed'")


def _column(
    name: str, given: ArrayLike | None, rate: Float64s, default: float, *, infinite: bool = False
) -> Float64s:
    """One number for each item; a single number is repeated for all."""
    if given is None:
        return np.full(rate.shape, default)
    column = nonnegative(name, given, infinite=infinite).astype(np.float64, copy=False)
    if name in ("weight", "cost", "update_cost"):
        _check_range(name, np.atleast_1d(column))
    if column.ndim == 0:
        return np.full(rate.shape, float(column))
    if column.shape != rate.shape:
        raise InputError(f"{name} has {column.size} values for {rate.size} items: give one for each item")
    return column


def _gains(objective: str, order: str, decay: str | Sequence[str] | Decay | None, rate: Float64s) -> Gains:
    if decay is None:
        return RateGains(objective_for(objective, order), rate)
    return decay_gains(objective, decay, rate)
