"""The comparison itself: one site, two copies at one budget, and what the site measured of both.

Both copies may make one request per page and 30 site-days, the budget of Cho's Table 6; how long a site-day
is depends on how fast this machine can ask. The site is watched once both hold every page and keep to it;
what counts is the second half, when afresh has learned.

An engine makes up for no moment that it missed, and with hundreds of requests a second a busy machine misses
some: a copy that is behind its allowance is asked for a little more, so that both make the same requests.
What it is behind by more than a few seconds' requests is forgiven, lest it make them in the half that counts.
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
from typing import Protocol

import numpy as np

from afresh.cli.demo_copies import RunningCopy
from afresh.cli.demo_score import Score, Theory, captured, captured_at_equal_requests, scores, theory
from afresh.cli.demo_site import DemoSite, cho_pages
from afresh.values.clock import Clock, SystemClock
from afresh.values.errors import AfreshError, StoreError
from afresh.values.leftovers import LEFTOVERS

PAGES, ROUND_D = 1000, 30.0
SPAN_D, LONGEST_S = 750.0, 90.0
FASTEST_PER_S = 330.0  # requests of each copy, which two cores serve: a site-day is then a tenth of a second
POLICIES = ("uniform", "adaptive")
_EASE = 0.85  # of the pace of the first round, so that the budget can be spent to the end
_WARM = 200  # requests before the pace is taken
_STARTING_S = 120.0
_SAMPLE_S = 0.25
_STEER_S, _CATCH_UP_S, _AT_MOST = 2.5, 7.0, 1.4  # how often, over how long, and how many times the budget


@dataclass(frozen=True, slots=True)
class Found:
    """What came out: the second half of so many site-days."""

    days: float
    budget: float
    uniform: Score
    afresh: Score
    theory: Theory
    captured: float
    captured_at_equal_requests: float


class Watcher(Protocol):
    """Whoever looks on."""

    def starts(self) -> None:
        """The copies begin."""

    def lives(self, theory: Theory, days_per_s: float, span_s: float, dashboard: str) -> None:
        """The site's time runs; the dashboard of afresh's copy is served there."""

    def sees(self, day: float, fresh: tuple[float, ...]) -> None:
        """The share of right pages of each copy now."""


def compare(for_s: float | None, seed: int, watcher: Watcher) -> Found:
    """Keep both copies for 750 site-days (90 s at most), or for so long; nothing is left behind."""
    rng = np.random.default_rng(seed)
    rates = cho_pages(PAGES, rng)
    expected = theory(rates, PAGES / ROUND_D)
    watcher.starts()
    with DemoSite(rates, POLICIES) as site:
        with _copies(site) as copies:
            per_s = _pace(site, copies)
            days_per_s = per_s * ROUND_D / PAGES
            span_d = min(SPAN_D, LONGEST_S * days_per_s) if for_s is None else for_s * days_per_s
            for copy in copies:
                copy.ask_budget(per_s)
            site.begin(days_per_s, span_d + _STARTING_S * days_per_s, rng)
            _wait(copies, lambda: all(site.has_all(n) and copy.follows() for n, copy in enumerate(copies)))
            begin_d = site.now_d
            watcher.lives(expected, days_per_s, span_d / days_per_s, copies[-1].dashboard() or "")
            _watch(site, copies, per_s, span_d, watcher)
        uniform, adaptive = scores(site, begin_d + span_d / 2, begin_d + span_d)
    half_d = span_d / 2
    shares = (
        captured(expected, uniform, adaptive),
        captured_at_equal_requests(rates, half_d, uniform, adaptive),
    )
    return Found(half_d, PAGES / ROUND_D * half_d, uniform, adaptive, expected, *shares)


class Allowance:
    """Sees to it that a copy makes the requests that it may make, ``per_s``, and no more."""

    def __init__(
        self, made: Callable[[], int], ask: Callable[[float], None], per_s: float, clock: Clock
    ) -> None:
        """``made`` says how many requests there were, ``ask`` sets the budget per second."""
        self._made, self._ask, self._per_s, self._clock = made, ask, per_s, clock
        self._steered_s = clock.elapsed_s()
        self._due = float(made())

    def steer(self) -> None:
        """Ask for more if it is behind; seldom, for it takes seconds to follow."""
        passed_s = self._clock.elapsed_s() - self._steered_s
        if passed_s < _STEER_S:
            return
        self._steered_s += passed_s
        made, most = self._made(), self._per_s * _CATCH_UP_S * (_AT_MOST - 1.0)
        self._due = min(self._due + self._per_s * passed_s, made + most)
        with suppress(StoreError):  # one that is locked just now; it is asked again
            self._ask(self._per_s + max(self._due - made, 0.0) / _CATCH_UP_S)


def _watch(site: DemoSite, copies: list[RunningCopy], per_s: float, span_d: float, watcher: Watcher) -> None:
    pause, begin_d, clock = threading.Event(), site.now_d, SystemClock()
    allowances = [
        Allowance(partial(site.requests, n), copy.ask_budget, per_s, clock) for n, copy in enumerate(copies)
    ]
    while (day := site.now_d - begin_d) < span_d:
        for copy, allowance in zip(copies, allowances, strict=True):
            copy.check()
            allowance.steer()
        watcher.sees(day, tuple(map(site.fresh, range(len(copies)))))
        pause.wait(_SAMPLE_S)


@contextmanager
def _copies(site: DemoSite) -> Iterator[list[RunningCopy]]:
    """Both copies at work, in a folder that is gone afterwards."""
    with _temporary_folder() as folder, ExitStack() as stack:
        made = [
            RunningCopy(
                folder / policy,
                policy,
                site.urls(),
                budget_per_s=FASTEST_PER_S / _EASE,
                web=policy == "adaptive",
            )
            for policy in POLICIES
        ]
        copies = [stack.enter_context(copy) for copy in made]
        yield copies
        for copy in copies:
            copy.stop()


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder that is gone at the end; it is listed before it exists, so that it is never left behind."""
    folder = Path(tempfile.gettempdir()) / f"afresh-demo-{uuid.uuid4().hex[:12]}"
    with LEFTOVERS.path(folder):
        try:
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _pace(site: DemoSite, copies: list[RunningCopy]) -> float:
    """How many requests per second both copies manage on this machine, from their first round of the pages.

    A site-day is made as long as that takes, so that the budget can be spent on a slow machine too.
    """
    clock, numbers = SystemClock(), range(len(copies))
    _wait(copies, lambda: all(site.requests(copy) >= _WARM for copy in numbers))
    begin_s, before = clock.elapsed_s(), [site.requests(copy) for copy in numbers]
    _wait(copies, lambda: any(map(site.has_all, numbers)))
    took_s = clock.elapsed_s() - begin_s
    slower = min(site.requests(copy) - first for copy, first in zip(numbers, before, strict=True))
    return min(FASTEST_PER_S, _EASE * max(slower, 1) / max(took_s, _SAMPLE_S))


def _wait(copies: list[RunningCopy], ready: Callable[[], bool]) -> None:
    """Until it is so, while the copies are at work."""
    clock, pause = SystemClock(), threading.Event()
    until_s = clock.elapsed_s() + _STARTING_S
    while not ready():
        for copy in copies:
            copy.check()
        if clock.elapsed_s() > until_s:
            raise AfreshError(f"after {_STARTING_S:g} s not every page is fetched: is the machine very busy?")
        pause.wait(0.02)
