"""Every way in learns the same: a run, single rounds and polls by the caller are about equally fresh."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.engine.steady_world import SteadyWorld
from tests.slow_cases import with_slow_cases

from afresh.engine.logs import LOGGER

ROUND_S = 2.0
WAYS = ["leases", "no leases", "contents", "rounds"]
_SMALL, _WHOLE = (30, 80.0), (100, 300.0)


@cache
def live(way: str, pages: int, lasts_s: float, jumps: bool) -> tuple[float, float, float]:
    """A tuple (freshness, share of the budget that is spent, most requests at once beyond the rate)."""
    burst = ROUND_S * pages / 10.0 if way == "rounds" else None
    with TemporaryDirectory() as folder:
        world = SteadyWorld(Path(folder), pages, lasts_s, jumps=jumps, burst=burst)
        if way == "run":
            world.run()
        elif way == "rounds":
            world.run_once(ROUND_S)
        else:
            world.fetch(0.5, leased=way == "leases", bits=way != "contents")
        assert world.most_at_once() <= (burst or world.budget_per_s)
        return world.freshness(), world.spent(), world.most_at_once()


def compare(way: str, size: tuple[int, float], *, jumps: bool) -> None:
    """A way in spends the budget, and is as fresh as a run."""
    freshness, spent, _ = live(way, *size, jumps)
    assert spent >= 0.95
    assert freshness >= live("run", *size, jumps)[0] - (0.04 if way == "rounds" else 0.02)


@pytest.mark.parametrize("way", with_slow_cases(["leases", "no leases", "rounds"], kept=1))
def test_every_way_in_is_as_fresh_as_a_run(way: str) -> None:
    compare(way, _SMALL, jumps=False)


@pytest.mark.slow
@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_is_as_fresh_as_a_run_of_a_hundred_pages(way: str, jumps: bool) -> None:
    """Also if a fifth of the rates rise tenfold in the middle."""
    compare(way, _WHOLE, jumps=jumps)


def test_no_page_waits_for_ever(tmp_path: Path) -> None:
    world = SteadyWorld(tmp_path, 20, 60.0)
    world.fetch(0.5, leased=True)
    with world.engine() as engine:
        due_s = [item.due_s for item in engine.store.items.by_id(list(range(1, 21)))]
        assert max(due_s) < world.end_s + 300.0
        assert max(engine.why(url).next_s for url in world.site.urls()) < world.end_s + 300.0


def test_a_round_warns_if_the_burst_does_not_cover_the_time_since_the_last(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    LOGGER.addHandler(caplog.handler)
    try:
        world = SteadyWorld(tmp_path, 20, 7.0, burst=4.0)
        world.run_once(2.0)
        assert "the burst does not cover" not in caplog.text
        world.site.time.passed_s += 4.0
        with world.engine() as engine:
            engine.run(once=True)
        assert "the burst does not cover the time since the last run" in caplog.text
        caplog.clear()
        with world.engine() as engine:  # a run that goes on spends what comes in; the next round has little
            world.site.time.passed_s += 60.0
            engine.run(for_s=30.0)
            engine.run(once=True)
        assert "the burst does not cover" not in caplog.text
    finally:
        LOGGER.removeHandler(caplog.handler)
