"""``afresh budget`` of a dataset: the least budget for a target freshness, or the curve of many budgets."""

from __future__ import annotations

import math

import numpy as np

from afresh.allocation.budget_curve import BudgetCurve
from afresh.allocation.large.histogram import Histogram
from afresh.allocation.large.item_columns import PlanSums
from afresh.allocation.large.plan_search import FoundPlan
from afresh.allocation.large.target_search import curve_cutoffs, find_budget
from afresh.cli.planning.datasets.executor import open_executor, path_for
from afresh.cli.planning.datasets.plan_dataset import DatasetRun, merge_histograms
from afresh.tables.dataset import find_parts
from afresh.values.errors import UsageError


def budget_of_dataset(items: str, on: str | None, target: float | None) -> tuple[BudgetCurve, int]:
    """Return a tuple (curve, items): the point that reaches the freshness ``target``, or without a target the
    curve over a range of budgets."""
    with open_executor(on or "local") as executor:
        run = DatasetRun(executor, find_parts(path_for(on, items)))
        surveys = run.survey()
        uncertain = next(
            (own for own, found in zip(run.parts, surveys, strict=True) if found.level is not None), None
        )
        if uncertain is not None:
            # The rates to plan with depend on the budget, which is what is looked for here.
            problem = "has a column 'low', which budget takes as exact rates of one file only"
            raise UsageError(f"{uncertain.part.path}: {problem}: leave the column out, or give a single file")
        rows = sum(survey.rows for survey in surveys)
        histogram = merge_histograms([survey.histogram for survey in surveys])
        del surveys
        if target is not None:
            return _one_point(*find_budget(run, target, histogram)), rows
        return _curve(run, histogram), rows


def _one_point(budget: float, found: FoundPlan) -> BudgetCurve:
    freshness, age, price = found.freshness, found.age, found.multiplier
    point = (np.array([value]) for value in (budget, freshness, age, price, found.sums.dropped))
    return BudgetCurve(*point)


def _curve(run: DatasetRun, histogram: Histogram) -> BudgetCurve:
    cutoffs = curve_cutoffs(histogram)
    if not cutoffs:
        none = PlanSums(0.0, 0.0, 0.0, 0)
        return _one_point(0.0, FoundPlan(None, 1.0, none, histogram.total_weight))
    weight, sums = histogram.total_weight, run.sums(cutoffs)
    return BudgetCurve(
        budget=np.array([each.spend for each in sums]),
        freshness=np.array([each.value / weight for each in sums]),
        age=np.array([math.inf if each.dropped else each.age / weight for each in sums]),
        marginal=np.array([cutoff.multiplier for cutoff in cutoffs]),
        dropped=np.array([each.dropped for each in sums]),
    )
