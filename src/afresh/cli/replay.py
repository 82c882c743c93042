"""``afresh replay``: what each policy would have made of a true history, one poll bit at a time."""

from __future__ import annotations

from typing import Annotated

import typer

from afresh.cli.moments import parse_moment
from afresh.cli.options import CapsFile, Objective, Plot, Unit
from afresh.cli.replay_options import (
    A_THIRD,
    DEFAULT_POLICIES,
    AsJson,
    Budgets,
    Notices,
    Policies,
    Seed,
    Visits,
    WarmUp,
    Windows,
    asked_for,
)
from afresh.values.errors import UsageError


def replay(
    changes: Annotated[
        str, typer.Argument(metavar="CHANGES", help="Every change: columns item, time; - is standard input.")
    ],
    items: Annotated[
        str | None,
        typer.Option("--items", metavar="ITEMS", help="Every item, also those that never change."),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="TIME", help="When every copy is fresh.")
    ] = None,
    end: Annotated[str | None, typer.Option("--end", metavar="TIME", help="When the history ends.")] = None,
    budget: Budgets = None,
    policy: Policies = DEFAULT_POLICIES,
    objective: Objective = "freshness",
    warm_up: WarmUp = A_THIRD,
    windows: Windows = None,
    caps: CapsFile = None,
    notices: Notices = None,
    visits: Visits = None,
    plot: Plot = None,
    unit: Unit = "d",
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Run policies on a recorded history under one budget and measure how fresh they keep the copies.

    ITEMS has a column item and, as you like, weight, cost, group. Times are Unix seconds or ISO 8601.
    """
    if budget is None:
        raise UsageError("give a budget, such as --budget 0.05/item/d")
    window = parse_moment("--start", start), parse_moment("--end", end)
    asked = asked_for(
        budget,
        policy,
        inputs=[changes, items, caps, notices],
        objective=objective,
        warm_up=warm_up,
        windows=windows,
        caps=caps,
        notices=notices,
        visits=visits,
        plot=plot,
        unit=unit,
        seed=seed,
        as_json=as_json,
    )
    from afresh.cli.replay_run import replay_and_report
    from afresh.histories.recorded import read_recorded

    replay_and_report(read_recorded(changes, items, *window), asked)
