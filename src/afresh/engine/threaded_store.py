"""The store for an event loop: calls are awaited, run in one thread, and are repeated if they fail.

    store = ThreadedStore(opened)
    items = await store.run(store.sync.items.by_id, ids)

There is one thread, so calls run one after the other, in the order in which they were made. Between two
attempts of a call that is retried, other calls may run. Cancelling an awaited call does not stop the thread:
a call that is already running is completed, a call that still waits for the thread is never run, and neither
is retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from afresh.engine.logs import log_event
from afresh.stores.store import Store
from afresh.values.backoff import Backoff
from afresh.values.errors import StoreCorruptError, StoreError, StoreVersionError

P = ParamSpec("P")
T = TypeVar("T")
RETRIES = Backoff(first_s=0.1, longest_s=5.0)


class ThreadedStore:
    """Runs calls of a store (``sync``) in a thread of its own, until ``close``. If the store is locked, full
    or read-only, this is logged once, every call waits until the store works again, and ``trouble`` states
    the cause until then; it is empty while the store works. A call that fails when ``gives_up()`` is True
    waits no longer, and raises the error.

    Do not pass to ``run`` a method that returns an iterator: an iterator belongs to one thread, and a failure
    in the middle of it could not be retried. Pass a function that reads the whole iterator."""

    def __init__(
        self,
        store: Store,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        gives_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self.sync, self._sleep, self._gives_up = store, sleep, gives_up
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="afresh-store")
        self.trouble = ""

    async def run_once(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``work`` in the store's thread and return its result."""
        call = partial(work, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``work`` again after every ``StoreError`` until it succeeds, with growing waits in between, or
        until ``gives_up()``.

        Most errors pass: locks are released, disks are cleared, servers restart. The errors of a damaged
        store, or of a store that a newer version of afresh wrote, do not, so they are raised at once."""
        return await self._retry(lambda: self.run_once(work, *args, **kwargs))

    async def run_beside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same as ``run``, but in a thread besides the store's own: for work that takes long, reads
        much and writes little at a time, so that the other calls do not wait for it."""
        return await self._retry(lambda: asyncio.to_thread(work, *args, **kwargs))

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        failures = 0
        while True:
            try:
                result = await call()
            except (StoreCorruptError, StoreVersionError):
                raise
            except StoreError as error:
                failures += 1
                self._set_trouble(str(error))
                if self._gives_up():
                    raise
                await self._sleep(RETRIES.wait_s(failures))
            else:
                # Success at the first attempt proves nothing: a full disk can still be read.
                if failures:
                    self._set_trouble("")
                return result

    def close(self) -> None:
        """End the thread; the store itself stays open."""
        self._thread.shutdown(wait=True)

    def _set_trouble(self, trouble: str) -> None:
        if trouble == self.trouble:
            return
        self.trouble = trouble
        if trouble:
            log_event(logging.WARNING, "the store cannot be written: waiting", problem=trouble)
        else:
            log_event(logging.INFO, "the store works again")
