"""``afresh plan`` finds the refresh frequencies that make the best use of a budget, from rates in a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
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
    from afresh.cli.planning.open_hours import WindowsEffect
    from afresh.cli.planning.plan_summary import NearestDropped
    from afresh.cli.planning.planned_items import PlannedItems
    from afresh.cli.planning.view_lags import CheckedLags
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
    unit_s, rate, order = unit_seconds(options.unit), parse_budget(budget), read_order(options.order)
    kinds = choose_columns(columns)
    if options.on is not None or is_dataset(items):
        from afresh.cli.planning.datasets.plan_dataset import plan_dataset

        plan_dataset(items, rate, options, kinds, {"--objective": objective, "--plot": plot})
        return
    from afresh.allocation.allocate import allocate
    from afresh.cli.planning.open_hours import with_windows
    from afresh.cli.planning.plan_summary import plan_title
    from afresh.cli.planning.planned_items import read_items
    from afresh.tables.input_file import InputFile

    as_json = options.as_json
    check_files([items, options.caps, options.views], options.output, plot, as_json=as_json)
    with InputFile(items) as source:
        with ProgressBar(f"reading {source.name}", 1.0) as progress:
            given = read_items(source, caps=options.caps, views=options.views, on_read=progress.reach)
        total = rate.total_per_second(given.rows) * unit_s
        given = given.at_budget(total)
        chosen: dict[str, Any] = {**given.options, "objective": objective, "order": order}
        chosen = with_windows(given, chosen, options.windows or (), unit_s)
        result = allocate(given.rates, total, policy=options.policy, **chosen)
        made = _Made(given, result, chosen, total, options.unit, options.policy)
        dropped = None
        if (target := choose_output(options.output, as_json=as_json)) is not None:
            dropped = _write(target, kinds, made)
        if plot is not None:
            _draw(plot, made)
        if as_json:
            _print_json(made)
        else:
            _print_summary(made, plan_title(options.policy, objective, order), dropped)


@dataclass(frozen=True, slots=True)
class _Made:
    """A plan and what it was made from; ``total`` is the budget in each ``unit`` of time, ``chosen`` the
    options of ``allocate``."""

    given: PlannedItems
    result: Allocation
    chosen: dict[str, Any]
    total: float
    unit: str
    policy: str

    def windows_effect(self) -> WindowsEffect | None:
        from afresh.cli.planning.open_hours import describe_effect

        return describe_effect(self.given, self.total, self.policy, self.chosen)

    def target_lags(self) -> CheckedLags | None:
        from afresh.cli.planning.view_lags import BudgetPerUnit

        given, budget = self.given, BudgetPerUnit(self.total, self.unit, unit_seconds(self.unit))
        return None if given.lags is None else given.lags.check(given.rates, given.options, budget)


def _draw(path: str, made: _Made) -> None:
    from afresh.cli.planning.plan_summary import plan_picture
    from afresh.plots.plan_plot import plan_figure

    picture = plan_picture(made.given, made.result, made.total, made.unit, made.policy, made.chosen)
    write_picture(path, plan_figure(picture))


def _print_json(made: _Made) -> None:
    from afresh.cli.planning.plan_summary import plan_content_lag

    names = ("spend", "freshness", "age", "multiplier", "gap")
    achieved: dict[str, Any] = {"budget": made.total, **{name: getattr(made.result, name) for name in names}}
    if (effect := made.windows_effect()) is not None:
        achieved["windows"] = asdict(effect)
    if (lags := made.target_lags()) is not None:
        achieved["target_lags"] = lags.as_dict()
    if (content_lag := plan_content_lag(made.given, made.result, made.chosen)) is not None:
        achieved["content_lag"] = content_lag
    print_json({**achieved, "items": made.given.count, "dropped": made.result.dropped, "unit": made.unit})


def _print_summary(made: _Made, title: str, dropped: NearestDropped | None) -> None:
    """Print the summary; ``dropped`` are the dropped items that were found while the plan was written."""
    from afresh.cli.planning.plan_summary import NearestDropped, plan_rows, windows_rows

    found, lags = dropped or NearestDropped(), made.target_lags()
    rows = plan_rows(made.given, made.result, found, made.total, made.unit, made.chosen)
    rows += windows_rows(made.windows_effect())
    print_summary(title, rows if lags is None else rows + lags.rows())


def _write(path: str, kinds: dict[str, Kind], made: _Made) -> NearestDropped:
    """Write one row for each item, in batches, so that the whole output is never in memory at once. Return
    the dropped items that a larger budget would keep first."""
    import numpy as np

    from afresh.allocation.explain import STATUSES, explain_parts
    from afresh.cli.planning.plan_summary import NearestDropped
    from afresh.tables.text_columns import as_texts
    from afresh.tables.writing import TableWriter

    statuses = as_texts(STATUSES)
    given, result, dropped = made.given, made.result, NearestDropped()
    details = explain_parts(given.rates, result, **made.chosen)
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
    return dropped
