"""Polls of sources that choose which items one request refreshes (``sources.capabilities``).

The lead is the item that the scheduler picked; it is already leased. The other items that the source chooses
are leased here, unless they are being polled. Items that are not in the answer are released without outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.runner.run_context import RunContext
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.sources.capabilities import BatchSource
from afresh.values.arrays import Float64s, Ints
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows of a source's ``keys``, −1 for keys that had no row when there were ``size`` rows."""

    keys: Sequence[str]
    rows: Ints
    item_rows: ItemRows
    size: int

    def fits(self, keys: Sequence[str], item_rows: ItemRows) -> bool:
        """Return whether these are still the rows of ``keys``; ``item_rows`` may be new or have grown."""
        if self.keys is not keys or self.item_rows is not item_rows:
            return False
        return self.size == item_rows.size or -1 not in self.rows


class BatchPolls:
    """Polls the batches that sources choose."""

    def __init__(self, context: RunContext) -> None:
        self._context, self._store, self._scheduler = context, context.store, context.scheduler
        self._rows: dict[str, _Rows] = {}

    async def poll(self, source: BatchSource, lead: Lease, lease_s: float) -> list[tuple[Lease, Fetched]]:
        """Let the source choose and request a batch. Return (lease, answer) tuples; release other leases."""
        leases = [lead]
        try:
            batch = await source.choose(lead.key, await self._weights(source))
            leases = await self._take_leases(lead, batch.keys, lease_s)
            found = await source.poll_batch(batch, leases)
        except asyncio.CancelledError:
            if self._context.gate.waits.has_cut():
                await self.release([lease for lease in leases if lease is not lead])
            raise
        except Exception as error:  # noqa: BLE001  # a source's own defect must not end others' polls
            log_event(logging.ERROR, "a source failed", source=source.name, item=lead.key, error=repr(error))
            found = [Fetched("failed", problem=f"the source raised {type(error).__name__}")] * len(leases)
        pairs = list(zip(leases, found, strict=True))
        await self.release([lease for lease, fetched in pairs if fetched is None])
        return [(lease, fetched) for lease, fetched in pairs if fetched is not None]

    async def _weights(self, source: BatchSource) -> Float64s | None:
        """Return a weight for each key, 1 without a row; None if the keys were replaced meanwhile."""
        keys, item_rows = source.keys(), self._scheduler.item_rows
        known = self._rows.get(source.name)
        if known is None or not known.fits(keys, item_rows):
            ids = await self._store.run(self._store.sync.items.ids, keys, source.name)
            rows = [-1 if (item_id := ids.get(key)) is None else item_rows.row(item_id) for key in keys]
            found = np.array([-1 if row is None else row for row in rows], dtype=np.int64)
            known = self._rows[source.name] = _Rows(keys, found, item_rows, item_rows.size)
            if source.keys() is not keys:  # replaced during the await: the next choice will use the new keys
                return None
        weights = item_rows.ranked_weight(known.rows) if item_rows.size else np.ones(len(keys))
        return np.asarray(np.where(known.rows < 0, 1.0, weights))

    async def _take_leases(self, lead: Lease, keys: Sequence[str], lease_s: float) -> list[Lease]:
        item_rows, now_s = self._scheduler.item_rows, self._context.clock.now_s()
        ids = list((await self._store.run(self._store.sync.items.ids, keys, lead.source)).values())
        rows = {
            item_id: row
            for item_id in ids
            if item_id != lead.item_id
            and (row := item_rows.row(item_id)) is not None
            and item_rows.is_active[row]
            and not item_rows.is_busy[row]
        }
        item_rows.is_busy[list(rows.values())] = True  # before the await, so that no other poll picks them
        worker, take = self._context.member.name, self._store.sync.leases.take
        taken = await self._store.run(take, list(rows), now_s, lease_s, worker=worker) if rows else []
        got = {lease.item_id for lease in taken}
        item_rows.is_busy[[row for item_id, row in rows.items() if item_id not in got]] = False
        for lease in taken:
            self._scheduler.catch_up(lease, rows[lease.item_id], now_s)
        if lead.item_id in ids:
            return [lead, *taken]
        await self.release([lead])
        return list(taken)

    async def release(self, leases: Sequence[Lease]) -> None:
        """Give leases back: their rows may be picked again, here or by another engine."""
        if leases:
            await self._store.run(self._store.sync.leases.release, leases)
            item_rows = self._scheduler.item_rows
            item_rows.is_busy[item_rows.rows([lease.item_id for lease in leases])] = False
