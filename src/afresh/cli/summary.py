"""Summaries: one JSON object for programs on stdout, one small table for people on stderr."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from afresh.values.units import UNIT_SECONDS, format_duration


def print_json(summary: Mapping[str, Any]) -> None:
    """One object on one line; infinity and NaN are null.

    >>> print_json({"freshness": 0.5, "age": float("inf")})
    {"freshness": 0.5, "age": null}
    """
    typer.echo(json.dumps(plain(summary), ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """``value`` as JSON can say it, at any depth.

    >>> plain({"curve": [{"age": float("inf")}]})
    {'curve': [{'age': None}]}
    """
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_summary(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """A two-column table on stderr."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False
    )
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in rows:
        table.add_row(name, Text(value))
    Console(stderr=True, highlight=False).print(table)


def age_in_words(age: float, unit: str) -> str:
    """An age given in ``unit``, for people.

    >>> age_in_words(0.5, "d"), age_in_words(float("inf"), "d")
    ('12 h', 'infinite: what is never refreshed ages for ever')
    """
    if math.isinf(age):
        return "infinite: what is never refreshed ages for ever"
    return format_duration(age * UNIT_SECONDS[unit])


def number(value: float) -> str:
    """Four significant digits for people.

    >>> number(0.57284), number(12345.6), number(5.0), number(1e300), number(float("inf"))
    ('0.5728', '12,350', '5', '1e+300', 'infinite')
    """
    if math.isinf(value):
        return "infinite"
    text = f"{value:.4g}"
    if "e" in text and 1 <= abs(value) < 1e15:
        text = f"{float(text):.0f}"
    return f"{float(text):,.0f}" if abs(value) >= 10000 and "e" not in text else text
