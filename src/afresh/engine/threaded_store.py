"""The store for an event loop: calls are awaitable, run in one thread, and are repeated if they fail."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from afresh.engine.logs import log_event
from afresh.stores.async_store import AsyncStore, StoreCalls
from afresh.stores.store import Store


class ThreadedStore(AsyncStore):
    """An ``AsyncStore`` whose calls run in a thread of its own, until ``close``. A function that makes
    several calls uses ``sync``, the store itself, and ``call_with_retry(function)`` runs it in the thread. If
    the store is locked, full or read-only, this is logged once, every call waits until the store works again,
    and ``trouble`` states the cause until then."""

    def __init__(self, store: Store) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="afresh-store")
        self._calls = StoreCalls(self._thread, _report_trouble)
        super().__init__(store, self._calls.call_with_retry)
        self.sync = store
        self.call, self.call_with_retry = self._calls.call, self._calls.call_with_retry

    @property
    def trouble(self) -> str:
        """The reason why the store cannot be used now; empty if it can be used."""
        return self._calls.trouble

    def close(self) -> None:
        """End the thread; the store itself stays open."""
        self._thread.shutdown(wait=True)


def _report_trouble(trouble: str) -> None:
    if trouble:
        log_event(logging.WARNING, "the store cannot be written: waiting", problem=trouble)
    else:
        log_event(logging.INFO, "the store works again")
