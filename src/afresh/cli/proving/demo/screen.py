"""Prints the output of the demo: a growing chart on a terminal, else lines of text; at the end a table."""

from __future__ import annotations

import math
import os
import shutil
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from afresh.cli.proving.demo.comparison import PAGES, ROUND_D, SPAN_D, DemoResult
from afresh.cli.proving.demo.site_scores import Theory

LOW, HIGH, ROWS = 0.50, 0.66, 17  # each row is 0.01 of freshness; chart and legend fit in 24 rows
_MARKS = (("·", "yellow"), ("●", "bold green"))
_SMOOTH = 12  # samples in a moving mean: three seconds
_WIDEST = 100
_TEXT_LINES = 10  # printed instead of a chart if there is no terminal
_APART = 0.03  # if the two captured shares differ by less, only one is printed
_ROUNDS_ENOUGH = 5.0  # with fewer polls of each page on average, the captured share would be chance
_NEXT = """\
For your own site:
{on_path}  afresh init mirror && cd mirror
  afresh add --discover https://your.site/
  afresh run --web"""


class Screen:
    """Shows the progress of the comparison on standard error."""

    def __init__(self, *, browser: bool, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._browser = browser
        self._lines: dict[str, list[float]] = {"uniform": [], "afresh": []}
        self._days: list[float] = []
        self._next_line_d, self._days_per_s = 0.0, 1.0
        self._live = Live(console=self._console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def on_start(self) -> None:
        """Print what the demo will show, before the copies fetch every page for the first time."""
        self._console.print(
            f"A site of {PAGES:,} pages on this machine: some change daily, some once a year.\n"
            f"Two copies of it, each allowed one request per page and {ROUND_D:g} days:\n"
            "[yellow]uniform[/] asks for all equally often, [green]afresh[/] learns from nothing.\n"
            "First both fetch every page once …"
        )

    def on_measurement(self, theory: Theory, days_per_s: float, span_s: float, dashboard: str) -> None:
        """Print the address of the dashboard, and open it in a browser if there is a desktop. The measurement
        begins now and lasts ``span_s`` seconds."""
        self._theory, self._days_per_s, self._span_d = theory, days_per_s, span_s * days_per_s
        self._console.print(
            f"A second is {days_per_s:.1f} days there; this takes {span_s:.0f} s.\n"
            f"The dashboard of afresh's copy meanwhile: {dashboard}"
        )
        if self._browser and self._console.is_terminal and _has_desktop():
            webbrowser.open(dashboard)

    def on_sample(self, day: float, fresh: tuple[float, ...]) -> None:
        """Draw one more sample: the share of fresh pages of each copy (``fresh``) on this site-day."""
        for values, value in zip(self._lines.values(), fresh, strict=True):
            values.append(value)
        self._days.append(day)
        now = {name: moving_means(values[-_SMOOTH:], _SMOOTH)[-1] for name, values in self._lines.items()}
        words = f"day {day:3.0f}   uniform {now['uniform']:.3f}   afresh {now['afresh']:.3f}"
        if self._live.is_started:
            self._live.update(self._draw(words), refresh=True)
        elif day >= self._next_line_d:
            self._next_line_d += self._span_d / _TEXT_LINES
            self._console.print(words)

    def _draw(self, words: str) -> Group:
        lines = {name: moving_means(values, _SMOOTH) for name, values in self._lines.items()}
        optimum, width = self._theory.optimum, min(self._console.width, _WIDEST)
        picture = draw_chart(lines, self._days, self._span_d, optimum, width)
        legend = f"[yellow]· uniform[/]  [green]● afresh[/]  [dim]╌ optimum {optimum:.3f}[/]    {words}"
        return Group(picture, Text.from_markup(legend))

    def print_result(self, found: DemoResult) -> None:
        """Print the table of results, what they mean, and what to do next."""
        title = f"The last {found.days:.0f} days, as the site itself measured them"
        table = Table(title=title, title_justify="left", title_style="bold")
        table.add_column("")
        for name in ("pages right", "age", f"requests ({found.budget:,.0f} allowed)"):
            table.add_column(name, justify="right")
        for name, score in (("uniform", found.uniform), ("afresh", found.afresh)):
            table.add_row(name, f"{score.freshness:.1%}", f"{score.age_d:.1f} days", f"{score.requests:,}")
        table.add_section()
        known = found.theory
        table.add_row("uniform, in theory", f"{known.uniform:.1%}", f"{known.uniform_age_d:.1f} days", "")
        table.add_row("optimum, rates known", f"{known.optimum:.1%}", "unbounded", "")
        self._console.print(table)
        self._console.print(_verdict(found, self._days_per_s))
        self._console.print(_NEXT.format(on_path=_activation_line()))


def _activation_line() -> str:
    """Return the shell line that puts ``afresh`` on the path, or "" if it is on the path already."""
    if shutil.which("afresh") is not None:
        return ""
    return f"  . {Path(sys.prefix) / 'bin' / 'activate'}\n"


def _verdict(found: DemoResult, days_per_s: float) -> str:
    """Describe the share that afresh captured, or say that the time was too short to measure it."""
    rounds = found.days / ROUND_D
    if rounds < _ROUNDS_ENOUGH:
        return (
            f"Too short to tell: before these days each page was asked for {rounds:.1f} times on average, "
            f"and afresh learns from nothing. {SPAN_D:g} days of the site are enough: "
            f"[bold]afresh demo --for {math.ceil(SPAN_D / days_per_s)}s[/] at this machine's pace."
        )
    measured, equal = found.captured, found.captured_at_equal_requests
    shares = f"afresh took {measured:.0%} of what knowing every rate would gain over uniform"
    if abs(measured - equal) > _APART:
        shares += f", as measured; {equal:.0%} at equal requests, which this machine was too busy for"
    return (
        f"{shares}. Pages that change too often to be kept right are left to age; "
        '[bold]objective = "age"[/] would not.'
    )


def _has_desktop() -> bool:
    """Return whether there is a desktop. Without one, a text browser could open inside this terminal."""
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def moving_means(values: Sequence[float], over: int) -> list[float]:
    """Return, for each value, the mean of it and the ``over`` − 1 values before it (fewer at the start).

    >>> moving_means([1.0, 2.0, 3.0, 4.0], 2)
    [1.0, 1.5, 2.5, 3.5]
    """
    return [sum(values[max(0, end - over) : end]) / min(over, end) for end in range(1, len(values) + 1)]


def draw_chart(
    lines: Mapping[str, Sequence[float]], times: Sequence[float], end: float, level: float, width: int
) -> Text:
    """Draw ``lines`` over ``times``, and a horizontal line at ``level``, as ``width`` columns of characters.

    The vertical axis shows freshness, the horizontal axis time from 0 to ``end``.

    >>> drawn = draw_chart({"a": [0.5, 0.62]}, [0.0, 5.0], 10.0, 0.65, 20)
    >>> drawn.plain.splitlines()[4].rstrip()
    '0.62 ┤       ·'
    """
    columns = max(width - 7, 10)
    cells = [[(" ", "")] * columns for _ in range(ROWS)]
    cells[_row(level)] = [("╌", "dim")] * columns
    for cell, values in zip(_MARKS, lines.values(), strict=False):
        for time, value in zip(times, values, strict=True):
            column = min(int(time / end * columns), columns - 1)
            cells[_row(value)][column] = cell
    labels = [f"{HIGH - (HIGH - LOW) * row / (ROWS - 1):.2f} ┤ " for row in range(ROWS)]
    rows = [Text.assemble((label, "dim"), *cells[row]) for row, label in enumerate(labels)]
    return Text("\n").join(rows)


def _row(value: float) -> int:
    """Return the number of the chart's row for a value. Values outside the chart are drawn at its edge."""
    return min(max(round((HIGH - value) / (HIGH - LOW) * (ROWS - 1)), 0), ROWS - 1)
