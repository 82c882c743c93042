"""The options of ``afresh estimate``, one type each."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

PollsFile: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="[POLLS]", help="Columns item, time, changed; - is standard input.")
]
Method: TypeAlias = Annotated[
    str | None,
    typer.Option("--method", metavar="NAME", help="Which estimator; by default grid."),
]
Level: TypeAlias = Annotated[
    float, typer.Option("--level", help="Probability that low and high hold the rate.")
]
Interval: TypeAlias = Annotated[
    str | None,
    typer.Option("--interval", metavar="20d", help="Give rates to plan with, at this mean interval."),
]
Drift: TypeAlias = Annotated[
    str,
    typer.Option("--drift", metavar="auto|off|30d", help="Whether old polls fade, and over which time."),
]
Season: TypeAlias = Annotated[
    str, typer.Option("--season", metavar="auto|off|on", help="Whether the hours of the week differ.")
]
Group: TypeAlias = Annotated[
    str | None,
    typer.Option("--group", metavar="COLUMN", help="Learn a prior for each value of this column of POLLS."),
]
Views: TypeAlias = Annotated[
    str | None, typer.Option("--views", metavar="FILE", help="Add rates of views: columns view, base.")
]
CheckPoisson: TypeAlias = Annotated[
    bool, typer.Option("--check-poisson", help="Say whether the changes look Poisson.")
]
Cohorts: TypeAlias = Annotated[
    str | None,
    typer.Option("--cohorts", metavar="FILE", help="Rates of groups: columns group, elapsed, n, changed."),
]
Lifetimes: TypeAlias = Annotated[
    str | None,
    typer.Option("--lifetimes", metavar="FILE", help="Fit decay functions: columns lifetime, ended."),
]
