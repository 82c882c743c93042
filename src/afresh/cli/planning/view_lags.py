"""Target lags of the views of ``plan --views``: whether they fit the budget, and what budget would do.

A cost is in units of the budget, whatever they are, so that the duration of a refresh and the time until a
change is seen are not known here; ``afresh status`` takes both into account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.allocation.lag_targets import LagFeasibility, LagJobs, check_lags
from afresh.cli.summary import format_number
from afresh.rates.views import ViewGraph
from afresh.values.arrays import Float64s, Floats
from afresh.values.errors import UsageError
from afresh.values.formatting import format_count
from afresh.values.units import format_duration, parse_duration

if TYPE_CHECKING:
    from afresh.tables.reading import CheckedTable


@dataclass(frozen=True, slots=True)
class ViewLags:
    """The target lags of views in seconds, by name, and the tuples (lower, upper) of positions in ``names``:
    the upper view is built on the lower one."""

    names: tuple[str, ...]
    target_s: Mapping[str, float]
    below: tuple[tuple[int, int], ...]

    def check(self, rates: Floats, options: Mapping[str, Any], budget: BudgetPerUnit) -> CheckedLags:
        """Return which targets fit. The views are the first of the planned items; their ``rates`` and costs
        (in ``options``) are those of the plan."""
        size = len(self.names)
        target = np.array([self.target_s.get(name, np.inf) for name in self.names]) / budget.unit_s
        cost, weight = (_column(options.get(name), size) for name in ("costs", "weights"))
        # A cost is no duration, so that nothing but waiting for other refreshes is compared with the target.
        no_duration = -_chain_costs(cost, self.below)
        jobs = LagJobs(target, cost, rates[:size].astype(np.float64), no_duration, weight, self.below)
        return CheckedLags(self.names, check_lags(jobs, budget.amount), budget)


@dataclass(frozen=True, slots=True)
class BudgetPerUnit:
    """A budget of ``amount`` per unit of time, the name of the unit, and its seconds."""

    amount: float
    unit: str
    unit_s: float


@dataclass(frozen=True, slots=True)
class CheckedLags:
    """Whether the target lags of the views ``names`` fit ``budget``."""

    names: tuple[str, ...]
    found: LagFeasibility
    budget: BudgetPerUnit

    def unfit(self) -> list[tuple[str, float, float, float, float]]:
        """Return a tuple for each target that does not fit: the view, its target lag in seconds, the missing
        budget, and its parts: for all targets together, and to wait for the longest other refresh."""
        found, unit_s = self.found, self.budget.unit_s
        at = np.flatnonzero(np.isfinite(found.target_s) & ~found.fits).tolist()
        target_s = found.target_s * unit_s
        missing, demand, wait = (
            each.tolist() for each in (found.missing, found.demand_missing, found.wait_missing)
        )
        return [(self.names[i], float(target_s[i]), missing[i], demand[i], wait[i]) for i in at]

    def rows(self) -> list[tuple[str, str]]:
        """Return a tuple (name, text) for each line of the summary about target lags."""
        found, unit, unfit = self.found, self.budget.unit, self.unfit()
        number = int(np.count_nonzero(np.isfinite(found.target_s)))
        words = f"{format_count(number, 'target')}: {format_number(found.demand)}/{unit} needed"
        if not unfit:
            return [("target lags", f"{words}, {format_number(self.budget.amount)}/{unit} allowed; all fit")]
        rows = [("target lags", f"{words}; a budget of {format_number(found.needed)}/{unit} would do")]
        for name, target_s, _, demand, wait in unfit:
            missing = (
                ("for all targets together", demand),
                ("to pay off the longest other refresh in time", wait),
            )
            parts = [f"{format_number(lack)}/{unit} missing {what}" for what, lack in missing if lack > 0]
            rows.append((f"  {name}", f"{format_duration(target_s)} does not fit: {', and '.join(parts)}"))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints: budgets are per unit of time, lags in seconds."""
        names = ("item", "target_lag_s", "missing", "demand_missing", "wait_missing")
        unfit = [dict(zip(names, each, strict=True)) for each in self.unfit()]
        return {"demand": self.found.demand, "needed": self.found.needed, "unfit": unfit}


def read_view_lags(table: CheckedTable, graph: ViewGraph) -> ViewLags | None:
    """Return the target lags in the column ``target_lag`` of the ``--views`` file; None without any."""
    if "target_lag" not in table:
        return None
    found: dict[str, float] = {}
    views, texts = table.text("view").tolist(), table.text("target_lag").tolist()
    for row, (view, text) in enumerate(zip(views, texts, strict=True)):
        if not text:
            continue
        try:
            lag_s = parse_duration(text)
        except UsageError as error:
            raise table.fault(row, "target_lag", str(error)) from None
        if not lag_s > 0:
            raise table.fault(row, "target_lag", f"is {text!r}: must be more than 0")
        if found.setdefault(view, lag_s) != lag_s:
            raise table.fault(row, "target_lag", f"is {text!r}, but {view!r} has another one above")
    return ViewLags(graph.views, found, _pairs(graph)) if found else None


def _column(given: Any, size: int) -> Float64s:
    return np.ones(size) if given is None else np.asarray(given[:size], dtype=np.float64)


def _chain_costs(cost: Float64s, below: Sequence[tuple[int, int]]) -> Float64s:
    total = cost.copy()
    for lower, upper in below:
        total[upper] += cost[lower]
    return total


def _pairs(graph: ViewGraph) -> tuple[tuple[int, int], ...]:
    """Return the tuples (lower, upper) of positions in ``graph.views``, at any depth."""
    first = len(graph.bases)
    lower_of: list[set[int]] = []
    for nodes in graph.parts:  # each view comes after those that it is built on
        direct = [node - first for node in nodes if node >= first]
        lower_of.append({*direct, *(each for at in direct for each in lower_of[at])})
    pairs = [(lower, upper) for upper, found in enumerate(lower_of) for lower in sorted(found)]
    return tuple((graph.place[lower], graph.place[upper]) for lower, upper in pairs)
