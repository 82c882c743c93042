"""``afresh budget``: the least budget for a target, and what every other budget would give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.files import check_files
from afresh.cli.options import (
    AsJson,
    CapsFile,
    ItemsFile,
    Order,
    Output,
    Unit,
    ViewsFile,
)
from afresh.cli.progress import Progress
from afresh.cli.summary import age_in_words, number, print_json, print_summary
from afresh.values.errors import UsageError
from afresh.values.units import UNIT_NAMES, parse_duration, unit_seconds

if TYPE_CHECKING:
    from afresh.allocation.budget_curve import BudgetCurve
    from afresh.values.arrays import Floats


def budget(
    items: ItemsFile,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="0.8|6h", help="A number is a freshness, a duration an age."),
    ] = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Print what each of a range of budgets gives.")
    ] = False,
    unit: Unit = "d",
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            metavar="NAME",
            help="What the plan optimises; what the target is about if not given.",
        ),
    ] = None,
    order: Order = "fixed",
    caps: CapsFile = None,
    views: ViewsFile = None,
    output: Output = None,
    as_json: AsJson = False,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw the curve, as .png or .svg.")
    ] = None,
) -> None:
    """The least budget that reaches a target, or the whole curve from budget to freshness.

    ITEMS is as for plan. The rows that come out are budget, freshness, age, marginal, dropped.
    """
    unit_s = unit_seconds(unit)
    if (target is None) == (not curve):
        raise UsageError("give either --target 0.8 (or a duration, for age), or --curve")
    aim, wanted = _aim(target, unit_s)
    from afresh.cli.items import read_items
    from afresh.tables.input_file import InputFile

    check_files([items, caps, views], output, plot, as_json=as_json)
    with InputFile(items) as source, Progress(f"reading {source.name}", 1.0) as progress:
        given = read_items(source, caps=caps, views=views, on_read=progress.reach)
    # The least budget of all is found when the plan pursues what the target is about.
    chosen: dict[str, Any] = {**given.options, "objective": objective or aim, "order": order}
    points, whole = _solved(
        given.rates, None if target is None else wanted, aim, chosen, drawn=plot is not None
    )
    if plot is not None:
        _draw(plot, whole, None if target is None else points, unit)
    if output is not None or not as_json:
        _write(output or "-", points)
    if as_json:
        print_json(_summary(points, target, given.count) | {"unit": unit})
    elif target is not None:
        _print_for_people(points, f"{aim} {target}", given.count, unit)


def _solved(
    rates: Floats, wanted: float | None, aim: str, chosen: dict[str, Any], *, drawn: bool
) -> tuple[BudgetCurve, BudgetCurve]:
    """The point at which the aim is reached, or else the curve; and the curve that is to be ``drawn``."""
    from afresh.allocation.budget_curve import budget_curve, budget_for

    found = None if wanted is None else [budget_for(rates, wanted, target_is=aim, **chosen)]
    with Progress("solving", 1.0) as progress:
        points = budget_curve(rates, found, on_point=progress.reach, **chosen)
        if found is None or not drawn:
            return points, points
        return points, budget_curve(rates, on_point=progress.reach, **chosen)


def _aim(target: str | None, unit_s: float) -> tuple[str, float]:
    """What the target is about, and its value: a freshness, or an age in units of time."""
    if target is None:
        return "freshness", 0.0
    try:
        if target.endswith("%"):
            return "freshness", float(target[:-1]) / 100
        return "freshness", float(target)
    except ValueError:
        return "age", parse_duration(target) / unit_s


def _summary(points: BudgetCurve, target: str | None, count: int) -> dict[str, Any]:
    columns = {
        "budget": points.budget.tolist(),
        "freshness": points.freshness.tolist(),
        "age": points.age.tolist(),
        "marginal": points.marginal.tolist(),
        "dropped": points.dropped.tolist(),
    }
    if target is None:
        return {
            "items": count,
            "curve": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        }
    return {"target": target, "items": count} | {name: values[0] for name, values in columns.items()}


def _print_for_people(points: BudgetCurve, target: str, count: int, unit: str) -> None:
    per = f"per {UNIT_NAMES[unit]}"
    budget = float(points.budget[0])
    each = f", {number(budget / count)} for each item" if count else ""
    rows = [
        ("items", f"{count:,}, of which {int(points.dropped[0]):,} are dropped"),
        ("budget", f"{number(budget)} {per}{each}"),
        ("freshness", f"{float(points.freshness[0]):.4f}"),
        ("age", age_in_words(float(points.age[0]), unit)),
    ]
    print_summary(f"least budget for {target}", rows)


def _write(path: str, points: BudgetCurve) -> None:
    from afresh.tables.writing import write_table

    write_table(
        path,
        {
            "budget": "number",
            "freshness": "number",
            "age": "number",
            "marginal": "number",
            "dropped": "count",
        },
        {
            "budget": points.budget,
            "freshness": points.freshness,
            "age": points.age,
            "marginal": points.marginal,
            "dropped": points.dropped,
        },
    )


def _draw(path: str, curve: BudgetCurve, chosen: BudgetCurve | None, unit: str) -> None:
    import numpy as np

    from afresh.plots.line_plot import line_figure
    from afresh.plots.panels import Panel, Series
    from afresh.plots.style import picture_format, render
    from afresh.tables.atomic_output import write_bytes

    per = f"per {UNIT_NAMES[unit]}"
    buys = [Series("best plan", curve.budget, curve.freshness)]
    if chosen is not None:
        buys.append(
            Series(
                f"target, at {number(float(chosen.budget[0]))} {per}", chosen.budget, chosen.freshness, "dots"
            )
        )
    worth = [Series("next unit", curve.budget, curve.marginal)]
    positive = bool(np.all(curve.marginal > 0))
    panels = [
        Panel("What the budget buys", f"budget {per}", "freshness of the copies", tuple(buys), log_x=True),
        Panel(
            "What one more unit gains",
            f"budget {per}",
            "gain in Σ weight·value",
            tuple(worth),
            log_x=True,
            log_y=positive,
        ),
    ]
    write_bytes(path, render(line_figure(panels), picture_format(path)))
