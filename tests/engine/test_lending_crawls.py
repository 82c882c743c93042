"""Short crawls of a program that leases its pages, in virtual time: the later ones go where changes are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.engine.changing_pages import ChangingPages
from tests.engine.test_external_polls import FixedClock

from afresh.engine.app import make_engine
from afresh.engine.settings.parsing import parse_settings
from afresh.values.arrays import Floats
from afresh.values.reported import Reported

SETTINGS = """
[budget]
requests = "1/s"
[[source]]
name = "web"
min_interval = "1s"
"""
CRAWL_S, BETWEEN_S = 60.0, 30.0
LIBRARY = [1 / 15, 1 / 20, 1 / 40, 1 / 60, 1 / 90, 1 / 300, 1 / 900, *[0.0] * 8]
"""Changes a second of the pages of ``examples/library_site.py``."""


def crawl_often(folder: Path, rates: list[float], crawls: int, seed: int) -> Floats:
    """The polls of each page in each crawl. Each crawl opens the project anew and takes as many leases as
    Scrapy takes."""
    folder.mkdir()
    clock = FixedClock()
    site = ChangingPages(rates, clock, seed=seed, lasts_s=crawls * (CRAWL_S + BETWEEN_S), hosts=1)
    pages = {url: page for page, url in enumerate(site.urls())}
    polls = np.zeros((crawls, len(rates)))
    for of_crawl in polls:
        end_s = clock.now_s() + CRAWL_S
        with make_engine(parse_settings(SETTINGS), folder, clock=clock, seed=1) as engine:
            engine.add(list(pages))
            while clock.now_s() < end_s:
                lent = engine.lending.lend(16, 600.0)
                for lease in lent.leases:
                    clock.time_s = max(clock.time_s, lease.not_before_s)
                    page = pages[lease.key]
                    of_crawl[page] += 1
                    content = site.content(page, site.version(page, clock.now_s()))
                    engine.lending.record(
                        [Reported(lease.key, clock.now_s(), content=content, lease=lease.token)]
                    )
                clock.time_s += lent.retry_after_s
        clock.time_s += BETWEEN_S
    return polls


def test_later_crawls_of_the_tutorial_prefer_pages_that_change(tmp_path: Path) -> None:
    """The first crawl of a minute gets to know fifteen pages; it can hardly prefer any."""
    polls = crawl_often(tmp_path / "project", LIBRARY, 3, seed=0)
    assert polls.sum(axis=1).min() >= CRAWL_S - 1
    preferred = polls[:, :5].mean(axis=1) / polls[:, 5:].mean(axis=1)
    assert preferred[1:].min() >= 2.0, preferred
    assert preferred[1:].min() >= 1.3 * preferred[0], preferred


def test_crawls_too_short_for_all_pages_go_where_changes_are(tmp_path: Path) -> None:
    """Two crawls of 60 requests see all of 60 pages at least once; 8 of the pages change, 13 % of all."""
    polls = crawl_often(tmp_path / "project", [1 / 15] * 4 + [1 / 60] * 4 + [0.0] * 52, 4, seed=1)
    assert (polls[:2].sum(axis=0) > 0).all()
    share = polls[2:, :8].sum(axis=1) / polls[2:].sum(axis=1)
    assert share.min() >= 0.3, share
    # Pages without a change are still looked at.
    assert (polls[2:, 8:].sum(axis=0) > 0).mean() >= 0.3
