"""What the picture of a plan shows: the items as dots on Cho's curve, and what other budgets would buy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.allocation.budget_curve import budget_curve
from afresh.allocation.objectives import objective_for
from afresh.cli.items import Items, options_of
from afresh.plots.plan_plot import PlanPicture
from afresh.values.arrays import Floats
from afresh.values.results import Allocation

_SAMPLE = 20_000  # items: enough for a smooth curve, quick to solve forty times
_LAW_POINTS = 400


def picture_of(
    given: Items, plan: Allocation, budget: float, unit: str, policy: str, chosen: Mapping[str, Any]
) -> PlanPicture:
    """The picture of ``plan``; the curves over budgets come from a sample where items are many."""
    every = max(1, given.count // _SAMPLE)
    rates = given.rates[::every]
    options = options_of(chosen, slice(None, None, every))
    if "caps" in options:  # a sample of a group may spend its share of the cap
        options["caps"] = {group: cap / every for group, cap in options["caps"].items()}
    limited = {"lower", "upper", "caps"} & chosen.keys()
    curve = budget_curve(rates, **options)
    uniform = (
        [] if limited else [allocate(rates, at, policy="uniform", **options).freshness for at in curve.budget]
    )
    law = _law(plan, given.rates, chosen) if policy == "optimal" and "decay" not in chosen else _NO_LAW
    return PlanPicture(
        rate=given.rates,
        frequency=plan.frequency,
        dropped=plan.frequency == 0,
        law_rate=law[0],
        law_frequency=law[1],
        cutoff=law[2],
        budgets=curve.budget * every,
        freshness=curve.freshness,
        uniform=np.array(uniform),
        budget=budget,
        reached=plan.freshness,
        unit=unit,
    )


_NO_LAW = (np.empty(0), np.empty(0), float("inf"))


def _law(plan: Allocation, rates: Floats, chosen: Mapping[str, Any]) -> tuple[Floats, Floats, float]:
    """The best frequency against the rate at the plan's price, for weight and cost 1, and where it ends."""
    changing = rates[rates > 0]
    if not changing.size or plan.multiplier <= 0:
        return _NO_LAW
    objective = objective_for(chosen["objective"], chosen["order"])
    cutoff = float((objective.top / plan.multiplier) ** (1 / objective.power))
    x = np.geomspace(changing.min() / 2, min(changing.max() * 2, cutoff * (1 - 1e-9)), _LAW_POINTS)
    return x, x / objective.inverse(plan.multiplier * x**objective.power), cutoff
