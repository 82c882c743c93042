"""Runs the demo: three copies of one site with the same budget, whose freshness the site measures.

One copy is kept by afresh, a process of its own; the two others by small clients (``rival_clients``). Each
copy may make one request per page in 30 site-days, the budget of Cho's Table 6. The length of a site-day
depends on how many requests per second this machine can make. The measurement starts when all copies have
every page and afresh's keeps the budget. Only its second half counts, because afresh has learned by then.

An engine does not make up for requests that it could not start in time, and at hundreds of requests a second
a busy machine is sometimes late. Therefore, if afresh's copy has made too few requests, it gets a slightly
larger budget. The clients make exactly as many requests as afresh's copy. A deficit of more than a few
seconds' requests is dropped, because making them up in the half that counts would distort the result.
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

from afresh.cli.proving.demo.changing_site import DemoSite, cho_pages
from afresh.cli.proving.demo.rival_clients import HalvedOrGrown, InTurn, RivalClient, Rule
from afresh.cli.proving.demo.running_copy import RunningCopy
from afresh.cli.proving.demo.site_scores import Score, score_copies
from afresh.values.arrays import Float64s
from afresh.values.clock import Clock, SystemClock
from afresh.values.errors import AfreshError, StoreError
from afresh.values.leftovers import LEFTOVERS

if TYPE_CHECKING:
    from afresh.cli.proving.demo.screen import Screen

PAGES, ROUND_D = 1000, 30.0
IMPORTANT, ANNOUNCED = 0.05, 0.10  # shares of the pages
WEIGHT = 10.0  # of an important page; that of the others is 1
SELDOM_PER_D = 1 / 30  # the feed announces pages that change at most so often
SPAN_D, LONGEST_S = 750.0, 90.0
FASTEST_PER_S = 400.0  # requests of each copy that two cores can serve: a site-day then takes 0.08 s
COPIES = ("afresh-demo", "uniform-demo", "halved-or-grown-demo")  # the User-Agents
_EASE = 0.85  # the budget is this share of the measured pace, so that it can be spent until the end
_WARM = 200  # requests before the pace is measured
_STARTING_S = 120.0
_SAMPLE_S = 0.25
_STEER_S, _CATCH_UP_S = 2.5, 7.0  # how often the budget is steered, and over how long the copy catches up
_AT_MOST = 1.4  # the largest factor by which the budget is raised


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the copies achieved in the last ``days`` site-days, with ``budget`` requests allowed for each.
    ``rule`` is the copy whose intervals are halved or grow."""

    days: float
    budget: float
    afresh: Score
    uniform: Score
    rule: Score

    @property
    def sentence(self) -> str:
        """What the demo shows, in one sentence."""
        needs = self.afresh.uniform_needs
        if not needs > 0:
            return "Uniform polling cannot be as fresh as afresh on this site."
        return f"For the same freshness, uniform polling needs {needs:.1f} times the requests."


@dataclass(frozen=True, slots=True)
class DemoCopies:
    """The three copies of a site. ``rivals`` are those that small clients keep."""

    site: DemoSite
    afresh: RunningCopy
    rivals: tuple[RivalClient, ...]

    def check(self) -> None:
        """Raise AfreshError if a copy has ended by itself."""
        self.afresh.check()
        for rival in self.rivals:
            rival.check()

    def have_all(self) -> bool:
        """Return whether every copy has fetched every page."""
        return all(self.site.has_all(copy) for copy in range(len(COPIES)))


def compare(for_s: float | None, seed: int, screen: Screen) -> DemoResult:
    """Run the copies for ``for_s`` seconds (None: 750 site-days, at most 90 s), and remove all files."""
    rng = np.random.default_rng(seed)
    with new_site(rng) as site:
        screen.on_start(site)
        with _kept_copies(site, rng) as copies:
            per_s = _measure_pace(copies)
            days_per_s = per_s * ROUND_D / PAGES
            span_d = min(SPAN_D, LONGEST_S * days_per_s) if for_s is None else for_s * days_per_s
            _wait_until(copies, copies.have_all)
            copies.afresh.ask_budget(per_s)
            site.begin(days_per_s, span_d + _STARTING_S * days_per_s, rng)
            before = site.requests(0)
            for rival in copies.rivals:
                rival.begin(lambda: site.requests(0) - before)
            _wait_until(copies, copies.afresh.follows)
            begin_d = site.now_d
            screen.on_measurement(days_per_s, span_d / days_per_s, copies.afresh.dashboard())
            _watch(copies, per_s, span_d, screen)
        afresh, uniform, rule = score_copies(site, begin_d + span_d / 2, begin_d + span_d)
    return DemoResult(span_d / 2, PAGES / ROUND_D * span_d / 2, afresh, uniform, rule)


def new_site(rng: np.random.Generator, clock: Clock | None = None) -> DemoSite:
    """Return the site of the demo: some pages are important, and some are announced by a feed."""
    rates = cho_pages(PAGES, rng)
    weights: Float64s = np.ones(PAGES)
    weights[rng.choice(PAGES, round(IMPORTANT * PAGES), replace=False)] = WEIGHT
    seldom = np.flatnonzero(rates <= SELDOM_PER_D)
    announced = rng.choice(seldom, round(ANNOUNCED * PAGES), replace=False)
    return DemoSite(rates, COPIES, clock, weights=weights, announced=np.sort(announced).tolist())


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


def _watch(copies: DemoCopies, per_s: float, span_d: float, screen: Screen) -> None:
    site = copies.site
    pause, begin_d = threading.Event(), site.now_d
    allowance = Allowance(partial(site.requests, 0), copies.afresh.ask_budget, per_s, SystemClock())
    while (day := site.now_d - begin_d) < span_d:
        copies.check()
        allowance.steer()
        screen.on_sample(day, tuple(map(site.fresh, range(len(COPIES)))))
        pause.wait(_SAMPLE_S)


@contextmanager
def _kept_copies(site: DemoSite, rng: np.random.Generator) -> Iterator[DemoCopies]:
    """Keep all copies, that of afresh in a folder that is removed afterwards."""
    orders = [rng.permutation(PAGES).tolist() for _ in COPIES[1:]]
    rules: tuple[Rule, ...] = (InTurn(orders[0]), HalvedOrGrown(orders[1], first_d=ROUND_D))
    with _temporary_folder() as folder, ExitStack() as stack:
        copy = RunningCopy(folder / "copy", site, COPIES[0], budget_per_s=FASTEST_PER_S / _EASE)
        stack.enter_context(copy)
        rivals = tuple(
            stack.enter_context(RivalClient(name, site.port, order, rule, lambda: site.now_d))
            for name, order, rule in zip(COPIES[1:], orders, rules, strict=True)
        )
        yield DemoCopies(site, copy, rivals)
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


def _measure_pace(copies: DemoCopies) -> float:
    """Measure how many requests per second afresh's copy makes while it fetches every page once.

    Return 85 % of that. The length of a site-day follows from it, so that slow machines keep the budget too.
    """
    clock, site = SystemClock(), copies.site
    _wait_until(copies, lambda: site.requests(0) >= _WARM)
    begin_s, before = clock.elapsed_s(), site.requests(0)
    _wait_until(copies, lambda: site.has_all(0))
    took_s = clock.elapsed_s() - begin_s
    return min(FASTEST_PER_S, _EASE * max(site.requests(0) - before, 1) / max(took_s, _SAMPLE_S))


def _wait_until(copies: DemoCopies, ready: Callable[[], bool]) -> None:
    """Wait until ``ready`` returns true; raise ``AfreshError`` if a copy ends or if it takes too long."""
    clock, pause = SystemClock(), threading.Event()
    until_s = clock.elapsed_s() + _STARTING_S
    while not ready():
        copies.check()
        if clock.elapsed_s() > until_s:
            raise AfreshError(f"after {_STARTING_S:g} s not every page is fetched: is the machine very busy?")
        pause.wait(0.02)
