"""Prints data and reports on standard output, notes and summaries on standard error; commands print by this.

Texts from outside (keys, messages) are made safe for the terminal, and are never taken for markup of rich."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from afresh.values.printable_text import hide_credentials, printable, printable_json
from afresh.values.units import UNIT_SECONDS, format_duration


def print_json(summary: Mapping[str, Any]) -> None:
    """Print a JSON object on one line of standard output; infinity and NaN become null.

    >>> print_json({"freshness": 0.5, "age": float("inf")})
    {"freshness": 0.5, "age": null}
    """
    typer.echo(printable_json(json.dumps(to_json_value(summary), ensure_ascii=False, allow_nan=False)))


def to_json_value(value: Any) -> Any:
    """Return ``value`` with every infinity and NaN replaced by None, because JSON has no such numbers.

    >>> to_json_value({"curve": [{"age": float("inf")}]})
    {'curve': [{'age': None}]}
    """
    if isinstance(value, Mapping):
        return {name: to_json_value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_error(message: str) -> None:
    """Print an error on standard error, after the prefix ``afresh:``."""
    typer.secho("afresh: ", fg="red", nl=False, err=True)
    print_note(message)


def print_note(text: str) -> None:
    """Print a text for people on standard error, without the credentials of addresses."""
    typer.echo(printable(hide_credentials(text), lines=True), err=True)


def print_data(text: str) -> None:
    """Print a line for programs on standard output: verbatim, unless standard output is a terminal."""
    typer.echo(printable(text) if sys.stdout.isatty() else text)


def print_report(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print ``rows`` of (name, value) as a table on standard output, as the answer of a command."""
    _print_table(title, rows, stderr=False)


def print_summary(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print ``rows`` of (name, value) as a table on standard error, beside data on standard output."""
    _print_table(title, rows, stderr=True)


def _print_table(title: str, rows: Sequence[tuple[str, str]], *, stderr: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(printable(title)),
        title_justify="left",
        title_style="bold",
        box=None,
        show_header=False,
        pad_edge=False,
    )
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in rows:
        table.add_row(Text(printable(name)), Text(printable(value, lines=True)))
    console = Console(stderr=stderr, highlight=False)
    with console.capture() as captured:
        console.print(table)
    # rich fills every line up with blanks, which are in the way in a file.
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()), err=stderr)


def format_age(age: float, unit: str) -> str:
    """Format an age for people. ``age`` is in ``unit`` (``s``, ``m``, ``h``, ``d``, …).

    >>> format_age(0.5, "d"), format_age(float("inf"), "d")
    ('12 h', 'unbounded: some items are never polled')
    """
    if math.isinf(age):
        return "unbounded: some items are never polled"
    return format_duration(age * UNIT_SECONDS[unit])


def format_number(value: float) -> str:
    """Format a number for people, with four significant digits.

    >>> format_number(0.57284), format_number(12345.6), format_number(1e300), format_number(float("inf"))
    ('0.5728', '12,350', '1e+300', 'infinite')
    """
    if math.isinf(value):
        return "infinite"
    text = f"{value:.4g}"
    if "e" in text and 1 <= abs(value) < 1e15:
        text = f"{float(text):.0f}"
    return f"{float(text):,.0f}" if abs(value) >= 10000 and "e" not in text else text
