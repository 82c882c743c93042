"""The request starts and debts that all workers on a store share, as this process uses them."""

from __future__ import annotations

import math

from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.state_names import CAPPED_STARTS
from afresh.engine.threaded_store import ThreadedStore
from afresh.values.stored import RequestWindow


class SharedReservations:
    """``RequestReservations`` in a store; each call waits while the store cannot be written."""

    def __init__(self, store: ThreadedStore, member: FleetMember) -> None:
        self._store, self._member, self._time = store, member, member.time

    @property
    def is_alone(self) -> bool:
        return self._member.is_alone

    async def reserve(self, count: int, spacing_s: float, slack_s: float) -> tuple[RequestWindow, float]:
        def work() -> tuple[RequestWindow, float]:
            now_s, elapsed_s = self._time.pair()
            return self._store.sync.fleet.reserve(count, spacing_s, slack_s, now_s), elapsed_s - now_s

        return await self._store.call_with_retry(work)

    async def owe(self, owed_s: float) -> None:
        await self._store.call_with_retry(lambda: self._store.sync.fleet.owe(owed_s, self._time.now_s()))

    async def capped_s(self, group: str) -> float:
        kept = await self._store.state.get(CAPPED_STARTS + group)
        return float(kept) if kept else -math.inf

    async def keep_capped(self, group: str, began_s: float) -> None:
        await self._store.state.set({CAPPED_STARTS + group: repr(began_s).encode()})
