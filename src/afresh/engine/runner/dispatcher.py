"""What is polled now: due → lease.

    Policy (memory) ──Picker.next──▶ rows ──Store.lease──▶ Lease ──▶ Polls
                 (groups that are ready)

Items are leased a moment before the budget lets their requests start, as many as can start in that moment.
An audit goes before what is due, as soon as its group is ready.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from afresh.engine.runner.parts import TICK_S, RunParts
from afresh.engine.runner.poll_tasks import Bulk, PollTasks
from afresh.engine.scheduler import audits
from afresh.engine.scheduler.picker import GroupKey
from afresh.values.lease import Lease

_AHEAD_S = 0.05  # polls are leased so far ahead of their requests
_MOST_AT_ONCE = 64
_PENDING_AUDITS = 4
_TAKEN_ELSEWHERE_S = 5.0


class Dispatcher:
    """Feeds the polls of one run, until ``stopping`` is set."""

    def __init__(
        self, parts: RunParts, polls: PollTasks, rng: np.random.Generator, stopping: asyncio.Event
    ) -> None:
        self._parts, self._polls, self._rng, self._stopping = parts, polls, rng, stopping
        self._audits: list[int] = []
        self._when_idle: Callable[[], Awaitable[None]] | None = None

    def run_when_idle(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do this when nothing is under way: rows may be others afterwards."""
        self._when_idle = work
        self._parts.wakeup.set()

    async def run(self, until_s: float, helpers: set[asyncio.Task[None]]) -> None:
        """Until stopped, until this elapsed time, or until a single round is over."""
        parts, polls = self._parts, self._polls
        while not self._stopping.is_set():
            for helper in helpers:
                if helper.done():
                    helper.result()  # raises if the store is damaged: not to be waited out
            if polls.defect is not None:
                raise polls.defect
            left_s = until_s - parts.clock.elapsed_s()
            if left_s <= 0:
                return
            if self._when_idle is not None:
                await self._run_idle_work()
                continue
            wait_s = max(parts.gate.wait_s(), 0.0)
            ahead = int(max(1, min(parts.gate.starts_within(_AHEAD_S), _MOST_AT_ONCE)))
            room = parts.settings.run.concurrency - len(polls.in_flight)
            if parts.writer.is_full or room <= 0 or parts.gate.waiting >= ahead or wait_s > _AHEAD_S:
                await self._pause(min(left_s, wait_s if wait_s > _AHEAD_S else TICK_S))
                continue
            bulks = self.choose(min(ahead, room))
            if bulks:
                await self.launch(bulks)
            elif self._is_done():
                return
            else:
                rest_s = parts.picker.next_ready_s() - parts.clock.now_s()
                await self._pause(min(left_s, max(rest_s, 0.001), TICK_S / 2))

    async def _run_idle_work(self) -> None:
        assert self._when_idle is not None
        if self._polls.in_flight:
            await self._pause(TICK_S)
            return
        await self._parts.writer.wait_until_committed()
        await self._when_idle()
        self._when_idle = None
        self._audits.clear()

    async def _pause(self, seconds: float) -> None:
        """Wait until something ends or changes, ``seconds`` at most."""
        self._parts.wakeup.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._parts.wakeup.wait(), max(seconds, 0.0))

    def _is_done(self) -> bool:
        """``once``: nothing due is left, not even in groups that rest, but for sources that are no more."""
        parts = self._parts
        if parts.recorder.only_due_s is None or self._polls.in_flight or bool(parts.item_rows.is_busy.any()):
            return False
        if (
            parts.listing_task.busy
            or parts.staleness_task.busy
            or parts.watch.looked_s < parts.listing_task.read_s
        ):
            return False  # what was listed is not there yet
        left = parts.item_rows.source[parts.policy.poll_values(parts.clock.now_s()) > -np.inf]
        return all(parts.settings.source(parts.named((code, 0))[0]) is None for code in set(left.tolist()))

    # Due.

    def choose(self, most: int) -> list[Bulk]:
        """Bulks of rows to poll now, marked busy: of one row each but where a source can do more at once."""
        parts, chosen = self._parts, list[Bulk]()
        for _ in range(most):
            row = self._audit()
            audit = row is not None
            if row is None:
                row = parts.picker.next(parts.clock.now_s(), self._ready_s)
                if row is None:
                    break
                self._draw_audit()
            group_key = parts.picker.group_key(row)
            self._polls.begin(group_key)
            more = 0 if audit else parts.sources.bulk_limit(*parts.named(group_key)) - 1
            chosen.append(Bulk(group_key, (row, *parts.picker.take_more(group_key, more)), audit))
        return chosen

    def _draw_audit(self) -> None:
        """After a poll that was chosen, perhaps one that is drawn: a set share of all.

        Not while only some items can be drawn: those that are due have changed more often than others.
        """
        parts, share = self._parts, self._parts.settings.plan.audit_share
        some = parts.recorder.only_due_s is not None or parts.recorder.filling
        if not some and len(self._audits) < _PENDING_AUDITS:
            lucky, now_s = self._rng.random() < share / (1.0 - share), parts.clock.now_s()
            row = audits.draw(parts.item_rows, self._rng, now_s) if lucky else None
            if (
                row is not None and not parts.policy.is_observed()[row]
            ):  # whose staleness is seen needs no audit
                self._audits.append(row)

    def _audit(self) -> int | None:
        """An audit that can be made now; a draw is kept until its group is ready, lest busy hosts escape."""
        parts = self._parts
        for row in self._audits:
            group_key, now_s = parts.picker.group_key(row), parts.clock.now_s()
            elsewhere = parts.member.claims.is_elsewhere(parts.named(group_key)[1])
            if elsewhere or not audits.may_audit(parts.item_rows, row, now_s):
                self._audits.remove(row)  # whoever has the group draws there
                return None
            if not parts.item_rows.is_busy[row] and self._ready_s(group_key, now_s) <= now_s:
                self._audits.remove(row)
                return parts.picker.take(row, 0.0)
        return None

    def _ready_s(self, group_key: GroupKey, now_s: float) -> float:
        parts = self._parts
        name, group = parts.named(group_key)
        table = parts.settings.source(name)
        if (
            table is None
            or self._polls.at(group_key) >= table.concurrency
            or parts.staleness_task.is_looking(name)
        ):
            return math.inf
        ready_s = max(parts.sources.ready_s(name, group, now_s), parts.gate.ready_s(group))
        return ready_s if ready_s > now_s else parts.member.claims.ready_s(group, now_s)

    # Lease.

    async def launch(self, bulks: Sequence[Bulk]) -> None:
        """Lease these, and poll what nobody else has."""
        parts, now_s = self._parts, self._parts.clock.now_s()
        ids = [int(parts.item_rows.ids[row]) for bulk in bulks for row in bulk.rows]
        lease_s, worker = parts.lease_s, parts.member.name
        leases = await parts.writer.call_with_retry(
            lambda: parts.store.leases.take(ids, now_s, lease_s, worker=worker)
        )
        taken = {lease.item_id: lease for lease in leases}
        unused: list[Lease] = []
        for bulk in bulks:
            wanted = [
                lease for row in bulk.rows if (lease := self._usable_lease(bulk, row, taken, now_s, unused))
            ]
            if wanted:
                self._polls.launch(bulk, wanted)
            else:
                self._polls.leave(bulk.group_key)
        if unused:
            await parts.writer.call_with_retry(lambda: parts.store.leases.release(unused))

    def _usable_lease(
        self, bulk: Bulk, row: int, taken: Mapping[int, Lease], now_s: float, unused: list[Lease]
    ) -> Lease | None:
        """The lease of a row that is to be polled now; None where others have it, or had it just before."""
        item_rows, policy = self._parts.item_rows, self._parts.policy
        lease = taken.get(int(item_rows.ids[row]))
        if lease is None:
            # Another engine has it, or it was paused a moment ago.
            item_rows.not_before_s[row] = now_s + _TAKEN_ELSEWHERE_S
        elif policy.catch_up(lease, row, now_s) and not bulk.audit and self._is_too_early(row, now_s):
            unused.append(lease)
        else:
            return lease
        item_rows.is_busy[row] = False
        return None

    def _is_too_early(self, row: int, now_s: float) -> bool:
        """Whether another engine polled the item so lately that it is not worth a poll now."""
        parts = self._parts
        return parts.policy.due_s(row, float(parts.item_rows.polled_s[row])) > now_s
