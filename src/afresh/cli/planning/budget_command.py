"""``afresh budget`` finds the smallest budget that reaches a target, and the results of other budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from afresh.cli.files import check_files, choose_output, write_picture
from afresh.cli.options import ItemsFile, PlanningOptions, read_order, with_option_groups
from afresh.cli.progress import ProgressBar
from afresh.cli.summary import format_age, format_number, print_json, print_summary
from afresh.tables.columns import NUMBER, Kind
from afresh.tables.dataset import is_dataset
from afresh.values.errors import UsageError
from afresh.values.objective_names import parse_target
from afresh.values.units import UNIT_NAMES, unit_seconds

if TYPE_CHECKING:
    from afresh.allocation.budget_curve import BudgetCurve
    from afresh.values.arrays import Floats

_COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("budget", "freshness", "age", "marginal"), NUMBER),
    "dropped": "count",
}


@with_option_groups
def budget(
    items: ItemsFile,
    options: PlanningOptions,
    target: Annotated[
        str | None,
        Option(metavar="0.8|6h|lag=6h", help="A freshness, an age (a duration), or a content lag."),
    ] = None,
    curve: Annotated[bool, Option("--curve", help="Print what each of a range of budgets gives.")] = False,
    objective: Annotated[
        str | None,
        Option(metavar="NAME", help="What the plan optimises; what the target is about if not given."),
    ] = None,
    plot: Annotated[str | None, Option(metavar="FILE", help="Draw the curve, as .png or .svg.")] = None,
) -> None:
    """Find the smallest budget that reaches a target, or the freshness of a range of budgets.

    ITEMS is as for plan. The output has the columns budget, freshness, age, marginal, dropped.
    """
    unit, policy, as_json = options.unit, options.policy, options.as_json
    unit_s, order = unit_seconds(unit), read_order(options.order)
    if (target is None) == (not curve):
        raise UsageError("give either --target 0.8 (6h for an age, lag=6h for a content lag), or --curve")
    measure, wanted = ("freshness", None) if target is None else _parse_target(target, unit_s)
    from afresh.tables.writing import write_table

    if options.on is not None or is_dataset(items):
        from afresh.cli.planning.datasets.budget_dataset import budget_of_dataset
        from afresh.cli.planning.datasets.plan_dataset import refuse_options

        other_target = None if measure == "freshness" else target
        refuse_options(options, {"--target": other_target, "--objective": objective, "--plot": plot})
        check_files([], options.output, as_json=as_json)
        points, count = budget_of_dataset(items, options.on, wanted)
    else:
        from afresh.cli.planning.open_hours import with_windows
        from afresh.cli.planning.planned_items import read_items
        from afresh.tables.input_file import InputFile

        check_files([items, options.caps, options.views], options.output, plot, as_json=as_json)
        with InputFile(items) as source, ProgressBar(f"reading {source.name}", 1.0) as progress:
            given = read_items(source, caps=options.caps, views=options.views, on_read=progress.reach)
        # A plan that optimises the measure of the target reaches it with the smallest budget.
        chosen: dict[str, Any] = {**given.options, "objective": objective or measure, "order": order}
        chosen = {**with_windows(given, chosen, options.windows or (), unit_s), "policy": policy}
        points, whole = _solve(given.rates, wanted, measure, chosen, is_drawn=plot is not None)
        count = given.count
        if plot is not None:
            _draw(plot, whole, None if target is None else points, unit, policy)
    columns = {name: getattr(points, name) for name in _COLUMNS}
    if (path := choose_output(options.output, as_json=as_json)) is not None:
        write_table(path, _COLUMNS, columns)
    if as_json:
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        summary: dict[str, Any] = {"items": count, "curve": found}
        if target is not None:
            summary = {"target": target, "items": count, **found[0]}
        print_json({**summary, "unit": unit})
    elif target is not None:
        words = target.replace("lag=", "content lag ") if measure == "lag" else f"{measure} {target}"
        _print_point(points, words, count, unit)


def _parse_target(target: str, unit_s: float) -> tuple[str, float]:
    """Return a tuple (measure, value) of a target: "freshness" and a share, or "age" or "lag" and a number of
    units of ``unit_s`` seconds."""
    found = parse_target(target)
    return found.measure, found.value if found.measure == "freshness" else found.value / unit_s


def _solve(
    rates: Floats, wanted: float | None, measure: str, chosen: dict[str, Any], *, is_drawn: bool
) -> tuple[BudgetCurve, BudgetCurve]:
    """Return a tuple of two curves: the one to print and the one to draw. If there is a target (``wanted``),
    the curve to print is the single point that reaches it."""
    from afresh.allocation.budget_curve import budget_curve, budget_for

    found = None if wanted is None else [budget_for(rates, wanted, target_is=measure, **chosen)]
    with ProgressBar("solving", 1.0) as progress:
        points = budget_curve(rates, found, on_point=progress.reach, **chosen)
        if found is None or not is_drawn:
            return points, points
        return points, budget_curve(rates, on_point=progress.reach, **chosen)


def _print_point(points: BudgetCurve, target: str, count: int, unit: str) -> None:
    budget = float(points.budget[0])
    each = f", {format_number(budget / count)} for each item" if count else ""
    rows = [
        ("items", f"{count:,}, of which {int(points.dropped[0]):,} are dropped"),
        ("budget", f"{format_number(budget)} per {UNIT_NAMES[unit]}{each}"),
        ("freshness", f"{float(points.freshness[0]):.4f}"),
        ("age", format_age(float(points.age[0]), unit)),
    ]
    print_summary(f"least budget for {target}", rows)


def _draw(path: str, curve: BudgetCurve, chosen: BudgetCurve | None, unit: str, policy: str) -> None:
    import numpy as np

    from afresh.plots.line_plot import line_figure
    from afresh.plots.panels import Panel, Series

    per = f"per {UNIT_NAMES[unit]}"
    label = f"budget {per}"
    buys = [Series("best plan" if policy == "optimal" else f"{policy} plan", curve.budget, curve.freshness)]
    if chosen is not None:
        at = f"target, at {format_number(float(chosen.budget[0]))} {per}"
        buys.append(Series(at, chosen.budget, chosen.freshness, "dots"))
    gain = (Series("next unit", curve.budget, curve.marginal),)
    is_positive = bool(np.all(curve.marginal > 0))
    panels = [
        Panel("What the budget buys", label, "freshness of the copies", tuple(buys), log_x=True),
        Panel(
            "What one more unit gains", label, "gain in Σ weight·value", gain, log_x=True, log_y=is_positive
        ),
    ]
    write_picture(path, line_figure(panels))
