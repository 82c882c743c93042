"""The weight of an item view is added to that of its items: in runs, after edits, and for those who fetch."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from tests.engine.living import settings_for
from tests.engine.virtual_site import VirtualSite
from tests.virtual_time import pass_time

from afresh.engine.external_scheduler import ExternalScheduler
from afresh.engine.runner.run_context import StopSignal
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.values.items import ItemChange


def view_of(urls: list[str], weight: float, name: str = "v") -> str:
    return f"[[view]]\nname = '{name}'\nitems = {urls}\nweight = {weight}\n"


def polls_of(site: VirtualSite) -> list[int]:
    paths = [path for _, path in site.requests]
    return [paths.count(f"/p/{page}") for page in range(site.rates.size)]


def test_items_of_a_heavy_view_are_polled_more_often(tmp_path: Path) -> None:
    """Also if they have no weight of their own."""
    with VirtualSite([0.5] * 8) as site:
        with site.engine(tmp_path, budget="2/s", more=view_of(site.urls()[:2], 50.0)) as engine:
            engine.add(site.urls()[:1], weight=0.0)
            engine.add(site.urls()[1:])
            engine.run(for_s=20.0)
        polls = polls_of(site)
        assert min(polls[:2]) > 1.5 * max(polls[2:])


def test_a_reload_changes_the_weights_of_a_run_and_new_items_get_theirs(tmp_path: Path) -> None:
    with VirtualSite([0.5] * 12) as site:
        engine = site.engine(tmp_path, budget="4/s")
        with engine:
            engine.add(site.urls()[1:])

            async def work() -> list[list[float]]:
                stop = StopSignal()
                run = await engine.open_run(stop=stop)
                seen: list[list[float]] = []

                def weigh() -> None:
                    seen.append(run.scheduler.item_rows.weight.tolist())

                async def steps() -> None:
                    await pass_time(2.0)
                    heavy = view_of([site.url(0), site.url(1)], 5.0)
                    assert run.reload(settings_for(budget="4/s", more=heavy)) == []
                    await pass_time(2.0)
                    weigh()
                    engine.add([site.url(0)])
                    await pass_time(2.0)
                    weigh()
                    engine.set([site.url(1)], ItemChange(weight=2.0))
                    await pass_time(2.0)
                    weigh()
                    run.reload(settings_for(budget="4/s"))
                    await pass_time(2.0)
                    weigh()
                    stop.request()

                task = asyncio.create_task(steps())
                await run.run()
                await task
                return seen

            loaded, added, edited, removed = site.time.run(work())
    assert loaded == [6.0] + [1.0] * 10
    assert added == [6.0] + [1.0] * 10 + [6.0]
    assert edited == [7.0] + [1.0] * 10 + [6.0]
    assert removed == [2.0] + [1.0] * 11


def test_those_who_fetch_themselves_get_the_same_weights(tmp_path: Path) -> None:
    with VirtualSite([0.5] * 6) as site:
        more = view_of([site.url(0), site.url(5)], 50.0)
        with site.engine(tmp_path, budget="1/s", more=more) as engine:
            engine.add(site.urls()[:5])
            engine.run(for_s=30.0)
            site.time.passed_s += 20.0
            (best, *_) = engine.due(5, within_budget=False)
            assert best.key == site.url(0)
            external = ExternalScheduler(engine.store, site.time)
            external.refresh(engine.current(), site.time.now_s())
            engine.add([site.url(5)])
            found = external.refresh(engine.current(), site.time.now_s()).item_rows
            assert found.weight.tolist() == [51.0, 1.0, 1.0, 1.0, 1.0, 51.0]


def test_why_and_the_plan_of_an_item_speak_of_the_weight_with_its_views(tmp_path: Path) -> None:
    with VirtualSite([0.5] * 3) as site:
        more = view_of(site.urls()[:2], 3.0) + view_of(site.urls()[1:2], 0.5, "w")
        with site.engine(tmp_path, more=more) as engine:
            engine.add(site.urls()[:2], weight=0.0)
            engine.add(site.urls()[2:], weight=0.0)
            engine.run(for_s=5.0)
            first, second, third = (engine.why(url).reasons for url in site.urls())
    assert "its weight is 3, because views add theirs: 'v' (3)" in first
    assert "its weight is 3.5, because views add theirs: 'v' (3), 'w' (0.5)" in second
    assert any("its weight is 0: it is polled only when nothing else" in words for words in third)
    assert not any("its weight is 0:" in words for words in (*first, *second))


def test_weights_can_be_taken_back_exactly() -> None:
    rows = ItemRows({2: 0.1})
    rows.ids, rows.size = np.array([1, 2]), 2
    rows.weight, rows.own_weight = np.array([0.3, 0.3]), np.array([0.3, 0.3])
    assert rows.set_view_weights({1: 0.2}).tolist() == [1, 0]
    assert rows.weight.tolist() == [0.5, 0.3]
    rows.set_view_weights({})
    assert rows.weight.tolist() == pytest.approx([0.3, 0.3], abs=0.0)
