"""Killed with -9 at random: nothing committed is lost, nothing is polled twice at once, the budget holds."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.engine.living import CLOCK, LivingSite, engine_for

from afresh.values.items import ItemQuery

BUDGET = 150.0
RUN = """
import sys
from afresh.engine.app import open_engine
with open_engine(sys.argv[1]) as engine:
    engine.run()
"""
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
"""


def killed_after(site: LivingSite, folder: Path, seconds: float) -> None:
    """Run an engine in a process of its own and kill it so long after its first request."""
    process, before = subprocess.Popen([sys.executable, "-c", RUN, str(folder)]), len(site.requests)
    try:
        for _ in range(300):
            if len(site.requests) > before or process.poll() is not None:
                break
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    else:
        raise AssertionError("the engine ended by itself")


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


def kill_many(folder: Path, kills: int, pages: int) -> None:
    (folder / "afresh.toml").write_text(SETTINGS)
    rng = np.random.default_rng(7)
    with LivingSite(rng.gamma(0.5, 0.1, pages).tolist(), lasts_s=60.0 + 30.0 * kills) as site:
        with engine_for(folder) as engine:
            engine.add(site.urls())
        for _ in range(kills):
            killed_after(site, folder, 0.7 + 1.5 * float(rng.random()))
            check(site, folder, pages)
        polled = {path for _, path in site.requests}
        # What was served more than a commit's time before a kill is there.
        assert len(polled) == pages
        before = len(site.requests)
        killed_after(site, folder, 6.0)
        begin_s, end_s = site.requests[before][0], CLOCK.now_s()
        check(site, folder, pages)
        with engine_for(folder) as engine:
            copies = [engine.get(url) for url in site.urls()]
            assert all(copies)
        assert site.twice == []
        assert site.most_over_budget(BUDGET, jitter_s=0.1 + site.late_s) <= 0
        assert site.freshness(begin_s + 3.0, end_s) > 0.8


def test_five_kills_lose_nothing(tmp_path: Path) -> None:
    kill_many(tmp_path, 5, 200)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_kills_lose_nothing(tmp_path: Path) -> None:
    kill_many(tmp_path, 50, 200)
