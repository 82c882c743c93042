"""A relation behind a search box kept fresh: content lag against rivals with as many requests.

Papers on a real site over HTTP (FastAPI), found by FTS5 of SQLite and by full text of PostgreSQL; citation
counts grow by Poisson processes with rates of a power law, a day in a fraction of a second. The whole engine
keeps the papers of some authors fresh; Naive 1, Naive 2 and GreedyProbes (both methods, told the true rates
and totals) then send as many requests at the very same times. The lag over the last two thirds is measured by
what the site served when.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from tests.servers.postgres import running_postgres
from tests.servers.search_rivals import RIVALS
from tests.servers.search_site import (
    Finder,
    Fts5Finder,
    Papers,
    PostgresFinder,
    SearchSite,
    draw_papers,
    search_source,
)

from afresh.engine.app import make_engine
from afresh.engine.settings.parsing import parse_settings
from afresh.values.clock import SystemClock
from bench.rows import Row

CLOCK = SystemClock()
RATE = 20.0


def rows(*, quick: bool) -> list[Row]:
    """Measure both databases."""
    with ExitStack() as stack:
        kinds: dict[str, Callable[[Papers], Finder]] = {"FTS5": Fts5Finder}
        if not quick:
            server = stack.enter_context(running_postgres())
            kinds["PostgreSQL"] = lambda papers: PostgresFinder(papers, server.url())
        return [row for kind, make in kinds.items() for row in _compared(kind, make, quick=quick)]


def _compared(kind: str, make: Callable[[Papers], Finder], *, quick: bool) -> list[Row]:
    count, own, for_s = (600, 60, 6.0) if quick else (3000, 300, 60.0)
    begin_s = CLOCK.now_s()
    papers = draw_papers(count, 3, begin_s=begin_s, lasts_s=for_s + 30.0, mean_rate=0.2)
    wanted = _papers_of_some(papers, own)
    finder = make(papers)
    with SearchSite(papers, CLOCK.now_s, finder) as site:
        _run(site, wanted, for_s)
        end_s = CLOCK.now_s()
        times_s = [time_s for time_s, _ in site.requests]
        window = times_s[0] + (end_s - times_s[0]) / 3, end_s
        ours = site.lag(wanted, *window)
        lags = {name: _rival(name, papers, finder, wanted, times_s, window) for name in RIVALS}
    return [
        Row(f"{kind}: lag of {len(wanted)} records, {len(times_s)} requests", ours, ""),
        *(
            Row(f"{kind}: lag of {name}", lag, "", ratio=ours / lag, at_most=1.0)
            for name, lag in lags.items()
        ),
    ]


def _run(site: SearchSite, wanted: list[int], for_s: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        relation = Path(name) / "relation.csv"
        with relation.open("w", newline="") as file:
            csv.writer(file).writerows([("id", "title", "authors"), *site.papers.rows(wanted)])
        settings = parse_settings(f'[budget]\nrequests = "{RATE}/s"' + search_source(site.url, relation))
        with make_engine(settings, Path(name), seed=1) as engine:
            engine.run(for_s=for_s)


def _rival(
    name: str,
    papers: Papers,
    finder: Finder,
    wanted: list[int],
    times_s: list[float],
    window: tuple[float, float],
) -> float:
    site = SearchSite(papers, CLOCK.now_s)
    site.searches(finder)
    for at_s, (query, page) in zip(times_s, RIVALS[name](papers, wanted, RATE), strict=False):
        site.search(query, page, at_s) if page else site.paper(query, at_s)
    return site.lag(wanted, *window)


def _papers_of_some(papers: Papers, fewest: int) -> list[int]:
    """Return the papers of authors drawn one by one, until there are enough."""
    rng = np.random.default_rng(5)
    chosen: set[str] = set()
    found: list[int] = []
    while len(found) < fewest:
        chosen.add(f"Ann A{rng.integers(len(papers) // 6)}")
        found = [at for at in range(len(papers)) if chosen & set(papers.authors[at].split(";"))]
    return found
