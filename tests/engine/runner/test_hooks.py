"""Hooks are told of every change: at least once, in order per item, again after failures and restarts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import Answer, Seen, page
from tests.virtual_time import pass_time

from afresh.engine.feed.hook_calls import HookCalls
from afresh.engine.runner.hooks import Hooks
from afresh.engine.threaded_store import ThreadedStore
from afresh.sources.python.user_function import find_function
from afresh.stores.opening import open_store
from afresh.stores.store import Store
from afresh.values.changes import Change
from afresh.values.errors import UsageError
from afresh.values.items import NewItem
from afresh.values.outcome import NewCopy, Observation, Outcome
from afresh.values.stored import Event

TOLD: list[Change] = []
FAIL: set[str] = set()
WHILE_TOLD: list[Callable[[Change], None]] = []


def told(change: Change) -> None:
    """A hook that a test can make fail."""
    if change.item in FAIL:
        raise RuntimeError("not now")
    for other in WHILE_TOLD:
        other(change)
    TOLD.append(change)


async def told_later(change: Change) -> None:
    """The same as a coroutine."""
    TOLD.append(change)


def leave(_: Change) -> None:
    """A hook that takes itself for a script."""
    raise SystemExit(3)


async def leave_later(_: Change) -> None:
    """The same as a coroutine."""
    raise SystemExit(3)


@pytest.fixture(autouse=True)
def _nothing_told() -> Iterator[None]:
    yield
    TOLD.clear()
    FAIL.clear()
    WHILE_TOLD.clear()


class FixedClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time_s = 1000.0

    def now_s(self) -> float:
        return self.time_s

    def elapsed_s(self) -> float:
        return self.time_s


def changed(store: Store, key: str, content: bytes, now_s: float) -> None:
    """Commit a change of an item."""
    item_id = store.items.ids([key])[key]
    lease = store.leases.take([item_id], now_s, 60.0)[0]
    seen = Observation(item_id, now_s, 1.0, changed=True)
    copy = NewCopy(content, "text/plain", content)
    store.commit([Outcome(lease, now_s, now_s + 9, observation=seen, new_copy=copy, event="changed")])


def deliver(store: Store, clock: FixedClock, hook: str | tuple[str, ...], rounds: list[float]) -> None:
    """Deliver at each of these times."""

    async def work() -> None:
        threaded = ThreadedStore(store)
        hooks = Hooks(threaded, clock, {"web": hook}, timeout_s=5.0)
        for time_s in rounds:
            clock.time_s = time_s
            while await hooks.deliver():
                pass
        threaded.close()

    asyncio.run(work())


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        opened.items.add([NewItem(key, "web", "h") for key in ("a", "b")], 0.0)
        yield opened


def test_a_failure_is_tried_again_and_later_events_wait_behind_it(store: Store) -> None:
    clock = FixedClock()
    changed(store, "a", b"1", 1000.0)
    changed(store, "b", b"1", 1000.0)
    FAIL.add("a")
    deliver(store, clock, "tests.engine.runner.test_hooks:told", [1001.0])
    assert [(change.item, change.content) for change in TOLD] == [("b", b"1")]
    assert store.events.waiting() == 1
    FAIL.clear()
    changed(store, "a", b"2", 1001.5)
    deliver(store, clock, "tests.engine.runner.test_hooks:told", [1001.6, 1004.0, 1100.0])
    assert [change.content for change in TOLD if change.item == "a"] == [b"1", b"2"]
    assert store.events.waiting() == 0


def test_events_wait_for_the_one_that_a_killed_process_had_taken(store: Store) -> None:
    for version in (1, 2):
        changed(store, "a", b"%d" % version, 1000.0 + version)
    assert len(store.events.take(1003.0, 1, 10.0)) == 1  # by a process that is killed now
    changed(store, "a", b"3", 1004.0)
    deliver(store, FixedClock(), "tests.engine.runner.test_hooks:told", [1005.0])
    assert TOLD == []
    deliver(store, FixedClock(), "tests.engine.runner.test_hooks:told", [1014.0])
    assert [change.content for change in TOLD] == [b"1", b"2", b"3"]


def test_events_behind_a_slow_delivery_are_not_offered_to_another_worker(store: Store) -> None:
    clock = FixedClock()
    for version in range(4):
        changed(store, "a", b"%d" % version, 1000.0)
    offered: list[Event] = []

    def other_worker(_: Change) -> None:
        clock.time_s += 4.0  # the time-out is 5 s, so that an event is reserved for 10 s
        offered.extend(store.events.take(clock.time_s, 9, 10.0))

    WHILE_TOLD.append(other_worker)
    deliver(store, clock, "tests.engine.runner.test_hooks:told", [1001.0])
    assert offered == []
    assert [change.content for change in TOLD] == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("name", ["leave", "leave_later"])
def test_a_function_that_would_end_the_process_has_only_failed(store: Store, name: str) -> None:
    changed(store, "a", b"1", 1000.0)
    deliver(store, FixedClock(), f"tests.engine.runner.test_hooks:{name}", [1001.0])
    assert store.events.waiting() == 1


def test_a_coroutine_will_do(store: Store) -> None:
    changed(store, "a", b"1", 1000.0)
    deliver(store, FixedClock(), "tests.engine.runner.test_hooks:told_later", [1001.0])
    assert [Change("a", "web", "changed", 1, 1000.0, b"1", size=1, has_content=True)] == TOLD


def test_a_command_gets_the_item_as_arguments_and_the_content_on_stdin(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = (
        "import sys; open(sys.argv[1], 'ab').write(' '.join(sys.argv[2:]).encode() + sys.stdin.buffer.read())"
    )
    changed(store, "a", b" content", 1000.0)
    deliver(store, FixedClock(), (sys.executable, "-c", script, str(out)), [1001.0])
    assert out.read_bytes() == b"changed a content"


@pytest.mark.parametrize("script", ["raise SystemExit(3)", "import time; time.sleep(60)"])
def test_a_command_that_fails_or_hangs_is_tried_again(store: Store, script: str) -> None:
    changed(store, "a", b"1", 1000.0)

    async def work() -> None:
        threaded = ThreadedStore(store)
        hooks = Hooks(threaded, FixedClock(), {"web": (sys.executable, "-c", script)}, timeout_s=0.5)
        assert await hooks.deliver() == 0
        threaded.close()

    asyncio.run(work())
    assert store.events.waiting() == 1


@pytest.mark.parametrize(
    "name", ["nowhere:told", "tests.engine.runner.test_hooks:nothing", "tests.engine.runner.test_hooks:TOLD"]
)
def test_a_hook_that_is_none_is_refused_in_words(name: str) -> None:
    with pytest.raises(UsageError, match="on_change"):
        find_function(name, "on_change")


def test_every_change_of_a_run_is_told(tmp_path: Path) -> None:
    with (
        VirtualSite([1.0] * 5) as site,
        site.engine(tmp_path, source="on_change = 'tests.engine.runner.test_hooks:told'") as engine,
    ):
        engine.add(site.urls())
        done = engine.run(for_s=2.5)
        assert engine.store.events.waiting() == 0
        new = [change for change in TOLD if change.kind == "new"]
        assert len(new) == 5
        assert len(TOLD) - len(new) == done.changes
        for item in {change.item for change in TOLD}:
            versions = [change.version for change in TOLD if change.item == item]
            assert versions == sorted(versions)


def test_a_run_that_ends_by_itself_waits_for_the_hook_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In virtual time: a function of the user would run in a thread, for which that time does not wait."""
    called, served_all = asyncio.Event(), asyncio.Event()

    async def after_the_hook(_seen: Seen, answer: Answer) -> None:
        await called.wait()
        await answer.send(b"2")
        served_all.set()

    async def slow(_calls: HookCalls, _hook: object, change: Change, _tag: object) -> str:
        called.set()
        await served_all.wait()
        if change.content == b"1":
            await pass_time(20.0)  # the run has nothing left to do meanwhile
        TOLD.append(change)
        return ""

    monkeypatch.setattr(HookCalls, "tell_change", slow)
    routes = {"/robots.txt": page(b""), "/1": page(b"1"), "/2": after_the_hook}
    hook = "on_change = 'tests.engine.runner.test_hooks:told'"
    with VirtualSite(routes=routes) as site, site.engine(tmp_path, source=hook) as engine:
        engine.add([f"{site.root}/1", f"{site.root}/2"])
        engine.run(once=True)
        assert engine.store.events.waiting() == 0
    assert sorted(change.content for change in TOLD) == [b"1", b"2"]
