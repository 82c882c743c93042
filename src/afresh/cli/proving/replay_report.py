"""Writes the results of a replay: JSON for programs, a table for each budget, all polls, and a picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from afresh.cli.files import write_picture
from afresh.cli.summary import format_number
from afresh.values.units import UNIT_NAMES, UNIT_SECONDS, format_duration

if TYPE_CHECKING:
    from afresh.plots.replay_plot import FreshnessByBudget
    from afresh.replay.change_history import ChangeHistory
    from afresh.replay.compare import PeriodScores, ReplayResult
    from afresh.tables.text_columns import Texts

_WIDTH = 160
_PLOT_POINTS = 90  # points of a line over time: enough to show seasons, and few enough for a clear line
_CAPTION = (
    "after the warm-up (last: whole window); intervals hold 90 %;"
    " needs: times the requests with which uniform polling would do as well"
)
Cell: TypeAlias = "Callable[[ReplayResult], str]"
# A table shows these scores only if they are the objective; it also shows the error whenever it is known.
_SPECIAL: Mapping[str, Cell] = {
    "lag": lambda result: format_duration(result.after.scores.lag),
    "harmonic": lambda result: format_number(result.after.scores.harmonic),
    "error": lambda result: format_number(result.after.scores.error),
}


def as_object(result: ReplayResult, unit: str) -> dict[str, Any]:
    """Return one result as a JSON object, with the scores of the whole period and after the warm-up."""
    return {
        "policy": result.policy,
        "budget": result.budget * UNIT_SECONDS[unit],
        **_score_fields(result.whole, unit),
        "after_warm_up": _score_fields(result.after, unit),
        **({} if result.first is None else {"first_rounds": _score_fields(result.first, unit)}),
    }


def _score_fields(part: PeriodScores, unit: str) -> dict[str, Any]:
    found = part.scores
    figures = {
        "freshness": found.freshness,
        "freshness_low": found.low,
        "freshness_high": found.high,
        "age": found.age / UNIT_SECONDS[unit],
        "missed": found.missed,
        "lag": found.lag / UNIT_SECONDS[unit],
        "harmonic": found.harmonic,
        "visits": found.visits,
        "captured": part.captured,
        "uniform_needs": part.uniform_needs,
    }
    return figures if math.isnan(found.error) else {**figures, "error": found.error}


def print_tables(
    results: Sequence[ReplayResult], unit: str, title: str, objective: str = "freshness"
) -> None:
    """Print one table for each budget on standard error, with one row for each policy, the freshest first."""
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH)  # a file has no width at which text must be cut
    columns = _columns(results, objective)
    for budget, group in groupby(results, key=lambda result: result.budget):
        per = f"{format_number(budget * UNIT_SECONDS[unit])} per {UNIT_NAMES[unit]}"
        table = Table(
            title=f"{title}, budget {per}",
            title_justify="left",
            title_style="bold",
            caption=_CAPTION,
            caption_justify="left",
            box=None,
            header_style="dim",
            padding=(0, 2, 0, 0),
            pad_edge=False,
        )
        for name in columns:
            table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
        for result in sorted(group, key=lambda one: -one.after.scores.freshness):
            table.add_row(*(cell(result) for cell in columns.values()))
        console.print(table)


def _columns(results: Sequence[ReplayResult], objective: str) -> dict[str, Cell]:
    """Return the columns of a table as a dictionary from name to the function that returns a cell's text."""
    shown = {objective}
    if any(not math.isnan(result.after.scores.error) for result in results):
        shown.add("error")
    return {
        "policy": lambda result: result.policy,
        "freshness": lambda result: f"{result.after.scores.freshness:.2%}",
        "interval": lambda result: (
            f"{100 * result.after.scores.low:.1f}–{100 * result.after.scores.high:.1f}"
        ),
        "age": lambda result: format_duration(result.after.scores.age),
        "missed": lambda result: format_number(result.after.scores.missed),
        **{name: cell for name, cell in _SPECIAL.items() if name in shown},
        "visits": lambda result: f"{result.after.scores.visits:,}",
        "captured": lambda result: _or_dash(result.after.captured, "{:.0%}"),
        "needs": lambda result: _or_dash(result.after.uniform_needs, "{:.2f}×"),
        "whole": lambda result: f"{result.whole.scores.freshness:.2%}",
    } | ({"first rounds": _format_first} if results[0].first is not None else {})


def _format_first(result: ReplayResult) -> str:
    first = result.first
    return "" if first is None else f"{first.scores.freshness:.2%}, {_or_dash(first.captured, '{:.0%}')}"


def _or_dash(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value)


def write_visits(path: str, results: Sequence[ReplayResult], names: Texts) -> None:
    """Write every poll of every policy. If there are several budgets, the column budget_per_s is added."""
    from afresh.tables.text_columns import repeat_text
    from afresh.tables.writing import TableWriter

    several = len({result.budget for result in results}) > 1
    kinds: dict[str, Any] = {"policy": "text", "item": "text", "time": "time", "changed": "flag"}
    if several:
        kinds["budget_per_s"] = "number"
    with TableWriter(path, kinds) as writer:
        for result in results:
            visits = result.visits
            rows: Mapping[str, Any] = {
                "policy": repeat_text(result.policy, visits.item.size),
                "item": names.take(visits.item),
                "time": visits.time,
                "changed": visits.changed,
            }
            further = {"budget_per_s": np.full(visits.item.size, result.budget)} if several else {}
            writer.write({**rows, **further})


def draw_replay(
    path: str, results: Sequence[ReplayResult], history: ChangeHistory, warm_up_end: float, unit: str
) -> None:
    """Draw the freshness over time at the smallest budget and, if there are several, over the budgets.

    ``results`` are sorted by budget; ``path`` ends in .png or .svg; ``warm_up_end`` is in Unix seconds."""
    from afresh.plots.replay_plot import FreshnessOverTime, replay_figure
    from afresh.replay.scores import freshness_course, stale_spans

    edges = np.linspace(history.start, history.end, _PLOT_POINTS + 1)
    courses = []
    for result in results:
        if result.budget == results[0].budget:
            spans = stale_spans(
                history.change_item, history.time, result.visits.item, result.visits.time, history.end
            )
            course = freshness_course(spans, edges, history.weight)
            courses.append(FreshnessOverTime(result.policy, edges, course, result.after.scores.freshness))
    figure = replay_figure(courses, warm_up_end, _lines_over_budgets(results, unit), unit=unit)
    write_picture(path, figure)


def _lines_over_budgets(results: Sequence[ReplayResult], unit: str) -> list[FreshnessByBudget]:
    """Return for each policy its line of freshness over budget, or no lines if there is only one budget."""
    from afresh.plots.replay_plot import FreshnessByBudget

    if len({result.budget for result in results}) < 2:
        return []
    lines = []
    for policy in dict.fromkeys(result.policy for result in results):
        own = [(one.budget, one.after.scores) for one in results if one.policy == policy]
        points = [(budget, found.freshness, found.low, found.high) for budget, found in own]
        budgets, *freshness = np.array(points).T
        lines.append(FreshnessByBudget(policy, budgets * UNIT_SECONDS[unit], *freshness))
    return lines
