"""The awaited store: order of calls, retries while the database is away, and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from tests.stores.backends import new_items

from afresh.stores import store as contract
from afresh.stores.async_store import AsyncStore, StoreCalls
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreVersionError,
)


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    """The store's one thread."""
    with ThreadPoolExecutor(max_workers=1) as executor:
        yield executor


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


def test_every_group_is_awaited_with_the_same_parameters_and_results(thread: ThreadPoolExecutor) -> None:
    async def use() -> None:
        with MemoryStore() as plain:
            store = AsyncStore(plain, StoreCalls(thread).call_with_retry)
            assert await store.items.add(new_items(2), now_s=0.0) == 2
            ids = await store.items.ids(["k0", "k1", "unknown"])
            assert [item.key for item in await store.items.by_id(list(ids.values()))] == ["k0", "k1"]
            (lease,) = await store.leases.take([ids["k1"]], 1.0, 60.0, worker="me")
            assert (lease.key, lease.worker) == ("k1", "me")
            await store.state.set({"a": b"1"})
            assert await store.state.get("a") == plain.state.get("a") == b"1"
            assert await store.commit([]) == []

    asyncio.run(use())


def test_no_method_of_the_store_is_missing(thread: ThreadPoolExecutor) -> None:
    store = AsyncStore(MemoryStore(), StoreCalls(thread).call)
    iterators = {("plan", "columns"), ("observations", "read")}
    for group in [name for name, value in vars(contract.Store).items() if isinstance(value, property)]:
        protocol = vars(contract.Store)[group].fget.__annotations__["return"]
        for method in [name for name in vars(getattr(contract, protocol)) if not name.startswith("_")]:
            assert hasattr(getattr(store, group), method) != ((group, method) in iterators), (group, method)


def test_calls_run_in_the_order_in_which_they_were_begun(thread: ThreadPoolExecutor) -> None:
    ran: list[int] = []

    async def use() -> None:
        calls = StoreCalls(thread)
        await asyncio.gather(*(calls.call_with_retry(lambda n=n: ran.append(n)) for n in range(50)))  # type: ignore[misc]

    asyncio.run(use())
    assert ran == list(range(50))


def test_a_store_that_cannot_be_used_is_tried_again_with_growing_waits(thread: ThreadPoolExecutor) -> None:
    said: list[str] = []
    waits = Waits()
    work = Unreliable(*[StoreLockedError("is locked")] * 7, StoreFullError("is full"))

    async def use() -> None:
        calls = StoreCalls(thread, said.append, waits.sleep)
        assert await calls.call_with_retry(work) == "done"
        assert calls.trouble == ""
        assert await calls.call_with_retry(Unreliable()) == "done"

    asyncio.run(use())
    assert work.calls == 9
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert said == ["is locked", "is full", ""]  # each trouble once, and its end


def test_a_call_that_works_at_once_does_not_end_the_trouble_of_another(thread: ThreadPoolExecutor) -> None:
    said: list[str] = []

    async def use() -> None:
        async def read_meanwhile(_: float) -> None:
            assert await calls.call_with_retry(Unreliable()) == "done"  # a full disk can be read from
            assert calls.trouble == "is full"

        calls = StoreCalls(thread, said.append, read_meanwhile)
        assert await calls.call_with_retry(Unreliable(StoreFullError("is full"))) == "done"

    asyncio.run(use())
    assert said == ["is full", ""]


@pytest.mark.parametrize(
    "error", [StoreCorruptError("is damaged"), StoreVersionError("is newer"), ValueError("no")]
)
def test_what_does_not_get_better_is_raised_at_once(thread: ThreadPoolExecutor, error: Exception) -> None:
    work = Unreliable(error)
    with pytest.raises(type(error)):
        asyncio.run(StoreCalls(thread).call_with_retry(work))
    assert work.calls == 1


def test_without_retry_the_first_failure_is_raised(thread: ThreadPoolExecutor) -> None:
    work = Unreliable(StoreLockedError("is locked"))
    with pytest.raises(StoreError, match="is locked"):
        asyncio.run(StoreCalls(thread).call(work))
    assert work.calls == 1


def test_a_cancelled_call_is_completed_if_it_has_begun_and_never_run_if_not(
    thread: ThreadPoolExecutor,
) -> None:
    begun, may_end, ran = Event(), Event(), list[str]()

    def first() -> None:
        begun.set()
        assert may_end.wait(30)
        ran.append("first")

    async def use() -> None:
        calls = StoreCalls(thread)
        running = asyncio.create_task(calls.call_with_retry(first))
        waiting = asyncio.create_task(calls.call_with_retry(lambda: ran.append("second")))
        await asyncio.to_thread(begun.wait, 30)
        for task in (running, waiting):
            task.cancel()
        for task in (running, waiting):
            with pytest.raises(asyncio.CancelledError):
                await task
        may_end.set()
        await calls.call(lambda: ran.append("third"))

    asyncio.run(use())
    assert ran == ["first", "third"]


def test_a_cancelled_call_is_not_tried_again(thread: ThreadPoolExecutor) -> None:
    work = Unreliable(StoreLockedError("is locked"))

    async def use() -> None:
        asleep = asyncio.Event()

        async def sleep(_: float) -> None:
            asleep.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(StoreCalls(thread, sleep=sleep).call_with_retry(work))
        await asleep.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(use())
    assert work.calls == 1
