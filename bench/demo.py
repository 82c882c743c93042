"""The demo, run ten times: the share of the gap between uniform and optimum that afresh gains."""

from __future__ import annotations

from rich.console import Console

from afresh.cli.proving.demo.comparison import DemoResult, compare
from afresh.cli.proving.demo.screen import Screen
from bench.rows import Row

RUNS = 10


def rows(*, quick: bool) -> list[Row]:
    """Return one row for each run; the documented promise is about the least of them."""
    seeds = range(1) if quick else range(1, RUNS + 1)
    screen = Screen(browser=False, console=Console(quiet=True))
    found = [(seed, compare(3.0 if quick else None, seed, screen)) for seed in seeds]
    wanted = None if quick else 0.6
    return [Row(_words(seed, run), _share(run), "of the gap", at_least=wanted) for seed, run in found]


def _share(run: DemoResult) -> float:
    """Return the share as measured or at equal requests, whichever is less."""
    return min(run.captured, run.captured_at_equal_requests)


def _words(seed: int, run: DemoResult) -> str:
    spent = " and ".join(f"{one.requests / run.budget:.0%}" for one in (run.uniform, run.afresh))
    shares = f"uniform {run.uniform.freshness:.3f}, afresh {run.afresh.freshness:.3f}"
    equal = f"{run.captured:.2f} as measured, {run.captured_at_equal_requests:.2f} at equal requests"
    return f"seed {seed}, last {run.days:.0f} days: {shares}, {spent} of the budget spent, {equal}"
