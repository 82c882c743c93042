"""Very many items: polls begin with what the store says is due, and go on with all."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.engine.run_through import run_through
from tests.engine.virtual_site import VirtualSite
from tests.virtual_time import pass_time

from afresh.engine.runner import background_load
from afresh.engine.runner.engine_run import Run
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.values.items import ItemChange

PAGES, FIRST = 60, 10


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten items are due at first, of what counts as very many."""
    monkeypatch.setattr(background_load, "MANY", PAGES // 2)
    monkeypatch.setattr(background_load, "_FEWEST", FIRST)
    monkeypatch.setattr(background_load, "_MOST", FIRST)


def waiting(monkeypatch: pytest.MonkeyPatch, site: VirtualSite) -> list[int]:
    """Let all items be taken over only after the first were polled; how many requests there were by then."""
    load_all_items, switch = background_load.load_all_items, background_load.switch_to_all_items
    asked = list[int]()

    async def read_later(*given: object) -> Scheduler | None:
        full = await load_all_items(*given)  # type: ignore[arg-type]
        while len(site.requests) < FIRST:
            await pass_time(0.01)
        return full

    async def noted(*given: object) -> None:
        asked.append(len(site.requests))
        await switch(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("afresh.engine.runner.background_load.load_all_items", read_later)
    monkeypatch.setattr("afresh.engine.runner.background_load.switch_to_all_items", noted)
    return asked


def test_what_is_due_is_polled_while_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with VirtualSite([0.01] * PAGES) as site, site.engine(tmp_path, more="[plan]\naudit_share = 0") as engine:
        engine.add(site.urls())
        asked = waiting(monkeypatch, site)
        run = site.time.run(run_through(engine, for_s=2.5))
        served = Counter(path for _, path in site.requests)
        kept = engine.store.plan.columns_of(run.scheduler.item_rows.ids.tolist())
    assert len(served) == PAGES
    assert run.scheduler.item_rows.size == run.scheduler.policy.ranking.adaptive.rates().size == PAGES
    paths, (number,) = [path for _, path in site.requests], asked
    assert set(paths[:number]) == {f"/p/{page}" for page in range(FIRST)}
    # What was polled by then is known to have been: the others come first.
    assert len(set(paths[number : number + PAGES - FIRST])) == PAGES - FIRST
    np.testing.assert_allclose(run.scheduler.item_rows.polled_s, kept.polled_s, atol=1e-3)
    assert site.twice == []


def test_what_happens_meanwhile_is_followed_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with VirtualSite([0.01] * (PAGES + 1)) as site, site.engine(tmp_path) as engine:
        *old, new = site.urls()
        engine.add(old)
        waiting(monkeypatch, site)

        async def work() -> Run:
            run = await engine.open_run()
            running = asyncio.create_task(run.run(for_s=3.0))
            await pass_time(0.01)
            await asyncio.to_thread(engine.add, [new])
            await asyncio.to_thread(engine.set, [old[-1]], ItemChange(status="paused"))
            await running
            return run

        item_rows = site.time.run(work()).scheduler.item_rows
        assert item_rows.size == PAGES + 1
        assert not item_rows.is_active[PAGES - 1]
        assert {path for _, path in site.requests} >= {f"/p/{PAGES}", "/p/0"}


def test_a_run_may_end_before_all_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with VirtualSite([0.01] * PAGES) as site, site.engine(tmp_path, more="[plan]\naudit_share = 0") as engine:
        engine.add(site.urls())
        never = asyncio.Event()

        async def read_never(*_: object) -> Scheduler | None:
            await never.wait()
            return None

        monkeypatch.setattr("afresh.engine.runner.background_load.load_all_items", read_never)
        assert engine.run(for_s=1.0).polls == FIRST
        # None is polled again before it is due only because the others are not there yet.
        assert sorted(path for _, path in site.requests) == sorted(f"/p/{page}" for page in range(FIRST))


def test_audits_wait_until_all_items_can_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        VirtualSite([0.01] * PAGES) as site,
        site.engine(tmp_path, more="[plan]\naudit_share = 0.5") as engine,
    ):
        engine.add(site.urls())
        assert engine.run(once=True).polls == PAGES
        engine.poll_now(site.urls())
        never = asyncio.Event()

        async def read_never(*_: object) -> Scheduler | None:
            await never.wait()
            return None

        monkeypatch.setattr("afresh.engine.runner.background_load.load_all_items", read_never)
        done = engine.run(for_s=1.0)
        assert done.polls >= FIRST
        # Drawn among what is due they would find too much changed.
        assert done.audits == 0


def test_a_single_round_is_of_all(tmp_path: Path) -> None:
    with VirtualSite([0.01] * PAGES) as site, site.engine(tmp_path) as engine:
        engine.add(site.urls())
        assert engine.run(once=True).polls == PAGES
