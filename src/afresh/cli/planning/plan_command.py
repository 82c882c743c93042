"""``afresh plan`` finds the refresh frequencies that make the best use of a budget, from rates in a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from afresh.cli.files import check_files, choose_output, write_picture
from afresh.cli.options import ItemsFile, Objective, PlanningOptions, Plot, read_order, with_option_groups
from afresh.cli.planning.plan_columns import choose_columns
from afresh.cli.progress import ProgressBar
from afresh.cli.summary import print_json, print_summary
from afresh.tables.columns import Kind
from afresh.tables.dataset import is_dataset
from afresh.values.units import parse_budget, unit_seconds

if TYPE_CHECKING:
    from afresh.cli.planning.plan_summary import NearestDropped
    from afresh.cli.planning.planned_items import PlannedItems
    from afresh.values.results import Allocation


@with_option_groups
def plan(
    items: ItemsFile,
    budget: Annotated[str, Option(metavar="5/d", help="Cost units per time; 0.05/item/d is per row.")],
    options: PlanningOptions,
    objective: Objective = "freshness",
    columns: Annotated[
        str | None, Option(metavar="item,frequency", help="The columns to write; by default all.")
    ] = None,
    plot: Plot = None,
) -> None:
    """Find how often to refresh each item to make the best use of the budget.

    ITEMS is a file, or a dataset of many, such as 'items/*.parquet'. It has the columns item, rate and
    optionally weight, cost, update_cost, decay, group, min_frequency, max_frequency. The output has the
    columns item, frequency, interval, freshness, age, marginal, status.
    """
    unit, policy, as_json = options.unit, options.policy, options.as_json
    unit_s, rate, order = unit_seconds(unit), parse_budget(budget), read_order(options.order)
    kinds = choose_columns(columns)
    if options.on is not None or is_dataset(items):
        from afresh.cli.planning.datasets.plan_dataset import plan_dataset

        plan_dataset(items, rate, options, kinds, {"--objective": objective, "--plot": plot})
        return
    from afresh.allocation.allocate import allocate
    from afresh.cli.planning.open_hours import describe_effect, with_windows
    from afresh.cli.planning.plan_summary import (
        NearestDropped,
        plan_content_lag,
        plan_picture,
        plan_rows,
        plan_title,
        windows_rows,
    )
    from afresh.cli.planning.planned_items import read_items
    from afresh.cli.planning.view_lags import BudgetPerUnit
    from afresh.tables.input_file import InputFile

    check_files([items, options.caps, options.views], options.output, plot, as_json=as_json)
    with InputFile(items) as source:
        with ProgressBar(f"reading {source.name}", 1.0) as progress:
            given = read_items(source, caps=options.caps, views=options.views, on_read=progress.reach)
        total = rate.total_per_second(given.rows) * unit_s
        given = given.at_budget(total)
        chosen: dict[str, Any] = {**given.options, "objective": objective, "order": order}
        chosen = with_windows(given, chosen, options.windows or (), unit_s)
        result = allocate(given.rates, total, policy=policy, **chosen)
        dropped = NearestDropped()
        if (target := choose_output(options.output, as_json=as_json)) is not None:
            _write(target, kinds, given, result, chosen, dropped)
        if plot is not None:
            from afresh.plots.plan_plot import plan_figure

            write_picture(plot, plan_figure(plan_picture(given, result, total, unit, policy, chosen)))
        effect = describe_effect(given, total, policy, chosen)
        budget_per_unit = BudgetPerUnit(total, unit, unit_s)
        lags = None if given.lags is None else given.lags.check(given.rates, given.options, budget_per_unit)
        if as_json:
            names = ("spend", "freshness", "age", "multiplier", "gap")
            achieved = {"budget": total, **{name: getattr(result, name) for name in names}}
            achieved |= {} if effect is None else {"windows": asdict(effect)}
            achieved |= {} if lags is None else {"target_lags": lags.as_dict()}
            content_lag = plan_content_lag(given, result, chosen)
            achieved |= {} if content_lag is None else {"content_lag": content_lag}
            print_json({**achieved, "items": given.count, "dropped": result.dropped, "unit": unit})
        else:
            rows = plan_rows(given, result, dropped, total, unit, chosen) + windows_rows(effect)
            rows += [] if lags is None else lags.rows()
            print_summary(plan_title(policy, objective, order), rows)


def _write(
    path: str,
    kinds: dict[str, Kind],
    given: PlannedItems,
    result: Allocation,
    chosen: dict[str, Any],
    dropped: NearestDropped,
) -> None:
    """Write one row for each item, in batches, so that the whole output is never in memory at once."""
    import numpy as np

    from afresh.allocation.explain import STATUSES, explain_parts
    from afresh.tables.text_columns import as_texts
    from afresh.tables.writing import TableWriter

    statuses = as_texts(STATUSES)
    details = explain_parts(given.rates, result, **chosen)
    start = 0
    with ProgressBar(f"writing {path}", given.count) as progress, TableWriter(path, kinds) as writer:
        for names in given.names():
            part = slice(start, start + len(names))
            detail = details(part)
            dropped.update(names, start, detail)
            frequency = np.asarray(result.frequency[part], dtype=np.float64)
            with np.errstate(divide="ignore", over="ignore"):
                interval = 1 / frequency
            columns: dict[str, Any] = {
                "item": names,
                "frequency": frequency,
                "interval": interval,
                "freshness": detail.freshness,
            }
            columns |= {"age": detail.age, "marginal": detail.marginal}
            columns |= {"status": statuses.take(detail.status)}
            writer.write({name: columns[name] for name in kinds})
            start = part.stop
            progress.reach(start)
