"""Describes a plan for people: its freshness, the gain of more budget, the dropped items, and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.allocation.budget_curve import budget_curve
from afresh.allocation.explain import DROPPED, Explanation, gain_of_next_unit, returns_at
from afresh.allocation.objectives import objective_for
from afresh.allocation.problem import build_problem
from afresh.cli.planning.planned_items import PlannedItems, slice_options
from afresh.cli.summary import format_age, format_number
from afresh.values.arrays import Floats
from afresh.values.results import Allocation
from afresh.values.units import UNIT_NAMES

if TYPE_CHECKING:
    from afresh.cli.planning.open_hours import WindowsEffect
    from afresh.plots.plan_plot import PlanPicture
    from afresh.tables.text_columns import Texts

_UNCERTAIN = "from polls, planned with as uncertain as the column low says"
_SHOWN = 3  # dropped items described one by one
_SMALL_UNIT = 1e4  # one more unit is a small step only for budgets above this
_SAMPLE = 20_000  # items, which is enough for a smooth curve, and quick to solve forty times
_LAW_POINTS = 400
_NO_LAW = (np.empty(0), np.empty(0), float("inf"))


class NearestDropped:
    """Collects the dropped items with the largest marginal gain while the rows of a plan are written."""

    def __init__(self) -> None:
        self.found: list[tuple[float, int, str]] = []  # gain, position, name

    def update(self, names: Texts, start: int, detail: Explanation) -> None:
        """Add the dropped items of a batch of rows; ``start`` is the position of its first row."""
        dropped = np.flatnonzero(detail.status == DROPPED)
        gains = detail.marginal[dropped]
        for at in np.argsort(-gains, kind="stable")[:_SHOWN]:
            index = int(dropped[at])
            self.found.append((float(gains[at]), start + index, names[index]))
        self.found = sorted(self.found, key=lambda entry: (-entry[0], entry[1]))[:_SHOWN]


def plan_title(policy: str, objective: str, order: str) -> str:
    """Return the title of the summary; ``order`` is ``fixed``, ``shuffled`` or ``memoryless``."""
    ways = {"fixed": "at even intervals", "shuffled": "once in each shuffled round"}
    return f"{policy} plan for {objective}, refreshed {ways.get(order, 'at random moments')}"


def plan_rows(
    given: PlannedItems,
    plan: Allocation,
    dropped: NearestDropped,
    budget: float,
    unit: str,
    chosen: Mapping[str, Any],
) -> list[tuple[str, str]]:
    """Return (name, text) for each line of the summary. ``chosen`` are the arguments of ``allocate`` for this
    plan, ``budget`` is in cost units per ``unit`` of time."""
    per = f"per {UNIT_NAMES[unit]}"
    fewer = f", {plan.dropped:,} of them dropped" if plan.dropped else ""
    return [
        ("items", f"{given.count:,}{fewer}"),
        ("budget", f"{format_number(budget)} {per}, of which {format_number(plan.spend)} is spent"),
        ("freshness", f"{plan.freshness:.4f}{_compare_uniform(given, budget, chosen)}"),
        ("age", format_age(plan.age, unit)),
        *_lag_rows(plan_content_lag(given, plan, chosen), unit),
        ("next unit", _describe_next_unit(plan, given, budget, chosen, per)),
        ("gap", f"no plan is better by more than {format_number(plan.gap)} in Σ weight·value"),
        *([("rates", _UNCERTAIN)] if given.shape is not None else []),
        *_dropped_rows(given, dropped, budget, per, chosen),
    ]


def plan_content_lag(given: PlannedItems, plan: Allocation, chosen: Mapping[str, Any]) -> float | None:
    """Return the content lag of a plan with the objective ``lag``, in units of time; None for other plans."""
    if chosen["objective"] != "lag":
        return None
    return build_problem(given.rates, **chosen).mean_lag(np.asarray(plan.frequency, dtype=np.float64))


def _lag_rows(content_lag: float | None, unit: str) -> list[tuple[str, str]]:
    if content_lag is None:
        return []
    return [("content lag", f"{format_age(content_lag, unit)}; 0 is best (F(L) of Yang et al. 2010)")]


def windows_rows(effect: WindowsEffect | None) -> list[tuple[str, str]]:
    """Return a row about the windows of a plan, if it has any."""
    if effect is None:
        return []
    words = f"open {effect.open_share:.1%} of the time; without them the freshness would be"
    return [("windows", f"{words} {effect.without:.4f}, with them at most {effect.most:.4f} at any budget")]


def _compare_uniform(given: PlannedItems, budget: float, chosen: Mapping[str, Any]) -> str:
    """Describe the freshness of uniform polling at the same budget. Return "" if frequencies are bounded or
    groups have caps, because uniform polling ignores these limits."""
    if {"lower", "upper", "caps"} & chosen.keys() or not given.count:
        return ""
    uniform = allocate(given.rates, budget, policy="uniform", **chosen)
    return f" (refreshing all equally often: {uniform.freshness:.4f})"


def _describe_next_unit(
    plan: Allocation, given: PlannedItems, budget: float, chosen: Mapping[str, Any], per: str
) -> str:
    """Describe the effect of one more unit of budget on the mean of the objective."""
    weights = chosen.get("weights")
    total = float(given.count if weights is None else np.sum(weights, dtype=np.float64))
    gain = plan.multiplier
    if budget < _SMALL_UNIT:  # one unit is a large step, so its gain is less than the multiplier
        gain = gain_of_next_unit(given.rates, budget, **chosen)
    objective = chosen["objective"]
    effect = "raises freshness" if objective == "freshness" else f"lowers the mean {objective}"
    mean = gain / total if total else 0.0
    margin = f"at the margin, multiplier {format_number(plan.multiplier)}"
    return f"1 more {per} {effect} by {format_number(mean)}; {margin}"


def _dropped_rows(
    given: PlannedItems, dropped: NearestDropped, budget: float, per: str, chosen: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return a row for each dropped item found: what one unit of budget spent on the item would gain, and how
    much more budget would bring it back into the plan."""
    if not dropped.found:
        return []
    rows = []
    budgets = returns_at(given.rates, [index for _, index, _ in dropped.found], **chosen)
    for (gain, index, name), back_at in zip(dropped.found, budgets, strict=True):
        changes = f"{name} (rate {format_number(float(given.rates[index]))} {per})"
        gains = f"one more unit spent on it gains only {format_number(gain)}"
        more = f"comes back with {format_number(max(float(back_at) - budget, 0.0))} more {per}"
        back = "no budget brings it back" if np.isinf(back_at) else more
        rows.append(("dropped", f"{changes}: {gains}; {back}"))
    return rows


def plan_picture(
    given: PlannedItems, plan: Allocation, budget: float, unit: str, policy: str, chosen: Mapping[str, Any]
) -> PlanPicture:
    """Return the data of the picture: rate and frequency of the items, the optimal frequency over the rate,
    and the freshness over the budget.

    If there are many items, the freshness over the budget is computed from a sample of the items."""
    from afresh.plots.plan_plot import PlanPicture

    every = max(1, given.count // _SAMPLE)
    rates = given.rates[::every]
    options = slice_options(chosen, slice(None, None, every))
    if "caps" in options:  # the sampled items of a group may spend only their share of the group's cap
        options["caps"] = {group: cap / every for group, cap in options["caps"].items()}
    limited = {"lower", "upper", "caps"} & chosen.keys()
    curve = budget_curve(rates, **options)
    compared = curve.budget[:0] if limited else curve.budget
    uniform = [allocate(rates, at, policy="uniform", **options).freshness for at in compared]
    has_law = policy == "optimal" and "decay" not in chosen
    law = _optimal_law(plan, given.rates, chosen) if has_law else _NO_LAW
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


def _optimal_law(plan: Allocation, rates: Floats, chosen: Mapping[str, Any]) -> tuple[Floats, Floats, float]:
    """Return the curve of optimal frequencies over the rate, for an item of weight 1 and cost 1.

    It is a tuple (rates for the curve, frequency at each of them, rate above which the frequency is 0). The
    frequencies are those at the plan's multiplier, the value of one more unit of budget.
    """
    changing = rates[rates > 0]
    if not changing.size or plan.multiplier <= 0:
        return _NO_LAW
    objective = objective_for(chosen["objective"], chosen["order"])
    cutoff = float((objective.top / plan.multiplier) ** (1 / objective.power))
    x = np.geomspace(changing.min() / 2, min(changing.max() * 2, cutoff * (1 - 1e-9)), _LAW_POINTS)
    return x, x / objective.inverse(plan.multiplier * x**objective.power), cutoff
