"""How hooks are called: in batches, one call at a time, with the content before, and not for ever."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.runner.test_hooks import FixedClock, changed
from tests.waiting import until_async

from afresh.engine.runner.hooks import Hooks
from afresh.engine.settings.hook_rules import HookRules, SourceHook
from afresh.engine.settings.item_views import ItemView, ItemViews
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.threaded_store import ThreadedStore
from afresh.stores.opening import open_store
from afresh.stores.store import Store
from afresh.values.changes import Change
from afresh.values.errors import UsageError
from afresh.values.items import NewItem

HERE = "tests.engine.runner.test_hook_rules"
TOLD: list[Any] = []
FAIL: set[str] = set()
RUNNING: list[str] = []
MOST_AT_ONCE: list[int] = []
WANTED: list[int] = []


def told(given: Any) -> None:
    """A hook that a test can make fail."""
    found = given if isinstance(given, list) else [given]
    if any(change.item in FAIL for change in found):
        raise RuntimeError("not now")
    TOLD.append(given)


async def counted(change: Change) -> None:
    """A hook that lets others run meanwhile."""
    RUNNING.append(change.item)
    MOST_AT_ONCE.append(len(RUNNING))
    await until_async(lambda: max(MOST_AT_ONCE) >= WANTED[-1], "enough calls run")
    for _ in range(100):  # one call too many would be seen
        await asyncio.sleep(0)
    RUNNING.remove(change.item)
    TOLD.append(change)


@pytest.fixture(autouse=True)
def _nothing_told() -> Iterator[None]:
    yield
    for each in (TOLD, RUNNING, MOST_AT_ONCE, WANTED):
        each.clear()
    FAIL.clear()


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        opened.items.add([NewItem(key, "web", "h") for key in "abcdef"], 0.0)
        yield opened


def deliver(
    store: Store,
    hook: str | tuple[str, ...],
    times: Sequence[float],
    *,
    views: ItemViews | None = None,
    finish: bool = False,
    **rules: Any,
) -> None:
    """Deliver at each of these times, in a new process each time this is called."""
    clock = FixedClock()

    async def work() -> None:
        threaded = ThreadedStore(store)
        hooks = {"web": SourceHook(hook, HookRules(**rules))}
        made = Hooks(threaded, clock, hooks, views, timeout_s=5.0)
        for time_s in times:
            clock.time_s = time_s
            while await made.deliver(finish=finish):
                pass
        await made.close()
        threaded.close()

    asyncio.run(work())


def change_all(store: Store, keys: str, content: bytes = b"1", now_s: float = 1000.0) -> None:
    for key in keys:
        changed(store, key, content, now_s)


def batches() -> list[str]:
    return ["".join(change.item for change in batch) for batch in TOLD]


def test_a_batch_is_told_when_it_is_full_or_old_enough(store: Store) -> None:
    change_all(store, "abc")
    deliver(store, f"{HERE}:told", [1004.9], batch=4, within=5.0)
    assert TOLD == []
    change_all(store, "def", now_s=1004.9)
    deliver(store, f"{HERE}:told", [1004.9], batch=4, within=5.0)
    assert batches() == ["abcd", "ef"]  # what was taken with a full batch does not wait
    assert store.events.waiting() == 0


def test_a_run_that_ends_tells_what_waits_for_a_batch(store: Store) -> None:
    change_all(store, "ab")
    deliver(store, f"{HERE}:told", [1000.1], batch=100, within=60.0, finish=True)
    assert batches() == ["ab"]


def test_a_batch_that_fails_comes_again_and_what_fails_is_found(store: Store) -> None:
    change_all(store, "abc")
    FAIL.add("b")
    change_all(store, "b", b"2", 1001.0)
    deliver(store, f"{HERE}:told", [1010.0], batch=2)
    assert batches() == ["c"]  # a and b failed together; the later change of b waits for the earlier one
    deliver(store, f"{HERE}:told", [1020.0, 1040.0, 1080.0], batch=2)
    assert "".join(batches()) == "ca"  # alone after three attempts
    FAIL.clear()
    deliver(store, f"{HERE}:told", [2000.0, 3000.0], batch=2)
    assert [(change.item, change.content) for batch in TOLD for change in batch] == [
        ("c", b"1"),
        ("a", b"1"),
        ("b", b"1"),
        ("b", b"2"),
    ]
    assert store.events.waiting() == 0


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_batch_gives_up_only_the_change_that_fails(attempts: int, store: Store) -> None:
    change_all(store, "abc")
    FAIL.add("b")
    deliver(store, f"{HERE}:told", [1010.0, 1020.0, 1040.0, 1080.0], batch=3, attempts=attempts)
    assert "".join(batches()) == "ac"
    assert [failed.event.key for failed in store.events.failed(9) if failed.is_given_up] == ["b"]
    assert store.events.waiting() == 0


def test_a_command_gets_a_batch_as_lines_of_json(store: Store, tmp_path: Path) -> None:
    change_all(store, "ab")
    change_all(store, "a", b"\xff", 1001.0)
    script = "import sys; open(sys.argv[1], 'w').write(' '.join(sys.argv[2:]) + '\\n' + sys.stdin.read())"
    out = tmp_path / "out"
    deliver(store, (sys.executable, "-c", script, str(out)), [1009.0], batch=9, previous=True)
    head, *lines = out.read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert head == "batch 3"
    assert [(row["item"], row["kind"], row.get("content")) for row in rows] == [
        ("a", "changed", "1"), ("b", "changed", "1"), ("a", "changed", None),
    ]  # fmt: skip
    assert (rows[2]["content_base64"], rows[2]["previous"]) == ("/w==", "1")


def test_views_are_told_one_by_one_after_a_batch(store: Store) -> None:
    views = ItemViews((ItemView("v", ("a",), 0.0, f"{HERE}:told_view"),))
    change_all(store, "ab")
    FAIL.add("v")
    deliver(store, f"{HERE}:told", [1009.0], batch=9, views=views)
    assert batches() == ["ab"]
    assert store.events.waiting() == 1
    FAIL.clear()
    deliver(store, f"{HERE}:told", [1019.0], batch=9, views=views)
    assert batches()[0] == "ab"
    assert len(TOLD) == 2, "the source is not told again"
    assert store.events.waiting() == 0


def told_view(stale: Any) -> None:
    if stale.view in FAIL:
        raise RuntimeError("not now")
    TOLD.append([stale.change])


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), (3, 3)])
def test_one_call_at_a_time_unless_the_settings_allow_more(store: Store, at_once: int, most: int) -> None:
    change_all(store, "abcdef")
    change_all(store, "a", b"2", 1001.0)
    WANTED.append(most)
    deliver(store, f"{HERE}:counted", [1009.0], at_once=at_once)
    assert max(MOST_AT_ONCE) == most
    if at_once == 1:
        assert [change.item for change in TOLD] == list("abcdefa")  # in the order of the commits
    assert [change.content for change in TOLD if change.item == "a"] == [b"1", b"2"]


def test_no_call_begins_while_one_of_the_source_still_runs(store: Store) -> None:
    """A function that does not end within its time goes on: another one beside it could corrupt its data."""
    change_all(store, "ab")
    release, began = threading.Event(), list[str]()

    def stuck(change: Change) -> None:
        began.append(change.item)
        release.wait(60)

    globals()["stuck"] = stuck

    async def work() -> None:
        threaded = ThreadedStore(store)
        made = Hooks(threaded, FixedClock(), {"web": SourceHook(f"{HERE}:stuck")}, timeout_s=0.2)
        await made.deliver()
        release.set()
        await made.close()
        threaded.close()

    asyncio.run(work())
    assert began == ["a"]
    assert next(one.problem for one in store.events.failed(9)).startswith("did not end within")


def test_the_content_before_comes_with_a_diff(store: Store) -> None:
    change_all(store, "a", b"x\ny")
    change_all(store, "a", b"x\nz", 1001.0)
    deliver(store, f"{HERE}:told", [1009.0], previous=True)
    first, second = TOLD
    assert (first.previous, second.previous, second.previous_size) == (None, b"x\ny", 3)
    assert second.diff().splitlines()[-2:] == ["-y", "+z"]
    TOLD.clear()
    change_all(store, "a", b"x", 1010.0)
    deliver(store, f"{HERE}:told", [1019.0])
    assert TOLD[0].previous is None


def test_a_change_is_given_up_after_its_attempts_and_can_be_retried(store: Store) -> None:
    change_all(store, "a")
    change_all(store, "a", b"2", 1001.0)
    FAIL.add("a")
    deliver(store, f"{HERE}:told", [1010.0 + 10 * turn for turn in range(3)], attempts=3)
    (given_up,) = [one for one in store.events.failed(9) if one.is_given_up]
    assert (given_up.event.version, given_up.event.attempts, given_up.problem) == (
        1,
        3,
        "RuntimeError: not now",
    )
    FAIL.clear()
    deliver(store, f"{HERE}:told", [5000.0], attempts=3)
    assert [change.content for change in TOLD] == [b"2"], "later changes do not wait for it"
    assert store.events.retry(6000.0) == 1
    deliver(store, f"{HERE}:told", [6000.0], attempts=3)
    assert [change.content for change in TOLD] == [b"2", b"1"]
    assert store.events.given_up() == 0


def test_a_change_that_only_waits_is_not_an_attempt(store: Store) -> None:
    for version in range(5):
        change_all(store, "a", b"%d" % version, 1000.0 + version)
    FAIL.add("a")
    deliver(store, f"{HERE}:told", [1010.0 + 100 * turn for turn in range(4)])
    FAIL.clear()
    attempts: list[int] = []
    take: Callable[..., list[Any]] = store.events.take
    attempts += [event.attempts for event in take(1e6, 9, 1.0)]
    assert attempts == [5, 1, 1, 1, 1]


def test_the_settings_say_how_a_hook_is_called() -> None:
    text = "[[source]]\nname = 'web'\non_change = 'a:b'\n[source.hook]\n"
    (table,) = parse_settings(f"{text}batch = 100\nwithin = '1m'\nprevious = true").sources
    assert (table.hook.batch, table.hook.within, table.hook.at_once, table.hook.previous) == (
        100,
        60.0,
        1,
        True,
    )
    with pytest.raises(UsageError, match="unknown setting 'bach': did you mean 'batch'"):
        parse_settings(f"{text}bach = 100")
    with pytest.raises(UsageError, match="batch"):
        parse_settings(f"{text}batch = 0")
