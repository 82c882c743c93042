"""What a replay found: one JSON object for programs, one table per budget for people, visits, pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from afresh.cli.summary import number
from afresh.values.units import UNIT_NAMES, UNIT_SECONDS, format_duration

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Figures:
    """One policy's figures over a stretch of time: ``low`` and ``high`` hold its freshness with 90 %.

    ``age_s`` mean age of the copies, ``missed`` mean number of changes that a copy lacks, ``captured`` the
    share of the oracle's gain over uniform, by the objective (NaN where there is none to gain).
    """

    freshness: float
    low: float
    high: float
    age_s: float
    missed: float
    visits: int
    captured: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One policy at one budget (cost units per second): figures of the whole window and after the warm-up."""

    policy: str
    budget_per_s: float
    whole: Figures
    after: Figures
    visit_item: npt.NDArray[np.int64]
    visit_time: npt.NDArray[np.float64]
    visit_changed: npt.NDArray[np.bool_]


def as_object(outcome: Outcome, unit: str) -> dict[str, Any]:
    """One policy for programs: the whole window at the top, the same keys again after the warm-up."""
    return {
        "policy": outcome.policy,
        "budget": outcome.budget_per_s * UNIT_SECONDS[unit],
        **_figures(outcome.whole, unit),
        "after_warm_up": _figures(outcome.after, unit),
    }


def _figures(figures: Figures, unit: str) -> dict[str, Any]:
    return {
        "freshness": figures.freshness,
        "freshness_low": figures.low,
        "freshness_high": figures.high,
        "age": figures.age_s / UNIT_SECONDS[unit],
        "missed": figures.missed,
        "visits": figures.visits,
        "captured": figures.captured,
    }


def print_tables(outcomes: Sequence[Outcome], unit: str, title: str) -> None:
    """One table for each budget on stderr, the freshest policy after the warm-up first."""
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True, highlight=False)
    for budget, group in groupby(outcomes, key=lambda outcome: outcome.budget_per_s):
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
        for name in (
            "policy",
            "freshness",
            "interval",
            "age",
            "missed",
            "visits",
            "captured",
            "whole",
        ):
            table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
        for outcome in sorted(group, key=lambda one: -one.after.freshness):
            table.add_row(*_row(outcome))
        console.print(table)


def _row(outcome: Outcome) -> Iterable[str]:
    after = outcome.after
    return (
        outcome.policy,
        f"{after.freshness:.2%}",
        f"{after.low:.1%}–{after.high:.1%}".replace("%", ""),
        format_duration(after.age_s),
        number(after.missed),
        f"{after.visits:,}",
        "–" if math.isnan(after.captured) else f"{after.captured:.0%}",
        f"{outcome.whole.freshness:.2%}",
    )


def write_visits(path: str, outcomes: Sequence[Outcome], names: Any) -> None:
    """Every visit of every policy: policy, item, time, changed; with several budgets, budget_per_s too."""
    import pyarrow as pa

    from afresh.tables.writing import TableWriter

    several = len({outcome.budget_per_s for outcome in outcomes}) > 1
    kinds: dict[str, Any] = {"policy": "text", "item": "text", "time": "time", "changed": "flag"}
    if several:
        kinds["budget_per_s"] = "number"
    with TableWriter(path, kinds) as writer:
        for outcome in outcomes:
            count = outcome.visit_item.size
            rows: Mapping[str, Any] = {
                "policy": pa.repeat(pa.scalar(outcome.policy, pa.large_string()), count),
                "item": names.take(pa.array(outcome.visit_item)),
                "time": outcome.visit_time,
                "changed": outcome.visit_changed,
            }
            further = {"budget_per_s": pa.repeat(outcome.budget_per_s, count)} if several else {}
            writer.write({**rows, **further})
