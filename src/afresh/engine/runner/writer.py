"""Commits the outcomes of polls in groups, in the thread that talks to the store.

A poll waits for others at most ``GATHER_S`` before its commit begins. While the store is locked, full or
read-only, the polls wait in memory, and ``is_full`` tells the dispatcher to start no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from afresh.engine.scheduler.decide import DecidedPoll
from afresh.stores.async_store import AsyncStore
from afresh.values.outcome import Outcome, Refusal

GATHER_S = 0.03
_MOST = 2000
_MOST_BYTES = 64_000_000


class CommitHandler(Protocol):
    """What happens before and after a commit."""

    def complete(self, polls: Sequence[DecidedPoll]) -> list[Outcome]:
        """Return the outcomes of a group of polls, to be committed."""

    def state_values(self) -> Mapping[str, bytes | None]:
        """Return state of the engine that belongs into the same transaction."""

    def after_commit(self, outcomes: Sequence[Outcome], refusals: Sequence[Refusal]) -> None:
        """Follow a commit; ``refusals`` are the outcomes that were not kept."""


class Writer:
    """Gathers decided polls and commits them until cancelled."""

    def __init__(self, store: AsyncStore, handler: CommitHandler) -> None:
        self._store, self._handler = store, handler
        self._waiting: list[DecidedPoll] = []
        self._bytes = 0
        self._has_polls, self._is_idle = asyncio.Event(), asyncio.Event()
        self._is_idle.set()

    def put(self, poll: DecidedPoll) -> None:
        """Commit this poll soon."""
        self._waiting.append(poll)
        self._bytes += poll.content_size
        self._is_idle.clear()
        self._has_polls.set()

    @property
    def is_full(self) -> bool:
        """Whether more polls wait than should: the store does not keep up, or cannot be written."""
        return len(self._waiting) >= _MOST or self._bytes >= _MOST_BYTES

    async def run(self) -> None:
        """Commit what is put, until cancelled."""
        while True:
            await self._has_polls.wait()
            await asyncio.sleep(GATHER_S)
            self._has_polls.clear()
            group, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            if self._waiting:
                self._has_polls.set()
            self._bytes = sum(poll.content_size for poll in self._waiting)
            if group:
                outcomes = self._handler.complete(group)
                refusals = await self._store.commit(outcomes, self._handler.state_values())
                self._handler.after_commit(outcomes, refusals)
            if not self._waiting:
                self._is_idle.set()

    async def wait_until_committed(self) -> None:
        """Wait until everything that was put is committed."""
        await self._is_idle.wait()
