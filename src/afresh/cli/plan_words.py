"""A plan in words: what it achieves, what the next unit of budget buys, why items are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from afresh.allocation.allocate import allocate
from afresh.allocation.explain import DROPPED, Explanation, next_unit, returns_at
from afresh.cli.items import Items
from afresh.cli.summary import age_in_words, number
from afresh.values.results import Allocation
from afresh.values.units import UNIT_NAMES

_UNCERTAIN = "from polls, planned with as uncertain as the column low says"
_SHOWN = 3  # dropped items told one by one
_SMALL_UNIT = 1e4  # of a budget above it one unit is a small step


class NearestDropped:
    """The dropped items nearest to coming back, kept while the rows of a plan go by."""

    def __init__(self) -> None:
        self.found: list[tuple[float, int, str]] = []  # gain, position, name

    def look(self, names: pa.Array, start: int, detail: Explanation) -> None:
        """Look at the items from position ``start`` on."""
        dropped = np.flatnonzero(detail.status == DROPPED)
        gains = detail.marginal[dropped]
        for at in np.argsort(-gains, kind="stable")[:_SHOWN]:
            index = int(dropped[at])
            self.found.append((float(gains[at]), start + index, str(names[index].as_py())))
        self.found = sorted(self.found, key=lambda entry: (-entry[0], entry[1]))[:_SHOWN]


def title_of(policy: str, objective: str, order: str) -> str:
    """What kind of plan it is."""
    way = "refreshed at even intervals" if order == "fixed" else "refreshed at random moments"
    return f"{policy} plan for {objective}, {way}"


def rows_for_people(
    given: Items,
    plan: Allocation,
    dropped: NearestDropped,
    budget: float,
    unit: str,
    chosen: Mapping[str, Any],
) -> list[tuple[str, str]]:
    """The summary table's rows; ``chosen`` are the options the plan was made with."""
    per = f"per {UNIT_NAMES[unit]}"
    fewer = f", {plan.dropped:,} of them dropped" if plan.dropped else ""
    return [
        ("items", f"{given.count:,}{fewer}"),
        ("budget", f"{number(budget)} {per}, of which {number(plan.spend)} is spent"),
        ("freshness", f"{plan.freshness:.4f}{_beside_uniform(given, budget, chosen)}"),
        ("age", age_in_words(plan.age, unit)),
        ("next unit", _next_unit(plan, given, budget, chosen, per)),
        ("gap", f"no plan is better by more than {number(plan.gap)} in Σ weight·value"),
        *([("rates", _UNCERTAIN)] if given.shape is not None else []),
        *_dropped(given, dropped, budget, per, chosen),
    ]


def _beside_uniform(given: Items, budget: float, chosen: Mapping[str, Any]) -> str:
    """What the simplest plan would reach; it knows no bounds, so there is no comparing under them."""
    if {"lower", "upper", "caps"} & chosen.keys() or not given.count:
        return ""
    uniform = allocate(given.rates, budget, policy="uniform", **chosen)
    return f" (refreshing all equally often: {uniform.freshness:.4f})"


def _next_unit(plan: Allocation, given: Items, budget: float, chosen: Mapping[str, Any], per: str) -> str:
    """What one more unit of budget does to the mean of the objective."""
    weights = chosen.get("weights")
    total = float(given.count if weights is None else np.sum(weights, dtype=np.float64))
    gain = plan.multiplier
    if budget < _SMALL_UNIT:  # a unit is then no small step, and the gain falls on the way
        gain = next_unit(given.rates, budget, **chosen).gain
    objective = chosen["objective"]
    effect = "raises freshness" if objective == "freshness" else f"lowers the mean {objective}"
    mean = gain / total if total else 0.0
    return f"1 more {per} {effect} by {number(mean)}; at the margin, multiplier {number(plan.multiplier)}"


def _dropped(
    given: Items, dropped: NearestDropped, budget: float, per: str, chosen: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """What the dropped items nearest to coming back would gain, and at which budget they return."""
    if not dropped.found:
        return []
    rows = []
    budgets = returns_at(given.rates, [index for _, index, _ in dropped.found], **chosen)
    for (gain, index, name), back_at in zip(dropped.found, budgets, strict=True):
        changes = f"{name} (rate {number(float(given.rates[index]))} {per})"
        gains = f"one more unit spent on it gains only {number(gain)}"
        more = f"comes back with {number(max(float(back_at) - budget, 0.0))} more {per}"
        back = "no budget brings it back" if np.isinf(back_at) else more
        rows.append(("dropped", f"{changes}: {gains}; {back}"))
    return rows
