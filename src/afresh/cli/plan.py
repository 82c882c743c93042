"""``afresh plan``: from rates in a file to the best frequencies, in one command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.files import check_files
from afresh.cli.options import (
    AsJson,
    CapsFile,
    ItemsFile,
    Objective,
    Order,
    Output,
    Plot,
    Unit,
    ViewsFile,
)
from afresh.cli.progress import Progress
from afresh.cli.summary import print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT
from afresh.values.units import parse_budget, unit_seconds

if TYPE_CHECKING:
    from afresh.cli.items import Items
    from afresh.cli.plan_words import NearestDropped
    from afresh.values.results import Allocation

_NUMBERS = ("frequency", "interval", "freshness", "age", "marginal")


def plan(
    items: ItemsFile,
    budget: Annotated[
        str, typer.Option("--budget", metavar="5/d", help="Cost units per time; 0.05/item/d is per row.")
    ],
    unit: Unit = "d",
    objective: Objective = "freshness",
    order: Order = "fixed",
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="optimal, or to compare: uniform, proportional.")
    ] = "optimal",
    caps: CapsFile = None,
    views: ViewsFile = None,
    output: Output = None,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """How often to refresh each item so that the budget buys the most.

    ITEMS has columns item, rate and, as you like, weight, cost, update_cost, decay, group, min_frequency,
    max_frequency. The rows that come out are item, frequency, interval, freshness, age, marginal, status.
    """
    unit_s = unit_seconds(unit)
    asked = parse_budget(budget)
    from afresh.allocation.allocate import allocate
    from afresh.cli.items import read_items
    from afresh.cli.plan_words import NearestDropped, rows_for_people, title_of
    from afresh.tables.atomic_output import write_bytes
    from afresh.tables.input_file import InputFile

    if plot is not None:
        from afresh.cli.plan_picture import picture_of
        from afresh.plots.plan_plot import plan_figure
        from afresh.plots.style import picture_format, render
    check_files([items, caps, views], output, plot, as_json=as_json)
    with InputFile(items) as source:
        with Progress(f"reading {source.name}", 1.0) as progress:
            given = read_items(source, caps=caps, views=views, on_read=progress.reach)
        total = asked.total_per_second(given.rows) * unit_s
        given = given.at_budget(total)
        chosen: dict[str, Any] = {**given.options, "objective": objective, "order": order}
        result = allocate(given.rates, total, policy=policy, **chosen)
        dropped = NearestDropped()
        if output is not None or not as_json:
            _write(output or "-", given, result, chosen, dropped)
        if plot is not None:
            picture = picture_of(given, result, total, unit, policy, chosen)
            write_bytes(plot, render(plan_figure(picture), picture_format(plot)))
        if as_json:
            print_json(_summary(result, total, given.count) | {"unit": unit})
        else:
            words = rows_for_people(given, result, dropped, total, unit, chosen)
            print_summary(title_of(policy, objective, order), words)


def _summary(result: Allocation, total: float, count: int) -> dict[str, Any]:
    return {
        "budget": total,
        "spend": result.spend,
        "freshness": result.freshness,
        "age": result.age,
        "multiplier": result.multiplier,
        "gap": result.gap,
        "items": count,
        "dropped": result.dropped,
    }


def _write(
    path: str, given: Items, result: Allocation, chosen: dict[str, Any], dropped: NearestDropped
) -> None:
    """One row for each item, a batch at a time: a plan's details are never all in memory."""
    import numpy as np
    import pyarrow as pa

    from afresh.allocation.explain import STATUSES, explain_parts
    from afresh.tables.writing import TableWriter

    words = pa.array(STATUSES, pa.large_string())
    kinds = {"item": TEXT, **dict.fromkeys(_NUMBERS, NUMBER), "status": TEXT}
    details = explain_parts(given.rates, result, **chosen)
    start = 0
    with Progress(f"writing {path}", given.count) as progress, TableWriter(path, kinds) as writer:
        for names in given.names():
            part = slice(start, start + len(names))
            detail = details(part)
            dropped.look(names, start, detail)
            frequency = np.asarray(result.frequency[part], dtype=np.float64)
            with np.errstate(divide="ignore", over="ignore"):
                interval = 1 / frequency
            writer.write(
                {
                    "item": names,
                    "frequency": frequency,
                    "interval": interval,
                    "freshness": detail.freshness,
                    "age": detail.age,
                    "marginal": detail.marginal,
                    "status": words.take(pa.array(detail.status)),
                }
            )
            start = part.stop
            progress.reach(start)
