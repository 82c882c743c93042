"""What a replay found: one JSON object for programs, one table per budget for people, visits, pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from afresh.cli.summary import number
from afresh.values.units import UNIT_NAMES, UNIT_SECONDS, format_duration

if TYPE_CHECKING:
    from afresh.replay.compare import PeriodScores, ReplayResult

Cell: TypeAlias = "Callable[[ReplayResult], str]"
# Metrics that a table shows only where they are the objective, or known.
_SPECIAL: Mapping[str, Cell] = {
    "lag": lambda result: format_duration(result.after.scores.lag),
    "harmonic": lambda result: number(result.after.scores.harmonic),
    "error": lambda result: number(result.after.scores.error),
}


def as_object(result: ReplayResult, unit: str) -> dict[str, Any]:
    """One policy for programs: the whole window at the top, the same keys again after the warm-up."""
    return {
        "policy": result.policy,
        "budget": result.budget * UNIT_SECONDS[unit],
        **_figures(result.whole, unit),
        "after_warm_up": _figures(result.after, unit),
    }


def _figures(part: PeriodScores, unit: str) -> dict[str, Any]:
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
    }
    return figures if math.isnan(found.error) else {**figures, "error": found.error}


def print_tables(
    results: Sequence[ReplayResult], unit: str, title: str, objective: str = "freshness"
) -> None:
    """One table for each budget on stderr, the freshest policy after the warm-up first."""
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True, highlight=False)
    columns = _columns(results, objective)
    for budget, group in groupby(results, key=lambda result: result.budget):
        per = f"{number(budget * UNIT_SECONDS[unit])} per {UNIT_NAMES[unit]}"
        table = Table(
            title=f"{title}, budget {per}",
            title_justify="left",
            title_style="bold",
            caption="after the warm-up (last: whole window); intervals hold 90 %",
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
    """Name and cell of every column."""
    shown = {objective}
    if any(not math.isnan(result.after.scores.error) for result in results):
        shown.add("error")
    return {
        "policy": lambda result: result.policy,
        "freshness": lambda result: f"{result.after.scores.freshness:.2%}",
        "interval": _interval,
        "age": lambda result: format_duration(result.after.scores.age),
        "missed": lambda result: number(result.after.scores.missed),
        **{name: cell for name, cell in _SPECIAL.items() if name in shown},
        "visits": lambda result: f"{result.after.scores.visits:,}",
        "captured": lambda result: _share(result.after.captured),
        "whole": lambda result: f"{result.whole.scores.freshness:.2%}",
    }


def _interval(result: ReplayResult) -> str:
    found = result.after.scores
    return f"{found.low:.1%}–{found.high:.1%}".replace("%", "")


def _share(captured: float) -> str:
    return "–" if math.isnan(captured) else f"{captured:.0%}"


def write_visits(path: str, results: Sequence[ReplayResult], names: Any) -> None:
    """Every visit of every policy: policy, item, time, changed; with several budgets, budget_per_s too."""
    import pyarrow as pa

    from afresh.tables.writing import TableWriter

    several = len({result.budget for result in results}) > 1
    kinds: dict[str, Any] = {"policy": "text", "item": "text", "time": "time", "changed": "flag"}
    if several:
        kinds["budget_per_s"] = "number"
    with TableWriter(path, kinds) as writer:
        for result in results:
            visits = result.visits
            rows: Mapping[str, Any] = {
                "policy": pa.repeat(pa.scalar(result.policy, pa.large_string()), visits.item.size),
                "item": names.take(pa.array(visits.item)),
                "time": visits.time,
                "changed": visits.changed,
            }
            further = {"budget_per_s": pa.repeat(result.budget, visits.item.size)} if several else {}
            writer.write({**rows, **further})
