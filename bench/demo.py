"""The demo, run ten times: how many times the requests uniform polling needs for the freshness of afresh."""

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
    wanted = None if quick else 1.1
    return [
        Row(_words(seed, run), run.afresh.uniform_needs, "times the requests", at_least=wanted)
        for seed, run in found
    ]


def _words(seed: int, run: DemoResult) -> str:
    copies = (("afresh", run.afresh), ("uniform", run.uniform), ("halve or grow", run.rule))
    shares = ", ".join(f"{name} {score.freshness:.3f} at {score.age_d:.1f} d" for name, score in copies)
    spent = " and ".join(f"{score.requests / run.budget:.0%}" for _, score in copies)
    rule = f"halve or grow {run.rule.uniform_needs:.2f}"
    return f"seed {seed}, last {run.days:.0f} days: {shares}; {spent} of the requests made; {rule}"
