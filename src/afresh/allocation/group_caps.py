"""Caps on the spend of groups, solved jointly with the budget.

A group h whose cap binds has a price of its own, m_h, at which it spends just its cap; the budget's price is
μ, and the group's items pay max(μ, m_h). Frequencies fall with the price, so f(max(μ, m_h)) is the lesser of
f(μ) and f(m_h): the caps become ceilings f(m_h) on the single items, found for all groups at once, and what
is left is one search for μ. The multiplier of the cap itself is ν_h = max(0, m_h − μ).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.allocation.problem import AllocationProblem, GroupCaps
from afresh.model.roots import HUGE, JUST_ABOVE, TINY, solve_decreasing
from afresh.values.arrays import Bools, Float64s, nonnegative
from afresh.values.errors import InputError, UsageError, did_you_mean

Labels: TypeAlias = Sequence[Hashable] | npt.NDArray[Any]
CapsLike: TypeAlias = Mapping[Any, float] | Sequence[float]


def parse_caps(groups: Labels | None, caps: CapsLike | None, items: int) -> GroupCaps | None:
    """The caps from what users give, checked: a mapping by label, or caps[g] for labels 0, 1, …

    Groups without a cap are not limited.

    >>> parse_caps(["a", "b", "a"], {"a": 2.0}, 3)
    GroupCaps(group=array([0, 1, 0]), cap=array([2.]), labels=('a',))
    """
    if caps is None:
        return None
    if groups is None:
        raise UsageError("caps need groups: give the group of each item")
    labels = _check_labels(groups, items)
    if not isinstance(caps, Mapping):
        caps = _caps_by_number(labels, caps)
    present = set(labels)
    unknown = [label for label in caps if label not in present]
    if unknown:
        names = [str(label) for label in present]
        raise InputError(f"unknown group {unknown[0]!r} in caps{did_you_mean(str(unknown[0]), names)}")
    rows = {label: row for row, label in enumerate(caps)}
    cap = nonnegative("cap", list(caps.values()), infinite=True).astype(np.float64, copy=False)
    group = np.fromiter((rows.get(label, len(rows)) for label in labels), dtype=np.int64, count=items)
    return GroupCaps(group, cap, tuple(rows))


def _check_labels(groups: Labels, items: int) -> list[Hashable]:
    array = groups if isinstance(groups, np.ndarray) else np.array(groups, dtype=object)
    if array.shape != (items,):
        raise InputError(f"groups has {array.size} labels for {items} items: give one for each item")
    labels: list[Hashable] = array.tolist()
    return labels


def _caps_by_number(labels: list[Hashable], caps: Sequence[float]) -> dict[Hashable, float]:
    wrong = [label for label in labels if not isinstance(label, int) or not 0 <= label < len(caps)]
    if wrong:
        raise InputError(
            f"group {wrong[0]!r} has no place in a list of {len(caps)} caps: "
            "number the groups from 0, or give caps by label"
        )
    present = set(labels)
    return {number: cap for number, cap in enumerate(caps) if number in present}


def apply_caps(problem: AllocationProblem, most: Float64s) -> tuple[AllocationProblem, Float64s]:
    """The problem with its caps turned into ceilings, and the price m_h of each group.

    ``most`` is the plan at price 0: a group that stays below its cap even then is free and has price 0; one
    whose floors use up its cap has an infinite price.
    """
    if problem.caps is None:
        return problem, np.zeros(0)
    caps = problem.caps
    with np.errstate(invalid="ignore"):
        tight = caps.sums(problem.spends(most)) > caps.cap
    if not tight.any():
        return problem, np.zeros(len(caps.cap))
    binding = _keep_groups(caps, tight)
    ceiling, price = _solve_groups(problem, binding)
    ceiling = ceiling if problem.upper is None else np.minimum(problem.upper, ceiling)
    prices = np.zeros(len(caps.cap))
    prices[tight] = price
    return replace(problem, upper=ceiling), prices


def _keep_groups(caps: GroupCaps, kept: Bools) -> GroupCaps:
    """The caps of the chosen groups; the items of the others belong to no group."""
    number = np.where(kept, np.cumsum(kept) - 1, kept.sum())
    group = np.append(number, kept.sum())[caps.group]
    labels = tuple(label for label, keep in zip(caps.labels, kept, strict=True) if keep)
    return GroupCaps(group, caps.cap[kept], labels)


def _solve_groups(problem: AllocationProblem, caps: GroupCaps) -> tuple[Float64s, Float64s]:
    """For groups whose cap binds: each item's frequency at the cap (infinite elsewhere), and the prices."""
    floor = problem.floor()
    entry = problem.prices()
    highest = np.full(len(caps.cap) + 1, TINY)
    np.maximum.at(highest, caps.group, np.minimum(entry * JUST_ABOVE, HUGE))
    floors = caps.sums(problem.spends(floor))

    def plan(price: Float64s) -> Float64s:
        return problem.plan(caps.spread(price, 1.0))

    def spends(price: Float64s) -> Float64s:
        return caps.sums(problem.spends(plan(price)))

    # A cap that the floors use up has no root: nothing more is bought at any price.
    room = caps.cap > floors
    target = np.where(room, caps.cap, 1.0)
    bracket = solve_decreasing(spends, target, _first_prices(problem, caps), high=highest[:-1])
    share = caps.spread(bracket.share(target), 0.0)
    upper_plan = plan(bracket.high)
    at_cap = upper_plan + share * (plan(bracket.low) - upper_plan)
    at_cap = np.where(np.append(room, True)[caps.group], at_cap, floor)
    price = np.where(room, bracket.high, np.inf)
    return np.where(caps.group < len(caps.cap), at_cap, np.inf), price


def _first_prices(problem: AllocationProblem, caps: GroupCaps) -> Float64s:
    """First guess of each group's price: what one more unit buys if the group spends its cap uniformly."""
    active = problem.active()
    cost = caps.sums(np.where(active, problem.cost, 0.0))
    even = caps.spread(caps.cap / np.maximum(cost, TINY), 1.0)
    marginal = np.where(active, problem.weight * problem.gains.marginal(np.maximum(even, TINY)), 0.0)
    return np.clip(caps.sums(marginal) / np.maximum(cost, TINY), TINY, HUGE)
