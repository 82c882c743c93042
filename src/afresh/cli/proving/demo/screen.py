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

from afresh.cli.proving.demo.changing_site import DemoSite
from afresh.cli.proving.demo.comparison import ROUND_D, SPAN_D, WEIGHT, DemoResult
from afresh.cli.proving.demo.rival_clients import GROWTH

LOW, HIGH, ROWS = 0.44, 0.76, 17  # each row is 0.02 of freshness; chart and legend fit in 24 rows
NAMES = ("afresh", "uniform", "halve or grow")
_MARKS = {"afresh": ("●", "bold green"), "uniform": ("·", "yellow"), "halve or grow": ("×", "magenta")}
_SMOOTH = 12  # samples in a moving mean: three seconds
_WIDEST = 100
_TEXT_LINES = 10  # printed instead of a chart if there is no terminal
_ROUNDS_ENOUGH = 5.0  # with fewer polls of each page on average, the result would be chance
_WIDTH = 80
_MADE_ENOUGH = 0.95  # a smaller share of the allowed requests is mentioned
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
        self._lines: dict[str, list[float]] = {name: [] for name in NAMES}
        self.days: list[float] = []
        self._next_line_d, self._days_per_s, self._span_d = 0.0, 1.0, SPAN_D
        self._live = Live(console=self._console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def on_start(self, site: DemoSite) -> None:
        """Print what the demo will show, before the copies fetch every page for the first time."""
        important = int((site.weights > site.weights.min()).sum())
        self._console.print(
            f"A site of {site.rates.size:,} pages runs on this machine. Some pages change every day, some\n"
            f"once a year. {important} pages are important: each counts as {WEIGHT:g}. "
            f"A feed announces\nthe changes of {len(site.announced)} pages. "
            f"Three copies are kept. Each may make one request per\npage in {ROUND_D:g} days of the site.\n"
            "  [bold green]afresh[/]         learns how often each page changes; reads the feed\n"
            "  [yellow]uniform[/]        requests all pages in turn\n"
            "  [magenta]halve or grow[/]  the usual rule of crawlers: halves the interval of a page\n"
            f"                 after a change, and makes it {GROWTH:g} times as long otherwise\n"
            "First, each copy fetches every page once …"
        )

    def on_measurement(self, days_per_s: float, span_s: float, dashboard: str | None) -> None:
        """Print the address of the dashboard, and open it in a browser if there is a desktop. The measurement
        begins now and lasts ``span_s`` seconds."""
        self._days_per_s, self._span_d = days_per_s, span_s * days_per_s
        self._console.print(f"A second is {days_per_s:.1f} days of the site. This takes {span_s:.0f} s.")
        if dashboard is None:
            self._console.print("There is no dashboard: pip install 'afresh\\[web]' adds it.")
            return
        self._console.print(f"The dashboard of afresh's copy meanwhile: {dashboard}")
        if self._browser and self._console.is_terminal and _has_desktop():
            webbrowser.open(dashboard)

    def on_sample(self, day: float, fresh: tuple[float, ...]) -> None:
        """Draw one more sample: the share of fresh pages of each copy (``fresh``) on this site-day."""
        for values, value in zip(self._lines.values(), fresh, strict=True):
            values.append(value)
        self.days.append(day)
        if self._live.is_started:
            self._live.update(self._draw(day), refresh=True)
        elif day >= self._next_line_d:
            self._next_line_d += self._span_d / _TEXT_LINES
            now = "   ".join(f"{name} {value:.3f}" for name, value in self._latest().items())
            self._console.print(f"day {day:3.0f}   {now}")

    def smooth_lines(self) -> dict[str, list[float]]:
        """Return the freshness of each copy over time by name, as moving means."""
        return {name: moving_means(values, _SMOOTH) for name, values in self._lines.items()}

    def _latest(self) -> dict[str, float]:
        return {name: moving_means(values[-_SMOOTH:], _SMOOTH)[-1] for name, values in self._lines.items()}

    def _draw(self, day: float) -> Group:
        width = min(self._console.width, _WIDEST)
        picture = draw_chart(self.smooth_lines(), self.days, self._span_d, width)
        legend = Text("       ")
        for name, value in self._latest().items():
            mark, style = _MARKS[name]
            legend.append(f"{mark} {name} {value:.1%}   ", style=style)
        legend.append(f"day {day:.0f} of {self._span_d:.0f}", style="dim")
        return Group(
            picture, legend, Text("       share of the pages that are fresh, by weight", style="dim")
        )

    def print_result(self, found: DemoResult) -> None:
        """Print the table of results, what they mean, and what to do next."""
        title = f"The last {found.days:.0f} days, from the site's own log of changes and requests"
        table = Table(title=title, title_justify="left", title_style="bold")
        table.add_column("", no_wrap=True)
        heads = ("fresh, by weight", "important pages", "other pages", "age, by weight", "requests")
        for head in heads:
            table.add_column(head, justify="right")
        for name, score in zip(NAMES, (found.afresh, found.uniform, found.rule), strict=True):
            shares = (f"{share:.1%}" for share in (score.freshness, score.important, score.ordinary))
            table.add_row(name, *shares, f"{score.age_d:.1f} days", f"{score.requests:,}")
        self._console.print(table, width=min(self._console.width, _WIDTH))
        self._console.print(_verdict(found, self._days_per_s), width=min(self._console.width, _WIDTH))
        self._console.print(_NEXT.format(on_path=_activation_line()))


def _activation_line() -> str:
    """Return the shell line that puts ``afresh`` on the path, or "" if it is on the path already."""
    if shutil.which("afresh") is not None:
        return ""
    return f"  . {Path(sys.prefix) / 'bin' / 'activate'}\n"


def _verdict(found: DemoResult, days_per_s: float) -> str:
    """Say what afresh saves, or that the time was too short to measure it."""
    rounds = found.days / ROUND_D
    if rounds < _ROUNDS_ENOUGH:
        return (
            f"Too short to tell: before these days, afresh could learn from {rounds:.1f} requests per page "
            f"on average. {SPAN_D:g} days of the site are enough: "
            f"[bold]afresh demo --for {math.ceil(SPAN_D / days_per_s)}s[/] at this machine's pace."
        )
    words = f"[bold green]{found.sentence}[/]"
    if found.rule.uniform_needs > 0:
        words += (
            f"\nHalve or grow is as fresh as uniform polling with "
            f"{found.rule.uniform_needs:.1f} times the requests."
        )
    made = found.afresh.requests / found.budget
    if made < _MADE_ENOUGH:
        words += f"\nThis machine was too busy for {1 - made:.0%} of the allowed requests of each copy."
    if found.afresh.age_d > found.uniform.age_d:
        words += (
            "\nPages that change too often for this budget are given up, and get old. "
            '[bold]objective = "age"[/] keeps all pages young instead.'
        )
    return words


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


def draw_chart(lines: Mapping[str, Sequence[float]], times: Sequence[float], end: float, width: int) -> Text:
    """Draw ``lines`` over ``times`` as ``width`` columns of characters, the first one on top of the others.

    The vertical axis shows freshness, the horizontal axis time from 0 to ``end``.

    >>> drawn = draw_chart({"afresh": [0.5, 0.62]}, [0.0, 5.0], 10.0, 20)
    >>> drawn.plain.splitlines()[7].rstrip()
    '0.62 ┤       ●'
    """
    columns = max(width - 7, 10)
    cells = [[(" ", "")] * columns for _ in range(ROWS)]
    for name, values in reversed(list(lines.items())):
        for time, value in zip(times, values, strict=True):
            column = min(int(time / end * columns), columns - 1)
            cells[_row(value)][column] = _MARKS[name]
    labels = [f"{HIGH - (HIGH - LOW) * row / (ROWS - 1):.2f} ┤ " for row in range(ROWS)]
    rows = [Text.assemble((label, "dim"), *cells[row]) for row, label in enumerate(labels)]
    return Text("\n").join(rows)


def _row(value: float) -> int:
    """Return the number of the chart's row for a value. Values outside the chart are drawn at its edge."""
    return min(max(round((HIGH - value) / (HIGH - LOW) * (ROWS - 1)), 0), ROWS - 1)
