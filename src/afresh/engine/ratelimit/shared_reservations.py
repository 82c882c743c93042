"""The line of request starts and debts that all workers on a store share, as this process sees it."""

from __future__ import annotations

import math
from collections.abc import Callable

from afresh.engine.ratelimit.steady_clock import SteadyClock
from afresh.engine.state_names import CAPPED_STARTS
from afresh.engine.writer import Writer
from afresh.stores.store import Store
from afresh.values.stored import RequestWindow


class SharedReservations:
    """``RequestReservations`` in a store; it waits while the store cannot be written."""

    def __init__(self, store: Store, writer: Writer, time: SteadyClock, is_alone: Callable[[], bool]) -> None:
        self._store, self._writer, self._time, self._is_alone = store, writer, time, is_alone

    @property
    def is_alone(self) -> bool:
        """Whether no other worker is there."""
        return self._is_alone()

    async def reserve(self, count: int, spacing_s: float, slack_s: float) -> tuple[RequestWindow, float]:
        """The next window, and what its times need to become elapsed seconds of this process."""

        def work() -> tuple[RequestWindow, float]:
            now_s, elapsed_s = self._time.pair()
            return self._store.fleet.reserve(count, spacing_s, slack_s, now_s), elapsed_s - now_s

        return await self._writer.call_with_retry(work)

    async def owe(self, owed_s: float) -> None:
        """No window of anybody begins before this debt is paid."""
        await self._writer.call_with_retry(lambda: self._store.fleet.owe(owed_s, self._time.now_s()))

    async def capped_s(self, group: str) -> float:
        """When a request to a capped group last started, in Unix seconds; −∞ if never."""
        kept = await self._writer.call_with_retry(lambda: self._store.state.get(CAPPED_STARTS + group))
        return float(kept) if kept else -math.inf

    async def keep_capped(self, group: str, began_s: float) -> None:
        """One starts then."""
        packed = repr(began_s).encode()
        await self._writer.call_with_retry(lambda: self._store.state.set({CAPPED_STARTS + group: packed}))
