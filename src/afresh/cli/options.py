"""Arguments and options that several commands share, declared once."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

ItemsFile: TypeAlias = Annotated[
    str, typer.Argument(metavar="ITEMS", help="CSV, Parquet or JSONL, also .gz or .zst; - is standard input.")
]
Unit: TypeAlias = Annotated[
    str,
    typer.Option("--unit", metavar="s|m|h|d|w|y", help="Unit of rates, frequencies, intervals and ages."),
]
Objective: TypeAlias = Annotated[
    str,
    typer.Option(
        "--objective", metavar="NAME", help="What to optimise: freshness, age, harmonic, missed or lag."
    ),
]
Order: TypeAlias = Annotated[
    str,
    typer.Option(
        "--order", metavar="NAME", help="fixed: even intervals. random: at random moments (memoryless)."
    ),
]
CapsFile: TypeAlias = Annotated[
    str | None,
    typer.Option("--caps", metavar="FILE", help="Most that each group may spend: columns group, cap."),
]
ViewsFile: TypeAlias = Annotated[
    str | None,
    typer.Option("--views", metavar="FILE", help="Plan views over base items: columns view, base."),
]
Output: TypeAlias = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given."),
]
Plot: TypeAlias = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw a picture, as .png or .svg.")
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one summary object on standard output instead of the rows.")
]
