"""The store as an event loop uses it: calls are awaited, run in one thread, and are retried in trouble."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from afresh.engine.logs import log_event
from afresh.stores.async_store import AsyncStore, StoreCalls
from afresh.stores.store import Store


class ThreadedStore(AsyncStore):
    """An ``AsyncStore`` with a thread of its own, from its construction until ``close``. ``sync`` is the
    store itself, for functions that make several calls: ``call_with_retry(lambda: …)`` runs them in the same
    thread. A store that is locked, full or read-only is reported once, and each call waits until the cause is
    gone; ``trouble`` says meanwhile what it is."""

    def __init__(self, store: Store) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="afresh-store")
        self._calls = StoreCalls(self._thread, _report_trouble)
        super().__init__(store, self._calls.call_with_retry)
        self.sync = store
        self.call, self.call_with_retry = self._calls.call, self._calls.call_with_retry

    @property
    def trouble(self) -> str:
        """Why the store cannot be used at the moment, in words; empty while it can."""
        return self._calls.trouble

    def close(self) -> None:
        """End the thread; the store itself stays open."""
        self._thread.shutdown(wait=True)


def _report_trouble(trouble: str) -> None:
    if trouble:
        log_event(logging.WARNING, "the store cannot be written: waiting", problem=trouble)
    else:
        log_event(logging.INFO, "the store works again")
