"""Killed with -9 at random: nothing committed is lost, and nothing is polled twice at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.engine.living import LivingSite, engine_for
from tests.servers.quick_afresh import QuickAfresh
from tests.waiting import until

from afresh.values.items import ItemQuery

pytestmark = pytest.mark.waits

BUDGET = 150.0
SETTINGS = f"""
[budget]
requests = "{BUDGET}/s"
[run]
lease = "1s"
[[source]]
name = "web"
delay = "0s"
concurrency = 4
allow_private = true
min_interval = 0
"""


def killed_after(quick: QuickAfresh, site: LivingSite, folder: Path, requests: int) -> None:
    """Run an engine in a process of its own and kill it after so many requests."""
    process, before = quick.start("run", folder=folder), len(site.requests)
    try:
        until(
            lambda: len(site.requests) >= before + requests or process.poll() is not None,
            f"{requests} requests",
        )
        assert process.poll() is None, "the engine ended by itself"
    finally:
        process.close()


def check(site: LivingSite, folder: Path, pages: int) -> None:
    with engine_for(folder) as engine:
        assert engine.store.upkeep.check() == []
        items = engine.store.items.page(ItemQuery(), pages + 1).items
        assert len(items) == pages
        for item in items:
            page = int(item.key.rsplit("/", 1)[1])
            served = {site.content(page, version) for version in range(1000)}
            for version in engine.versions(item.key):
                copy = engine.get(item.key, version=version.number)
                assert copy is not None
                assert copy.content in served


def kill_many(quick: QuickAfresh, folder: Path, kills: int, pages: int) -> None:
    (folder / "afresh.toml").write_text(SETTINGS)
    rng = np.random.default_rng(7)
    with LivingSite(rng.gamma(0.5, 0.1, pages).tolist(), lasts_s=60.0 + 30.0 * kills) as site:
        with engine_for(folder) as engine:
            engine.add(site.urls())
        for _ in range(kills):
            killed_after(quick, site, folder, int(rng.integers(1, 2 * pages)))
            check(site, folder, pages)
        # One more run has everything: what was under way at a kill is polled again.
        with engine_for(folder, more='[run]\nlease = "1s"') as engine:
            engine.poll_now([url for url in site.urls() if engine.get(url) is None])
            engine.run(once=True)
            assert all(engine.get(url) for url in site.urls())
        assert site.twice == []


def test_three_kills_lose_nothing(quick_afresh: QuickAfresh, tmp_path: Path) -> None:
    kill_many(quick_afresh, tmp_path, 3, 60)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_kills_lose_nothing(quick_afresh: QuickAfresh, tmp_path: Path) -> None:
    kill_many(quick_afresh, tmp_path, 50, 200)
