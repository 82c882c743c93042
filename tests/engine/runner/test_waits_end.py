"""A run that stops waits for no budget: its polls give their leases back, and its slot is given back too."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.engine.run_through import run_through
from tests.engine.virtual_site import VirtualSite
from tests.virtual_time import pass_time

from afresh.engine.engine import Engine
from afresh.engine.runner.run_context import StopSignal

SLOW: Mapping[str, Any] = MappingProxyType({"budget": "1/m"})


def ran_s(site: VirtualSite, engine: Engine, for_s: float = math.inf, stop_s: float = math.inf) -> float:
    """How long a run took that was to end after ``for_s`` seconds, or by a stop after ``stop_s``."""

    async def work() -> None:
        stop = StopSignal()
        running = asyncio.create_task(run_through(engine, for_s=for_s, stop=stop))
        if stop_s < math.inf:
            await pass_time(stop_s)
            stop.request()
        await running

    begun_s = site.time.elapsed_s()
    site.time.run(work())
    return site.time.elapsed_s() - begun_s


def leases(site: VirtualSite, engine: Engine) -> list[tuple[int, float]]:
    return engine.store.leases.open(site.time.now_s())


@pytest.mark.parametrize("ending", [{"for_s": 10.0}, {"stop_s": 10.0}])
def test_a_poll_that_waits_for_the_budget_ends_with_the_run(tmp_path: Path, ending: dict[str, float]) -> None:
    # robots.txt takes the one request of this minute; the page waits for the next.
    with VirtualSite([0.0] * 3) as site, site.engine(tmp_path, **SLOW) as engine:
        engine.add(site.urls())
        assert ran_s(site, engine, **ending) < 12.0
        assert site.paths == ["/robots.txt"]
        assert leases(site, engine) == []
        assert all(engine.find_item(url).polls == 0 for url in site.urls())


def test_the_slot_of_a_wait_that_ended_is_given_back(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 3) as site, site.engine(tmp_path, **SLOW) as engine:
        engine.add(site.urls())
        for _ in range(3):
            ran_s(site, engine, for_s=10.0)
        ran_s(site, engine, for_s=40.0)
        assert len(site.paths) == 2  # after a minute, not after four


def test_an_answer_that_is_under_way_is_still_waited_for(tmp_path: Path) -> None:
    async def slow(_seen: Any, answer: Any) -> None:
        await pass_time(20.0)
        await answer.send(b"there")

    with VirtualSite(routes={"/slow": slow}) as site, site.engine(tmp_path, budget="1/s") as engine:
        engine.add([f"{site.root}/slow"])
        assert ran_s(site, engine, stop_s=10.0) > 15.0
        assert engine.find_item(f"{site.root}/slow").polls == 1


def test_a_long_wait_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with VirtualSite([0.0] * 3) as site, site.engine(tmp_path, **SLOW) as engine:
        engine.add(site.urls())
        ran_s(site, engine, for_s=20.0)
    told = [words for words in caplog.messages if "waiting" in words]
    assert told == ["waiting for the budget: the next request may be sent in 60 s (budget 1/m)"]


def test_a_listing_that_waits_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with VirtualSite([0.0] * 3) as site, site.engine(tmp_path, **SLOW) as engine:
        begun_s = site.time.elapsed_s()
        engine.add_listings(sitemaps=[f"{site.root}/sitemap.xml"], limit_s=30.0)
        assert site.time.elapsed_s() - begun_s < 32.0
    assert [words for words in caplog.messages if "waiting" in words]


def test_a_short_wait_is_not_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with VirtualSite([0.0] * 3) as site, site.engine(tmp_path, budget="1/s") as engine:
        engine.add(site.urls())
        ran_s(site, engine, for_s=30.0)
    assert not [words for words in caplog.messages if "waiting" in words]
