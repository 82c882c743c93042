"""Sources while the engine runs: exchanged on new settings, polled in bulks, their manners kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import Answer, Seen
from tests.virtual_time import pass_time

from afresh.engine.engine import Engine
from afresh.engine.runner.engine_run import Run
from afresh.engine.settings.tables import Settings
from afresh.sources.capabilities import share_cost
from afresh.sources.context import SourceContext
from afresh.sources.registry import SourceKind
from afresh.sources.settings import SourceSettings
from afresh.values.fetched import Fetched
from afresh.values.items import ItemChange
from afresh.values.lease import Lease
from afresh.values.listing import Listing


def with_source(settings: Settings, **changes: object) -> Settings:
    """The same settings, but for some of the first source's."""
    table = settings.sources[0]
    return replace(settings, sources=(replace(table, settings=table.settings.model_copy(update=changes)),))


async def until(true: Callable[[], bool], what: str) -> None:
    """Wait until ``true()``, in virtual time; a test that waits for ever fails."""
    for _ in range(400):
        if true():
            return
        await pass_time(0.05)
    raise AssertionError(f"waited in vain: {what}")


async def reloaded(
    engine: Engine, change: Callable[[Settings], Settings], until_sent: Callable[[Run], bool]
) -> list[str]:
    """Run, take other settings once something was polled, wait, stop; the words of the reload."""
    run = await engine.open_run()
    running = asyncio.create_task(run.run(for_s=60.0))
    await until(lambda: run.progress().polls >= 5, "first polls")
    words = run.reload(change(run.settings))
    await until(lambda: until_sent(run), "polls by the new source")
    run.stop()
    await running
    return words


def test_a_source_with_other_settings_takes_over_while_the_engine_runs(tmp_path: Path) -> None:
    with VirtualSite([5.0] * 10) as site, site.engine(tmp_path, budget="50/s") as engine:
        engine.add(site.urls())

        def change(settings: Settings) -> Settings:
            return with_source(settings, user_agent="another/2.0 (test)")

        def is_new(_run: Run) -> bool:
            return site.headers.get("user-agent", "").startswith("another")

        words = site.time.run(reloaded(engine, change, is_new))
        assert words == ["source 'web' has other settings: user_agent"]
        assert site.twice == []
        assert site.paths.count("/robots.txt") == 1  # the new one was told what the old one knew


def test_a_source_that_is_gone_is_polled_no_more_and_one_that_is_new_is(tmp_path: Path) -> None:
    with VirtualSite([5.0] * 4) as site, site.engine(tmp_path, budget="50/s") as engine:
        engine.add(site.urls())

        def change(settings: Settings) -> Settings:
            table = settings.sources[0]
            renamed = replace(table, settings=table.settings.model_copy(update={"name": "other"}))
            return replace(settings, sources=(renamed,))

        words = site.time.run(reloaded(engine, change, lambda run: run.context.sources.names() == ["other"]))
        assert words == ["source 'web' is removed", "source 'other' is new"]


def test_wrong_settings_change_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        opened = await engine.open_run(only=[])
        before = opened.context.sources.get("web")
        table = opened.settings.sources[0]

        def broken(_settings: SourceSettings, _around: SourceContext) -> Shelf:
            raise ValueError("no")

        kind = SourceKind(SourceSettings, broken)
        with pytest.raises(ValueError, match="no"):
            opened.reload(replace(opened.settings, sources=(replace(table, kind=kind),)))
        assert opened.context.sources.get("web") is before
        await opened.close()

    with VirtualSite() as site, site.engine(tmp_path) as engine:
        site.time.run(run())


def test_a_host_that_asked_for_rest_rests_over_a_restart_and_status_says_why(tmp_path: Path) -> None:
    async def busy(_seen: Seen, answer: Answer) -> None:
        await answer.send(b"", 503, Retry_After="300")

    site = VirtualSite(routes={"/busy": busy})
    with site.engine(tmp_path) as engine:
        engine.add([site.root + "/busy"])
        engine.run(for_s=1.5)
        (group,) = engine.status().groups
        assert group.why == "503 Service Unavailable"
        assert group.rests_until_s > site.time.now_s() + 200
    asked = len(site.paths)
    with site.engine(tmp_path) as engine:
        engine.poll_now([site.root + "/busy"])
        engine.run(for_s=5.0)
    assert len(site.paths) == asked


def test_an_items_own_selector_decides_what_is_a_change(tmp_path: Path) -> None:
    clock = iter(range(1000))

    async def ticking(_seen: Seen, answer: Answer) -> None:
        body = f"<p id=price>7</p><p id=clock>{next(clock)}</p>".encode()
        await answer.send(body, Content_Type="text/html")

    site = VirtualSite(routes={"/a": ticking, "/b": ticking})
    first, second = site.root + "/a", site.root + "/b"
    with site.engine(tmp_path) as engine:
        engine.add([first], selector="#price")
        engine.add([second])
        engine.set([second], ItemChange(selector="#clock"))
        for _ in range(3):
            engine.poll_now([first, second])
            engine.run(once=True)
        assert engine.why(first).item.changes == 0
        assert engine.why(second).item.changes == 2
        assert engine.why(first).item.selector == "#price"


class ShelfSettings(SourceSettings):
    """A source that looks at several items at once."""

    kind: str = "shelf"


class Shelf:
    """Counts its requests; item n has changed whenever n is even."""

    limit = 8
    bulks: list[int]

    def __init__(self, settings: ShelfSettings, around: SourceContext) -> None:
        self.name, self._around = settings.name, around
        Shelf.bulks = []

    def group(self, key: str) -> str:
        del key
        return "shelf"

    def ready_s(self, group: str, now_s: float) -> float:
        del group
        return now_s

    def bulk_limit(self, group: str) -> int:
        del group
        return self.limit

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        return (await self.poll_many([lease], conditional=conditional))[0]

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        del conditional
        await self._around.admit("shelf")
        Shelf.bulks.append(len(leases))
        found = [
            Fetched("content", content=lease.key.encode(), normal_hash=lease.key.encode())
            if lease.content_hash is None
            else Fetched("unchanged")
            for lease in leases
        ]
        return share_cost(found, requests=1, seconds=0.01)

    async def listings(self) -> AsyncIterator[Listing]:
        nothing: tuple[Listing, ...] = ()
        for listing in nothing:
            yield listing

    async def close(self) -> None:
        pass


def test_a_source_that_can_is_asked_for_many_items_with_one_request(tmp_path: Path) -> None:
    kind = SourceKind(ShelfSettings, Shelf)
    with VirtualSite() as site, site.engine(tmp_path, budget="20/s") as engine:
        table = replace(engine.settings.sources[0], settings=ShelfSettings(name="web"), kind=kind)
        engine.settings = replace(engine.settings, sources=(table,))
        engine.add([f"box {number}" for number in range(50)])
        done = engine.run(once=True)
        assert (done.polls, done.failures) == (50, 0)
        assert done.requests == len(Shelf.bulks) <= 10
        assert max(Shelf.bulks) == Shelf.limit
        assert engine.store.ledger.total(0.0, 1e12).requests == done.requests
        assert engine.get("box 49") is not None


def test_caps_of_groups_are_kept_evenly_and_over_restarts(tmp_path: Path) -> None:
    with VirtualSite([1.0] * 30) as site:
        more = f"[plan]\ncaps = {{ '127.0.0.1:{site.port}' = '4/s' }}"
        for _ in range(2):
            with site.engine(tmp_path, budget="100/s", more=more) as engine:
                engine.add(site.urls())
                assert engine.status().absorbed_per_s == 4.0
                engine.run(for_s=1.5)
        times = sorted(time_s for time_s, _ in site.requests)
        assert len(times) >= 10
        assert min(later - sooner for sooner, later in pairwise(times)) > 0.249


def test_a_budget_for_each_item_follows_their_number(tmp_path: Path) -> None:
    with VirtualSite([1.0] * 20) as site, site.engine(tmp_path, budget="2/item/s") as engine:
        engine.add(site.urls()[:5])
        assert engine.current().budget.requests == 10.0

        async def run() -> float:
            opened = await engine.open_run()
            running = asyncio.create_task(opened.run(for_s=60.0))
            await until(lambda: opened.progress().polls >= 5, "first polls")
            await asyncio.to_thread(engine.add, site.urls())
            await until(lambda: opened.settings.budget.requests == 40.0, "the budget of twenty")
            opened.stop()
            await running
            return opened.scheduler.policy.ranking.budget_per_s

        assert site.time.run(run()) == 40.0
