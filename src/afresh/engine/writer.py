"""The one thread that talks to the store, and the groups in which outcomes are committed.

An outcome waits for others at most ``GATHER_S`` before its commit begins. A store that is locked, full or
read-only is said once, in words, and tried again until the cause is gone; what waits is kept meanwhile, and
``is_full`` tells the loop to poll no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from afresh.engine.logs import log_event
from afresh.stores.store import Store
from afresh.values.errors import StoreCorruptError, StoreError, StoreVersionError
from afresh.values.outcome import Outcome, Refusal

GATHER_S = 0.03
_MOST = 2000
_MOST_BYTES = 64_000_000
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 5.0
T = TypeVar("T")

Complete = Callable[[Sequence[Outcome]], list[Outcome]]
Committed = Callable[[Sequence[Outcome], Sequence[Refusal]], None]


class Writer:
    """Commits outcomes in groups; runs any other call to the store in the same thread."""

    def __init__(
        self,
        store: Store,
        committed: Committed,
        state: Callable[[], Mapping[str, bytes | None]],
        complete: Complete = list,
    ) -> None:
        """``complete`` finishes a group before its commit, ``committed`` is told of it after; ``state`` is
        what else belongs into its transaction."""
        self._store, self._complete, self._committed, self._state = store, complete, committed, state
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="afresh-store")
        self._waiting: list[Outcome] = []
        self._bytes = 0
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.trouble = ""

    def put(self, outcome: Outcome) -> None:
        """Commit this soon."""
        self._waiting.append(outcome)
        self._bytes += _size(outcome)
        self._idle.clear()
        self._news.set()

    @property
    def is_full(self) -> bool:
        """Whether more waits than should; the store does not keep up, or cannot write."""
        return len(self._waiting) >= _MOST or self._bytes >= _MOST_BYTES

    async def run(self) -> None:
        """Commit what is put, until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHER_S)
            self._news.clear()
            group, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            if self._waiting:
                self._news.set()
            self._bytes = sum(map(_size, self._waiting))
            if group:
                group, state = self._complete(group), self._state()
                commit = partial(self._store.commit, group, state)
                refusals = await self.call_with_retry(commit)
                self._committed(group, refusals)
            if not self._waiting:
                self._idle.set()

    async def wait_until_committed(self) -> None:
        """Wait until everything put is committed."""
        await self._idle.wait()

    async def call(self, work: Callable[[], T]) -> T:
        """Run ``work`` in the store's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def call_with_retry(self, work: Callable[[], T]) -> T:
        """Run ``work`` until the store lets it: locks go, disks are cleared. Damage is raised."""
        wait_s, failed = _FIRST_WAIT_S, False
        while True:
            try:
                done = await self.call(work)
            except (StoreCorruptError, StoreVersionError):
                raise
            except StoreError as error:
                if str(error) != self.trouble:
                    self.trouble = str(error)
                    log_event(logging.WARNING, "the store cannot be written: waiting", problem=self.trouble)
                await asyncio.sleep(wait_s)
                wait_s, failed = min(2 * wait_s, _LONGEST_WAIT_S), True
            else:
                # What never failed says nothing: a full disk can be read from.
                if failed and self.trouble:
                    log_event(logging.INFO, "the store works again")
                    self.trouble = ""
                return done

    def close(self) -> None:
        """Let the thread go."""
        self._thread.shutdown(wait=True)


def _size(outcome: Outcome) -> int:
    return len(outcome.new_copy.content) if outcome.new_copy else 0
