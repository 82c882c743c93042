"""Runs the demo: two copies of one site with the same budget, whose freshness the site measures.

Each copy may make one request per page in 30 site-days, the budget of Cho's Table 6. The length of a site-day
depends on how many requests per second this machine can make. The measurement starts when both copies have
every page and keep the budget. Only its second half counts, because afresh has learned by then.

An engine does not make up for requests that it could not start in time, and at hundreds of requests a second
a busy machine is sometimes late. Therefore a copy that has made too few requests gets a slightly larger
budget, so that both copies make the same number. A deficit of more than a few seconds' requests is dropped,
because making them up in the half that counts would distort the result.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from afresh.cli.proving.demo import site_scores
from afresh.cli.proving.demo.changing_site import DemoSite, cho_pages
from afresh.cli.proving.demo.running_copy import RunningCopy
from afresh.cli.proving.demo.site_scores import Score, Theory
from afresh.values.clock import Clock, SystemClock
from afresh.values.errors import AfreshError, StoreError
from afresh.values.leftovers import LEFTOVERS

if TYPE_CHECKING:
    from afresh.cli.proving.demo.screen import Screen

PAGES, ROUND_D = 1000, 30.0
SPAN_D, LONGEST_S = 750.0, 90.0
FASTEST_PER_S = 330.0  # requests of each copy that two cores can serve: a site-day then takes 0.1 s
POLICIES = ("uniform", "adaptive")
_EASE = 0.85  # the budget is this share of the measured pace, so that it can be spent until the end
_WARM = 200  # requests before the pace is measured
_STARTING_S = 120.0
_SAMPLE_S = 0.25
_STEER_S, _CATCH_UP_S = 2.5, 7.0  # how often the budget is steered, and over how long a copy catches up
_AT_MOST = 1.4  # the largest factor by which the budget is raised


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The result of the last ``days`` site-days, in which each copy was allowed ``budget`` requests."""

    days: float
    budget: float
    uniform: Score
    afresh: Score
    theory: Theory
    captured: float
    captured_at_equal_requests: float


def compare(for_s: float | None, seed: int, screen: Screen) -> DemoResult:
    """Run both copies for ``for_s`` seconds (None: 750 site-days, at most 90 s), and remove all files."""
    rng = np.random.default_rng(seed)
    rates = cho_pages(PAGES, rng)
    expected = site_scores.theory(rates, PAGES / ROUND_D)
    screen.on_start()
    with DemoSite(rates, POLICIES) as site:
        with _copies(site) as copies:
            per_s = _measure_pace(site, copies)
            days_per_s = per_s * ROUND_D / PAGES
            span_d = min(SPAN_D, LONGEST_S * days_per_s) if for_s is None else for_s * days_per_s
            for copy in copies:
                copy.ask_budget(per_s)
            site.begin(days_per_s, span_d + _STARTING_S * days_per_s, rng)
            _wait_until(
                copies, lambda: all(site.has_all(n) and copy.follows() for n, copy in enumerate(copies))
            )
            begin_d = site.now_d
            screen.on_measurement(expected, days_per_s, span_d / days_per_s, copies[-1].dashboard() or "")
            _watch(site, copies, per_s, span_d, screen)
        uniform, adaptive = site_scores.scores(site, begin_d + span_d / 2, begin_d + span_d)
    half_d = span_d / 2
    measured = site_scores.captured(expected, uniform, adaptive)
    corrected = site_scores.captured_at_equal_requests(rates, half_d, uniform, adaptive)
    budget = PAGES / ROUND_D * half_d
    return DemoResult(half_d, budget, uniform, adaptive, expected, measured, corrected)


class Allowance:
    """Changes the budget of a copy so that it makes ``per_s`` requests per second on average."""

    def __init__(
        self, made: Callable[[], int], ask: Callable[[float], None], per_s: float, clock: Clock
    ) -> None:
        """``made`` returns the number of requests so far, ``ask`` sets the budget in requests per second."""
        self._made, self._ask, self._per_s, self._clock = made, ask, per_s, clock
        self._steered_s = clock.elapsed_s()
        self._due = float(made())

    def steer(self) -> None:
        """Raise the budget if the copy made too few requests; only every few seconds, as it reacts slowly."""
        passed_s = self._clock.elapsed_s() - self._steered_s
        if passed_s < _STEER_S:
            return
        self._steered_s += passed_s
        made, most = self._made(), self._per_s * _CATCH_UP_S * (_AT_MOST - 1.0)
        self._due = min(self._due + self._per_s * passed_s, made + most)
        with suppress(StoreError):  # the store is locked now; the next call tries again
            self._ask(self._per_s + max(self._due - made, 0.0) / _CATCH_UP_S)


def _watch(site: DemoSite, copies: list[RunningCopy], per_s: float, span_d: float, screen: Screen) -> None:
    pause, begin_d, clock = threading.Event(), site.now_d, SystemClock()
    allowances = [
        Allowance(partial(site.requests, n), copy.ask_budget, per_s, clock) for n, copy in enumerate(copies)
    ]
    while (day := site.now_d - begin_d) < span_d:
        for copy, allowance in zip(copies, allowances, strict=True):
            copy.check()
            allowance.steer()
        screen.on_sample(day, tuple(map(site.fresh, range(len(copies)))))
        pause.wait(_SAMPLE_S)


@contextmanager
def _copies(site: DemoSite) -> Iterator[list[RunningCopy]]:
    """Run both copies in a folder that is removed afterwards."""
    with _temporary_folder() as folder, ExitStack() as stack:
        made = []
        for policy in POLICIES:
            budget_per_s, web = FASTEST_PER_S / _EASE, policy == "adaptive"
            made.append(RunningCopy(folder / policy, policy, site.urls(), budget_per_s=budget_per_s, web=web))
        copies = [stack.enter_context(copy) for copy in made]
        yield copies
        for copy in copies:
            copy.stop()


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Create a folder and remove it at the end. LEFTOVERS lists it first, so that a signal removes it too."""
    folder = Path(tempfile.gettempdir()) / f"afresh-demo-{uuid.uuid4().hex[:12]}"
    with LEFTOVERS.path(folder):
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _measure_pace(site: DemoSite, copies: list[RunningCopy]) -> float:
    """Measure how many requests per second the slower copy makes while both fetch every page once.

    Return 85 % of that. The length of a site-day follows from it, so that slow machines keep the budget too.
    """
    clock, numbers = SystemClock(), range(len(copies))
    _wait_until(copies, lambda: all(site.requests(copy) >= _WARM for copy in numbers))
    begin_s, before = clock.elapsed_s(), [site.requests(copy) for copy in numbers]
    _wait_until(copies, lambda: any(map(site.has_all, numbers)))
    took_s = clock.elapsed_s() - begin_s
    slower = min(site.requests(copy) - first for copy, first in zip(numbers, before, strict=True))
    return min(FASTEST_PER_S, _EASE * max(slower, 1) / max(took_s, _SAMPLE_S))


def _wait_until(copies: list[RunningCopy], ready: Callable[[], bool]) -> None:
    """Wait until ``ready`` returns true; raise ``AfreshError`` if a copy ends or if it takes too long."""
    clock, pause = SystemClock(), threading.Event()
    until_s = clock.elapsed_s() + _STARTING_S
    while not ready():
        for copy in copies:
            copy.check()
        if clock.elapsed_s() > until_s:
            raise AfreshError(f"after {_STARTING_S:g} s not every page is fetched: is the machine very busy?")
        pause.wait(0.02)
