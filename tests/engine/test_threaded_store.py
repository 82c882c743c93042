"""The store as an event loop uses it: calls are retried, and trouble is said once."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.virtual_time import VirtualTime

from afresh.engine.logs import LOGGER
from afresh.engine.threaded_store import ThreadedStore
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.values.errors import StoreFullError


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
            return await store.call_with_retry(once)
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
        await asyncio.gather(*(threaded.state.set({"last": name.encode()}) for name in names))
        threaded.close()
        return [store.state.get("last")]

    assert asyncio.run(work(MemoryStore())) == [b"name 19"]
