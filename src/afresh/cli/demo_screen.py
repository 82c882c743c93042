"""What the demo shows: two lines that grow on a terminal, elsewhere lines of text; a table at the end."""

from __future__ import annotations

import math
import os
import shutil
import sys
import webbrowser
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from afresh.cli.demo_chart import chart, smoothed
from afresh.cli.demo_run import PAGES, ROUND_D, SPAN_D, Found
from afresh.cli.demo_score import Theory

_SMOOTH = 12  # samples, three seconds
_WIDEST = 100
_TELLINGS = 10
_APART = 0.03  # of the gap: shares that differ by less are told as one
_ROUNDS_ENOUGH = 5.0  # looks at each page on average, below which a share gained would be chance
_NEXT = """\
For your own site:
{on_path}  afresh init mirror && cd mirror
  afresh add --discover https://your.site/
  afresh run --web"""


class Screen:
    """Shows how the comparison goes, on standard error."""

    def __init__(self, *, browser: bool, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._browser = browser
        self._lines: dict[str, list[float]] = {"uniform": [], "afresh": []}
        self._days: list[float] = []
        self._told_d, self._days_per_s = 0.0, 1.0
        self._live = Live(console=self._console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def starts(self) -> None:
        """Say what there is to see."""
        self._console.print(
            f"A site of {PAGES:,} pages on this machine: some change daily, some once a year.\n"
            f"Two copies of it, each allowed one request per page and {ROUND_D:g} days:\n"
            "[yellow]uniform[/] asks for all equally often, [green]afresh[/] learns from nothing.\n"
            "First both fetch every page once …"
        )

    def lives(self, theory: Theory, days_per_s: float, span_s: float, dashboard: str) -> None:
        """Say where the dashboard is, and open it where there is somebody to see it."""
        self._theory, self._days_per_s, self._span_d = theory, days_per_s, span_s * days_per_s
        self._console.print(
            f"A second is {days_per_s:.1f} days there; this takes {span_s:.0f} s.\n"
            f"The dashboard of afresh's copy meanwhile: {dashboard}"
        )
        if self._browser and self._console.is_terminal and _has_desktop():
            webbrowser.open(dashboard)

    def sees(self, day: float, fresh: tuple[float, ...]) -> None:
        """One more moment."""
        for values, value in zip(self._lines.values(), fresh, strict=True):
            values.append(value)
        self._days.append(day)
        now = {name: smoothed(values[-_SMOOTH:], _SMOOTH)[-1] for name, values in self._lines.items()}
        words = f"day {day:3.0f}   uniform {now['uniform']:.3f}   afresh {now['afresh']:.3f}"
        if self._live.is_started:
            self._live.update(self._drawn(words), refresh=True)
        elif day >= self._told_d:
            self._told_d += self._span_d / _TELLINGS
            self._console.print(words)

    def _drawn(self, words: str) -> Group:
        lines = {name: smoothed(values, _SMOOTH) for name, values in self._lines.items()}
        optimum, width = self._theory.optimum, min(self._console.width, _WIDEST)
        picture = chart(lines, self._days, self._span_d, optimum, width)
        legend = f"[yellow]· uniform[/]  [green]● afresh[/]  [dim]╌ optimum {optimum:.3f}[/]    {words}"
        return Group(picture, Text.from_markup(legend))

    def tell(self, found: Found) -> None:
        """The result."""
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
        self._console.print(_NEXT.format(on_path=_on_path()))


def _on_path() -> str:
    """What puts the command on the path, where it is not there."""
    if shutil.which("afresh") is not None:
        return ""
    return f"  . {Path(sys.prefix) / 'bin' / 'activate'}\n"


def _verdict(found: Found, days_per_s: float) -> str:
    """What afresh gained; or that there was too little to learn from, where that is so."""
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
    """Whether a browser would open in a window of its own and not in this terminal."""
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
