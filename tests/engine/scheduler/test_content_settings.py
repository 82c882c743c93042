"""What was learned under other content settings is forgotten: pages are polled again without their clock."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import numpy as np
import pytest
from tests.engine.living import settings_for
from tests.engine.virtual_site import VirtualSite
from tests.virtual_time import pass_time

from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.reporting.export import write_polls
from afresh.engine.runner.run_context import StopSignal
from afresh.engine.scheduler.content_settings import forget_after_content_change
from afresh.engine.scheduler.restore import unpack_learned
from afresh.engine.scheduler.stored_beliefs import FORGOTTEN
from afresh.engine.state_names import LEARNED
from afresh.values.items import ItemChange

PAGES, BUDGET = 8, "3/s"
QUIET = "respect_robots = false\n"
WITHOUT_CLOCK = QUIET + 'drop = [".clock"]'


class ClockSite(VirtualSite):
    """Pages that never change, but for a clock that all of them show."""

    def __init__(self) -> None:
        super().__init__([0.0] * PAGES)

    def content(self, page: int, version: int) -> bytes:
        now_s = self.time.now_s()
        return f"<p>page {page}, version {version}</p><span class=clock>{now_s:.3f}</span>".encode()


def polled_since(site: ClockSite, since_s: float) -> set[str]:
    return {path for time_s, path in site.requests if time_s > since_s}


def learn_clocks(site: ClockSite, folder: Path) -> Engine:
    """An engine that has found a change with every poll of every page."""
    engine = site.engine(folder, budget=BUDGET, source=QUIET)
    engine.add(site.urls())
    engine.run(for_s=20.0)
    for url in site.urls():
        assert engine.why(url).rate_low > 0.1
    return engine


def test_after_a_restart_pages_that_were_dropped_for_their_clock_are_polled_again(tmp_path: Path) -> None:
    with ClockSite() as site:
        with learn_clocks(site, tmp_path):
            pass
        before_s = site.time.now_s()
        with site.engine(tmp_path, budget=BUDGET, source=WITHOUT_CLOCK) as engine:

            async def begin() -> None:
                run = await engine.open_run(stop=StopSignal())
                assert not run.scheduler.policy.ranking.adaptive.belief.polled.any()
                await run.close()

            site.time.run(begin())
            engine.run(for_s=15.0)
            assert polled_since(site, before_s) == {f"/p/{page}" for page in range(PAGES)}
            for url in site.urls():
                why = engine.why(url)
                assert why.rate_high < 1.0  # by the polls since then alone
                assert math.isfinite(why.interval_s)
            engine.run(for_s=1.0)
            assert engine.store.state.get(LEARNED) is not None  # not forgotten twice


def test_after_a_reload_a_run_polls_them_again(tmp_path: Path) -> None:
    with ClockSite() as site, learn_clocks(site, tmp_path) as engine:

        async def work() -> float:
            run = await engine.open_run(stop=StopSignal())
            running = asyncio.create_task(run.run(for_s=20.0))
            await pass_time(5.0)
            rates = run.scheduler.policy.ranking.adaptive.rates()
            assert rates.min() > 0.1
            run.reload(settings_for(budget=BUDGET, source=WITHOUT_CLOCK))
            reloaded_s = site.time.now_s()
            assert not run.scheduler.policy.ranking.adaptive.belief.polled.any()
            await running
            assert run.scheduler.policy.ranking.adaptive.rates().max() < rates.min()
            return reloaded_s

        reloaded_s = site.time.run(work())
        assert polled_since(site, reloaded_s) == {f"/p/{page}" for page in range(PAGES)}


@pytest.mark.parametrize("way", ["due", "observe"])
def test_programs_that_fetch_themselves_cause_it_too(tmp_path: Path, way: str) -> None:
    with ClockSite() as site:
        with learn_clocks(site, tmp_path):
            pass
        with site.engine(tmp_path, budget=BUDGET, source=WITHOUT_CLOCK) as engine:
            if way == "due":
                engine.due(1, lease_s=60.0)
            else:
                engine.observe([Reported(site.url(0), site.time.now_s(), content=b"<p>new</p>")])
            assert engine.why(site.url(5)).rate_low < 0.1


def test_another_selector_of_one_item_forgets_this_item_alone(tmp_path: Path) -> None:
    with ClockSite() as site, learn_clocks(site, tmp_path) as engine:
        engine.set([site.url(0)], ItemChange(selector="p"))
        assert engine.why(site.url(0)).rate_low < 0.1
        assert engine.why(site.url(1)).rate_low > 0.1
        path = tmp_path / "polls.csv"
        write_polls(engine.store, str(path))
        assert f"{site.url(0)}," not in path.read_text()
        assert f"{site.url(1)}," in path.read_text()
        engine.run(for_s=20.0)
        found = engine.why(site.url(0))
        assert found.rate_high < engine.why(site.url(1)).rate_low
        assert [poll.elapsed_s for poll in found.polls].count(-1.0) == 1


def test_the_same_settings_forget_nothing_and_other_settings_do_once(tmp_path: Path) -> None:
    with ClockSite() as site, learn_clocks(site, tmp_path) as engine:
        same, other = (settings_for(source=source).sources[0].settings for source in (QUIET, WITHOUT_CLOCK))
        assert forget_after_content_change(engine.store, [same], site.time.now_s()) == ()
        assert forget_after_content_change(engine.store, [other], site.time.now_s()) == ("web",)
        sizes = np.concatenate([part.belief_size for part in engine.store.plan.columns()])
        assert (sizes.tolist(), engine.store.state.get(LEARNED)) == ([len(FORGOTTEN)] * PAGES, None)
        assert forget_after_content_change(engine.store, [other], site.time.now_s()) == ()


def test_what_the_items_of_another_source_taught_is_kept(tmp_path: Path) -> None:
    """Half of the items are of a source whose settings stay."""
    quick = 'allow_private = true\ndelay = "0s"\nmin_interval = 0'
    news = f'\n[[source]]\nname = "news"\nkind = "http"\n{quick}\n{QUIET}'
    with ClockSite() as site, site.engine(tmp_path, budget=BUDGET, source=QUIET + news) as engine:
        engine.add(site.urls()[: PAGES // 2])
        engine.add(site.urls()[PAGES // 2 :], source="news")
        engine.run(for_s=20.0)
        before = unpack_learned(engine.store.state.get(LEARNED))
        other = settings_for(source=WITHOUT_CLOCK + news).sources[0].settings
        assert forget_after_content_change(engine.store, [other], site.time.now_s()) == ("web",)
        after = unpack_learned(engine.store.state.get(LEARNED))
        assert before is not None
        assert after is not None
        assert set(after["season.item"].tolist()) == set(range(PAGES // 2, PAGES))
        assert after["season.item"].size == np.count_nonzero(before["season.item"] >= PAGES // 2)
        engine.run(for_s=5.0)
        assert engine.why(site.url(PAGES - 1)).rate_low > 0.1
