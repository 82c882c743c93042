"""Hooks of item views: told of every change of an item, at least once, in order, and one call at a time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.engine.living import settings_for
from tests.engine.runner.test_hooks import FixedClock, changed
from tests.engine.virtual_site import VirtualSite
from tests.virtual_time import pass_time

from afresh.engine.runner.hooks import Hooks, StaleView
from afresh.engine.settings.item_views import ItemView, ItemViews
from afresh.engine.state_names import HOOKS
from afresh.engine.threaded_store import ThreadedStore
from afresh.stores.opening import open_store
from afresh.stores.store import Store
from afresh.values.changes import Change
from afresh.values.errors import UsageError
from afresh.values.items import NewItem

HERE = "tests.engine.runner.test_hooks_of_views"
TOLD: list[Change | StaleView] = []
FAIL: set[str] = set()
RUNNING: list[str] = []
MOST_AT_ONCE: list[int] = []


def told_source(change: Change) -> None:
    TOLD.append(change)


def told(stale: StaleView) -> None:
    """A hook that a test can make fail for some views."""
    if stale.view in FAIL:
        raise RuntimeError("not now")
    TOLD.append(stale)


async def slow(stale: StaleView) -> None:
    """A hook that lets others run meanwhile."""
    RUNNING.append(stale.view)
    MOST_AT_ONCE.append(RUNNING.count(stale.view))
    await asyncio.sleep(0)
    RUNNING.remove(stale.view)


@pytest.fixture(autouse=True)
def _nothing_told() -> Iterator[None]:
    yield
    for each in (TOLD, RUNNING, MOST_AT_ONCE):
        each.clear()
    FAIL.clear()


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        opened.items.add([NewItem(key, "web", "h") for key in ("a", "b", "c")], 0.0)
        yield opened


def views(on_stale: str | tuple[str, ...] = f"{HERE}:told") -> ItemViews:
    return ItemViews((ItemView("ab", ("a", "b"), 0.0, on_stale), ItemView("b", ("b",), 0.0, on_stale)))


def deliver(
    store: Store,
    rounds: Sequence[float],
    *,
    of_source: bool = False,
    on_stale: str | tuple[str, ...] = f"{HERE}:told",
) -> None:
    """Deliver at each of these times, in a new process each time this is called."""
    clock = FixedClock()

    async def work() -> None:
        threaded = ThreadedStore(store)
        hooks = {"web": f"{HERE}:told_source"} if of_source else {}
        made = Hooks(threaded, clock, hooks, views(on_stale), timeout_s=5.0)
        for time_s in rounds:
            clock.time_s = time_s
            while await made.deliver():
                pass
        threaded.close()

    asyncio.run(work())


def words() -> list[tuple[str, str]]:
    """Who was told of which item: "" is the source."""
    return [(one.view, one.change.item) if isinstance(one, StaleView) else ("", one.item) for one in TOLD]


def test_the_source_and_each_view_of_the_item_are_told(store: Store) -> None:
    changed(store, "b", b"1", 1000.0)
    changed(store, "c", b"1", 1000.0)
    deliver(store, [1001.0], of_source=True)
    assert sorted(words()) == [("", "b"), ("", "c"), ("ab", "b"), ("b", "b")]
    assert StaleView("ab", Change("b", "web", "changed", 1, 1000.0, b"1", size=1, has_content=True)) in TOLD
    assert store.events.waiting() == 0


def test_only_the_hook_that_failed_is_told_again_also_by_another_process(store: Store) -> None:
    changed(store, "b", b"1", 1000.0)
    FAIL.add("ab")
    deliver(store, [1001.0], of_source=True)
    assert words() == [("", "b"), ("b", "b")]
    changed(store, "b", b"2", 1001.5)
    deliver(store, [1001.6], of_source=True)
    assert len(TOLD) == 2, "the second change waits for the first"
    FAIL.clear()
    deliver(store, [1010.0], of_source=True)
    assert words() == [("", "b"), ("b", "b"), ("ab", "b"), ("", "b"), ("ab", "b"), ("b", "b")]
    versions = [one.change.version for one in TOLD if isinstance(one, StaleView) and one.view == "ab"]
    assert versions == [1, 2]
    assert store.events.waiting() == 0


def test_what_an_older_afresh_saved_is_read(store: Store) -> None:
    changed(store, "a", b"1", 1000.0)
    (event,) = store.events.take(1000.0, 1, 0.0)
    store.state.set({HOOKS: f'{{"{event.item_id}": [{event.id}, 1002.0]}}'.encode()})
    deliver(store, [1003.0])
    assert words() == [("ab", "a")]


def test_a_view_is_told_of_one_change_at_a_time(store: Store) -> None:
    for key in ("a", "b"):
        changed(store, key, b"1", 1000.0)
    deliver(store, [1001.0], on_stale=f"{HERE}:slow")
    assert MOST_AT_ONCE == [1, 1, 1]


def test_a_command_gets_kind_view_and_item_as_arguments(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = "import sys; open(sys.argv[1], 'a').write('|'.join(sys.argv[2:]) + sys.stdin.read())"
    changed(store, "a", b" content", 1000.0)
    deliver(store, [1001.0], on_stale=(sys.executable, "-c", script, str(out)))
    assert out.read_text() == "changed|ab|a content"


def test_a_function_that_cannot_be_found_changes_nothing(store: Store) -> None:
    threaded = ThreadedStore(store)
    hooks = Hooks(threaded, FixedClock(), {}, views(), timeout_s=5.0)
    with pytest.raises(UsageError, match="on_stale 'nowhere:told' cannot be found"):
        hooks.replace_hooks({}, views("nowhere:told"), timeout_s=5.0)
    changed(store, "a", b"1", 1000.0)
    asyncio.run(hooks.deliver())
    assert words() == [("ab", "a")]
    threaded.close()


def test_a_run_tells_a_view_of_every_change_of_its_items_and_of_no_other(tmp_path: Path) -> None:
    with VirtualSite([1.0] * 3) as site:
        table = f"[[view]]\nname = 'two'\nitems = {site.urls()[:2]}\non_stale = '{HERE}:told'"
        with site.engine(tmp_path, more=table) as engine:
            engine.add(site.urls())
            engine.run(for_s=2.5)
            assert engine.store.events.waiting() == 0
            engine.remove([site.url(0), site.url(2)])
            engine.run(for_s=1.0)
            assert engine.store.events.waiting() == 0
            items = engine.store.items.by_id([2])
    stale = [one for one in TOLD if isinstance(one, StaleView)]
    assert {one.view for one in stale} == {"two"}
    assert {one.change.item for one in stale} == set(site.urls()[:2])
    kinds = [one.change.kind for one in stale if one.change.item == site.url(0)]
    assert (kinds[0], set(kinds[1:-1]), kinds[-1]) == ("new", {"changed"}, "removed")
    second = [one.change.version for one in stale if one.change.item == site.url(1)]
    assert second == list(range(1, items[0].version + 1))


def test_a_reload_adds_and_removes_the_hooks_of_views(tmp_path: Path) -> None:
    with VirtualSite([3.0]) as site, site.engine(tmp_path) as engine:
        engine.add(site.urls())
        table = f"[[view]]\nname = 'v'\nitems = {site.urls()}\non_stale = '{HERE}:told'"
        counts = []

        async def work() -> None:
            run = await engine.open_run()

            async def steps() -> None:
                for settings in (settings_for(), settings_for(more=table), settings_for()):
                    run.reload(settings)
                    await pass_time(2.0)
                    counts.append(len(TOLD))
                run.stop()

            task = asyncio.create_task(steps())
            await run.run()
            await task

        site.time.run(work())
    assert counts[0] == 0 < counts[1] == counts[2]
