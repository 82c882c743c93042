"""Arguments and options that several commands share, declared once."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from afresh.values.errors import UsageError
from afresh.values.objective_names import OBJECTIVES_IN_WORDS
from afresh.values.units import parse_duration

ItemsFile: TypeAlias = Annotated[
    str, typer.Argument(metavar="ITEMS", help="CSV, Parquet or JSONL, also .gz or .zst; - is standard input.")
]
Unit: TypeAlias = Annotated[
    str,
    typer.Option("--unit", metavar="s|m|h|d|w|y", help="Unit of rates, frequencies, intervals and ages."),
]
Objective: TypeAlias = Annotated[
    str,
    typer.Option("--objective", metavar="NAME", help=f"What to optimise: {OBJECTIVES_IN_WORDS}."),
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


def read_duration(option: str, text: str | None, default: float) -> float:
    """The seconds that an option says; ``default`` where it is not given.

    >>> read_duration("--for", "10m", 0.0), read_duration("--for", None, 0.0)
    (600.0, 0.0)
    >>> read_duration("--for", "soon", 0.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --for: 'soon' is not a duration: give ...
    """
    if text is None:
        return default
    try:
        return parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None
