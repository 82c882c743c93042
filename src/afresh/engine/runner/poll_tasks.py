"""Polls under way: fetch → decide → commit, and how many there are at each place.

Lease ──Source.poll──▶ Fetched ──decide──▶ Outcome ──▶ Writer: groups within 100 ms
           (Gate: the budget)
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from afresh.engine.runner.batch_polls import BatchPolls
from afresh.engine.runner.parts import RunParts
from afresh.engine.scheduler.picker import GroupKey
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease


@dataclass(frozen=True, slots=True)
class Bulk:
    """Rows of one place that are polled together, most often a single one."""

    group_key: GroupKey
    rows: tuple[int, ...]
    audit: bool = False


class PollTasks:
    """The polls of one run. ``defect``: what broke in one of them, which is to end the run."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._at_group: Counter[GroupKey] = Counter()
        self._choices = BatchPolls(
            parts.store, parts.writer, parts.item_rows, parts.clock, parts.policy.catch_up, parts.member.name
        )
        self.in_flight: set[asyncio.Task[None]] = set()
        self.defect: BaseException | None = None

    def at(self, group_key: GroupKey) -> int:
        """How many are begun there and not over."""
        return self._at_group[group_key]

    def begin(self, group_key: GroupKey) -> None:
        """One more is begun there; ``leave`` when it is over, or comes to nothing."""
        self._at_group[group_key] += 1

    def leave(self, group_key: GroupKey) -> None:
        """One is over."""
        self._at_group[group_key] -= 1
        if self._at_group[group_key] <= 0:
            del self._at_group[group_key]
        self._parts.picker.release_group(group_key)
        self._parts.wakeup.set()

    def launch(self, bulk: Bulk, leases: Sequence[Lease]) -> None:
        """Poll these beside the others; their place was begun."""
        task = asyncio.create_task(self.poll(bulk, leases))
        self.in_flight.add(task)
        task.add_done_callback(self._ended)

    async def poll(self, bulk: Bulk, leases: Sequence[Lease], *, may_choose: bool = True) -> None:
        """Poll these, decide, and let the outcomes be committed."""
        parts = self._parts
        try:
            for lease, fetched in await self._fetched(bulk, leases, may_choose=may_choose):
                outcome = parts.recorder.outcome(lease, fetched, parts.clock.now_s(), audit=bulk.audit)
                parts.gate.record_cost(outcome.spent)
                parts.writer.put(outcome)
        finally:
            self.leave(bulk.group_key)

    async def _fetched(
        self, bulk: Bulk, leases: Sequence[Lease], *, may_choose: bool
    ) -> list[tuple[Lease, Fetched]]:
        """What the source makes of it; one that chooses what to refresh may bring others."""
        parts = self._parts
        choosing = may_choose and not bulk.audit and not parts.item_rows.is_requested[bulk.rows[0]]
        with parts.sources.using(leases[0].source):
            batches = parts.sources.capabilities(leases[0].source).batches
            if choosing and batches is not None:
                return await self._choices.poll(batches, leases[0], parts.settings.run.lease)
            found = await parts.sources.poll(leases, conditional=not bulk.audit)
        return list(zip(leases, found, strict=True))

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A poll is over; a defect of ours in it ends the run rather than hide."""
        self.in_flight.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.defect = task.exception()
            self._parts.wakeup.set()

    def is_quiet(self, group: str) -> bool:
        """Whether a group can be left to others: nothing is asked there, and it could be asked again."""
        now_s, sources = self._parts.clock.now_s(), self._parts.sources
        if any(self._parts.named(group_key)[1] == group for group_key in self._at_group):
            return False
        return all(sources.ready_s(name, group, now_s) <= now_s for name in sources.names())
