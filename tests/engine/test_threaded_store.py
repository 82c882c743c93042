"""The store as an event loop uses it: order of calls, retries, trouble that is said once, cancellation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from threading import Event

import pytest
from tests.virtual_time import VirtualTime

from afresh.engine.logs import LOGGER
from afresh.engine.threaded_store import ThreadedStore
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreVersionError,
)


@pytest.fixture
def threaded() -> Iterator[ThreadedStore]:
    with MemoryStore() as store:
        opened = ThreadedStore(store)
        yield opened
        opened.close()


def test_a_call_waits_until_the_store_works_again(caplog: pytest.LogCaptureFixture) -> None:
    failures = [StoreFullError("the disk is full")] * 3
    troubles: list[str] = []

    async def work() -> str:
        store = ThreadedStore(MemoryStore())

        def once() -> str:
            if failures:
                raise failures.pop()
            troubles.append(store.trouble)
            return "done"

        try:
            return await store.run(once)
        finally:
            troubles.append(store.trouble)
            store.close()

    with caplog.at_level(logging.INFO, LOGGER.name):
        assert VirtualTime().run(work()) == "done"
    assert troubles == ["the disk is full", ""]
    assert [record.getMessage() for record in caplog.records] == [
        "the store cannot be written: waiting",
        "the store works again",
    ]


def test_calls_keep_their_order_and_the_store_stays_open() -> None:
    async def work(store: MemoryStore) -> list[bytes | None]:
        threaded = ThreadedStore(store)
        names = [f"name {number}" for number in range(20)]
        await asyncio.gather(*(threaded.run(store.state.set, {"last": name.encode()}) for name in names))
        threaded.close()
        return [store.state.get("last")]

    assert asyncio.run(work(MemoryStore())) == [b"name 19"]


class Unreliable:
    """Fails with these errors, one after the other, and works then."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


class Waits(list[float]):
    """A sleep that only writes down how long it was asked to last."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)


def said(caplog: pytest.LogCaptureFixture) -> list[str | None]:
    """The problem of every line of the log; None where a line has none."""
    return [vars(record)["fields"].get("problem") for record in caplog.records]


def test_calls_run_in_the_order_in_which_they_were_begun(threaded: ThreadedStore) -> None:
    ran: list[int] = []

    async def use() -> None:
        await asyncio.gather(*(threaded.run(lambda n=n: ran.append(n)) for n in range(50)))  # type: ignore[misc]

    asyncio.run(use())
    assert ran == list(range(50))


def test_a_store_that_cannot_be_used_is_tried_again_with_growing_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waits = Waits()
    threaded = ThreadedStore(MemoryStore(), waits.sleep)
    work = Unreliable(*[StoreLockedError("is locked")] * 7, StoreFullError("is full"))

    async def use() -> None:
        assert await threaded.run(work) == "done"
        assert threaded.trouble == ""
        assert await threaded.run(Unreliable()) == "done"
        threaded.close()

    with caplog.at_level(logging.INFO, LOGGER.name):
        asyncio.run(use())
    assert work.calls == 9
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert said(caplog) == ["is locked", "is full", None]  # each trouble once, and its end


def test_a_call_that_works_at_once_does_not_end_the_trouble_of_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def use() -> None:
        async def read_meanwhile(_: float) -> None:
            assert await full.run(Unreliable()) == "done"  # a full disk can be read from
            assert full.trouble == "is full"

        full = ThreadedStore(MemoryStore(), read_meanwhile)
        assert await full.run(Unreliable(StoreFullError("is full"))) == "done"
        full.close()

    with caplog.at_level(logging.INFO, LOGGER.name):
        asyncio.run(use())
    assert said(caplog) == ["is full", None]


@pytest.mark.parametrize(
    "error", [StoreCorruptError("is damaged"), StoreVersionError("is newer"), ValueError("no")]
)
def test_what_does_not_get_better_is_raised_at_once(threaded: ThreadedStore, error: Exception) -> None:
    work = Unreliable(error)
    with pytest.raises(type(error)):
        asyncio.run(threaded.run(work))
    assert work.calls == 1


def test_without_retry_the_first_failure_is_raised(threaded: ThreadedStore) -> None:
    work = Unreliable(StoreLockedError("is locked"))
    with pytest.raises(StoreError, match="is locked"):
        asyncio.run(threaded.run_once(work))
    assert work.calls == 1


def test_a_cancelled_call_is_completed_if_it_has_begun_and_never_run_if_not(
    threaded: ThreadedStore,
) -> None:
    begun, may_end, ran = Event(), Event(), list[str]()

    def first() -> None:
        begun.set()
        assert may_end.wait(30)
        ran.append("first")

    async def use() -> None:
        running = asyncio.create_task(threaded.run(first))
        waiting = asyncio.create_task(threaded.run(lambda: ran.append("second")))
        await asyncio.to_thread(begun.wait, 30)
        for task in (running, waiting):
            task.cancel()
        for task in (running, waiting):
            with pytest.raises(asyncio.CancelledError):
                await task
        may_end.set()
        await threaded.run_once(lambda: ran.append("third"))

    asyncio.run(use())
    assert ran == ["first", "third"]


def test_a_cancelled_call_is_not_tried_again() -> None:
    work = Unreliable(StoreLockedError("is locked"))

    async def use() -> None:
        asleep = asyncio.Event()

        async def sleep(_: float) -> None:
            asleep.set()
            await asyncio.Event().wait()

        threaded = ThreadedStore(MemoryStore(), sleep)
        task = asyncio.create_task(threaded.run(work))
        await asleep.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        threaded.close()

    asyncio.run(use())
    assert work.calls == 1


def test_long_work_beside_keeps_no_other_call_waiting(threaded: ThreadedStore) -> None:
    goes_on, failures = Event(), [StoreLockedError("the store is locked")]

    def long() -> str:
        if failures:
            raise failures.pop()
        assert goes_on.wait(60)
        return "done"

    async def work() -> str:
        beside = asyncio.create_task(threaded.run_beside(long))
        for _ in range(3):
            await threaded.run(threaded.sync.state.get, "name")
        assert not beside.done()
        goes_on.set()
        return await beside

    assert asyncio.run(work()) == "done"
    assert failures == []
