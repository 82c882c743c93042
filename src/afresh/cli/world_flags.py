"""The options of ``simulate`` that say how the world is."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Count: TypeAlias = Annotated[
    int | None, typer.Option("--items", metavar="N", help="How many items; 1000 if not given.")
]
Rates: TypeAlias = Annotated[
    str,
    typer.Option(
        "--rates", metavar="SPEC|FILE", help="cho, gamma:mean=0.1,cv=1.5, power:low=0.001,…, or a file."
    ),
]
Span: TypeAlias = Annotated[str, typer.Option("--span", metavar="1y", help="How long the world lasts.")]
Start: TypeAlias = Annotated[str, typer.Option("--start", metavar="TIME", help="When it starts.")]
Changes: TypeAlias = Annotated[
    str, typer.Option("--changes", metavar="KIND", help="poisson, regular:SHAPE or bursty:SHAPE.")
]
SeasonSettings: TypeAlias = Annotated[
    str | None,
    typer.Option("--season", metavar="day=0.8,week=0.5", help="Quiet nights and weekends, from 0 to 1."),
]
DriftSettings: TypeAlias = Annotated[
    str | None,
    typer.Option("--drift", metavar="sd=1,horizon=90d", help="Rates wander; sd is that of their logarithm."),
]
MassEditSettings: TypeAlias = Annotated[
    str | None,
    typer.Option("--mass-edits", metavar="rate=2/y,share=0.5,size=20", help="Groups change together."),
]
Births: TypeAlias = Annotated[float, typer.Option("--births", help="Share of the items that appear.")]
Deaths: TypeAlias = Annotated[float, typer.Option("--deaths", help="Share of the items that vanish.")]
WorldName: TypeAlias = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="NAME", help="Write NAME.changes.csv and NAME.items.csv."),
]
