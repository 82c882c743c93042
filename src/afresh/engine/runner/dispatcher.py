"""Starts polls: picks rows of groups that are ready, leases them, and passes them to the poll tasks.

Items are leased 50 ms before the budget allows their requests, as many as can start within this time. Audits
are made before other polls, as soon as their group is ready.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from afresh.engine.runner.followed.unlinked_pages import UnlinkedPagesTask
from afresh.engine.runner.hooks import Hooks
from afresh.engine.runner.listing_task import ListingTask
from afresh.engine.runner.notify.notifier import Notifier
from afresh.engine.runner.poll_tasks import Bulk, PollTasks
from afresh.engine.runner.run_context import TICK_S, RunContext, StopSignal
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.runner.store_watcher import StoreWatcher
from afresh.engine.runner.websub.websub_task import WebSubTask
from afresh.engine.runner.writer import Writer
from afresh.engine.scheduler.audits import may_audit
from afresh.engine.scheduler.picker import GroupKey
from afresh.values.formatting import format_count
from afresh.values.lease import Lease

_AHEAD_S = 0.05  # items are leased this long before their requests
_MOST_AT_ONCE = 64
_PENDING_AUDITS = 4
_TAKEN_ELSEWHERE_S = 5.0
_LONGEST_REST_S = 10.0
_FULL_S = 0.1  # how often requests that last too long are looked for while all slots are taken
BUSY, REQUESTS = "busy", "requests"


@dataclass(frozen=True, slots=True)
class RunTasks:
    """The tasks that run besides the polls, and the writer that commits the polls."""

    watcher: StoreWatcher
    listing: ListingTask
    staleness: StalenessTask
    hooks: Hooks
    notifier: Notifier
    writer: Writer
    unlinked: UnlinkedPagesTask
    websub: WebSubTask


class Dispatcher:
    """Starts the polls of one run until a stop is requested."""

    def __init__(
        self,
        context: RunContext,
        tasks: RunTasks,
        polls: PollTasks,
        rng: np.random.Generator,
        stop: StopSignal,
    ) -> None:
        self._context, self._tasks, self._polls, self._rng, self._stop = context, tasks, polls, rng, stop
        self._scheduler = context.scheduler
        self._audits: list[int] = []
        self._audit_credit = 0.0
        self._idle_work: Callable[[], Awaitable[None]] | None = None
        self.idle_s: defaultdict[str, float] = defaultdict(float)
        """The seconds in which the budget allowed a poll, but none was started, by reason."""

    def run_when_idle(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await ``work()`` as soon as no poll is under way; it may replace the rows of the scheduler."""
        self._idle_work = work
        self._context.wakeup.set()

    async def run(self, until_s: float, helpers: set[asyncio.Task[None]]) -> None:
        """Start polls until a stop is requested, until the elapsed time ``until_s``, or until a single round
        is over. If one of the tasks ``helpers`` failed, raise its error."""
        context, polls, clock, gate = self._context, self._polls, self._context.clock, self._context.gate
        while not self._stop.is_requested:
            for helper in helpers:
                if helper.done():
                    helper.result()  # raises, for example if the store is damaged: waiting would not help
            if polls.defect is not None:
                raise polls.defect
            left_s = until_s - clock.elapsed_s()
            if left_s <= 0:
                return
            if self._idle_work is not None:
                await self._run_idle_work(self._idle_work)
                continue
            wait_s = max(gate.wait_s(), 0.0)
            ahead = int(max(1, min(gate.starts_within(_AHEAD_S), _MOST_AT_ONCE)))
            room = context.settings.now.run.concurrency - len(polls.in_flight)
            if room <= 0:
                polls.end_late_requests()
                await self._pause(min(left_s, _FULL_S))
                continue
            if self._tasks.writer.is_full or gate.waiting >= ahead or wait_s > _AHEAD_S:
                gate.tell_wait(wait_s, logging.INFO)
                await self._wait_for_budget(min(left_s, wait_s if wait_s > _AHEAD_S else TICK_S))
                continue
            bulks = self.choose(min(ahead, room))
            if bulks:
                await self.launch(bulks)
            elif self._is_done():
                return
            else:
                rest_s, began_s = self._scheduler.picker.next_ready_s() - clock.now_s(), clock.elapsed_s()
                reason = self._idle_reason()
                pause_s = min(left_s, max(rest_s, 0.001), TICK_S / 2)
                await self._pause(pause_s)
                if reason == "unchanged":
                    self._audit_settled(clock.elapsed_s() - began_s)
                if reason is not None:  # a pause that takes longer is the machine's fault
                    self.idle_s[reason] += min(clock.elapsed_s() - began_s, pause_s)

    async def _wait_for_budget(self, pause_s: float) -> None:
        """Pause. Count the time if only the number of requests keeps polls from using other limits."""
        gate, began_s = self._context.gate, self._context.clock.elapsed_s()
        all_wait = len(self._polls.in_flight) <= gate.waiting
        is_counted = all_wait and not (gate.counts_only or gate.is_paying)
        await self._pause(pause_s)
        if is_counted:
            self.idle_s[REQUESTS] += min(self._context.clock.elapsed_s() - began_s, pause_s)

    def _idle_reason(self) -> str | None:
        """Return why no poll can start now, as ``Run.count_unspent`` names it. While bytes, seconds or money
        are limited and a poll is under way, it is ``BUSY``: that poll uses the budget. None if every item is
        under way: then the polls end too slowly for the budget."""
        codes, item_rows = self._scheduler.picker.waiting_sources(), self._scheduler.item_rows
        if self._polls.in_flight and not self._context.gate.counts_only:
            return BUSY
        if not codes:
            is_idle = item_rows.is_active & ~item_rows.is_busy
            if item_rows.is_busy.any() and not is_idle.any():
                return None
            return self._scheduler.policy.held_back or "nothing"
        closed = self._context.settings.now.closed_sources(self._context.clock.now_s())
        return "windows" if all(self._scheduler.names.get(code) in closed for code in codes) else "hosts"

    async def _run_idle_work(self, work: Callable[[], Awaitable[None]]) -> None:
        if self._polls.in_flight:
            await self._pause(TICK_S)
            return
        await self._tasks.writer.wait_until_committed()
        await work()
        self._idle_work = None
        self._audits.clear()

    async def _pause(self, seconds: float) -> None:
        """Wait until ``wakeup`` is set, for ``seconds`` at most."""
        wakeup = self._context.wakeup
        wakeup.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(wakeup.wait(), max(seconds, 0.0))

    def _is_done(self) -> bool:
        """Return whether a single round is over: no source of the settings has an item left to poll."""
        context, tasks = self._context, self._tasks
        if context.recorder.only_due_s is None or self._polls.in_flight:
            return False
        if self._scheduler.item_rows.is_busy.any() or tasks.staleness.is_busy:
            return False
        if tasks.listing.is_busy or tasks.watcher.synced_s < max(tasks.listing.read_s, tasks.writer.added_s):
            return False  # items that were just listed are not loaded yet
        now_s = context.clock.now_s()
        for name in self._scheduler.waiting_sources(now_s):
            self._leave_out_failing_groups(name, now_s)
        waiting = self._scheduler.waiting_sources(now_s)
        return all(context.settings.now.source(name) is None for name in waiting)

    def _leave_out_failing_groups(self, name: str, now_s: float) -> None:
        """In a single round, do not wait for groups that back off for long after failures: the next round
        polls their items. Otherwise a round would last until every item of a dead host has failed."""
        for backoff in self._context.sources.backoffs(name):
            if backoff.until_s > now_s + _LONGEST_REST_S:
                left = self._scheduler.bar_group(name, backoff.group, now_s)
                if left:
                    words = f"{backoff.why or 'it failed'}; {format_count(left, 'due item')} left out"
                    self._context.recorder.failures.record_host(backoff.group, words)

    def choose(self, most: int) -> list[Bulk]:
        """Return at most ``most`` polls to make now, and mark their rows as busy. A poll has one row, or
        several rows of one group if its source can poll several items with one request."""
        context, scheduler, chosen = self._context, self._scheduler, list[Bulk]()
        for _ in range(most):
            row = self._next_audit()
            audit = row is not None
            if row is None:
                row = scheduler.picker.next(context.clock.now_s(), self._ready_s)
                if row is None:
                    break
                self._draw_audit()
            group_key = scheduler.item_rows.group_key(row)
            self._polls.begin(group_key)
            more = 0 if audit else context.sources.bulk_limit(*scheduler.group_names(group_key)) - 1
            chosen.append(Bulk(group_key, (row, *scheduler.picker.take_more(group_key, more)), audit))
        return chosen

    def _audit_settled(self, idle_s: float) -> None:
        """While items are left alone because their cursor has not moved, there are hardly any picks after
        which audits are drawn. So the share of audits in the budget of ``idle_s`` seconds is drawn here."""
        settings = self._context.settings.now
        self._audit_credit += settings.plan.audit_share * settings.budget.requests * idle_s
        if self._audit_credit >= 1.0:
            self._audit_credit = 0.0
            self._draw_audit(is_sure=True)

    def _draw_audit(self, *, is_sure: bool = False) -> None:
        """Draw a row to audit after some of the picks, so that audits are the set share of all polls. None is
        drawn while only a part of the items is loaded or polled: due items are stale more often than others,
        which would bias the measured freshness."""
        recorder, share = self._context.recorder, self._context.settings.now.plan.audit_share
        is_partial = recorder.only_due_s is not None or recorder.is_loading
        if not is_partial and len(self._audits) < _PENDING_AUDITS:
            is_drawn = is_sure or self._rng.random() < share / (1.0 - share)
            now_s = self._context.clock.now_s()
            row = self._scheduler.draw_audit(self._rng, now_s) if is_drawn else None
            if row is not None:
                self._audits.append(row)

    def _next_audit(self) -> int | None:
        """Return a row that was drawn and can be audited now, or None. A drawn row waits until its group is
        ready: to drop it would leave out items of busy groups, and bias the measured freshness."""
        item_rows, now_s = self._scheduler.item_rows, self._context.clock.now_s()
        for row in self._audits:
            group_key = item_rows.group_key(row)
            group = self._scheduler.group_names(group_key)[1]
            if self._context.member.claims.is_elsewhere(group) or not may_audit(item_rows, row, now_s):
                self._audits.remove(row)  # the worker that holds the group draws its own audits
                return None
            if not item_rows.is_busy[row] and self._ready_s(group_key, now_s) <= now_s:
                self._audits.remove(row)
                return self._scheduler.picker.take(row)
        return None

    def _ready_s(self, group_key: GroupKey, now_s: float) -> float:
        context = self._context
        name, group = self._scheduler.group_names(group_key)
        table = context.settings.now.source(name)
        shares = self._polls.shares
        if table is None or shares.in_group[group_key] >= table.settings.polls_at_once:
            return math.inf
        if self._tasks.staleness.is_reading(name):
            return math.inf
        if not shares.may_start(group_key, context.settings.now.run.concurrency):
            return now_s + TICK_S / 2
        ready_s = max(context.sources.ready_s(name, group, now_s), context.gate.ready_s(group))
        return ready_s if ready_s > now_s else context.member.claims.ready_s(group, now_s)

    async def launch(self, bulks: Sequence[Bulk]) -> None:
        """Lease the rows of ``bulks``, and start the polls of those rows that no other engine has leased."""
        context, now_s = self._context, self._context.clock.now_s()
        ids = [int(self._scheduler.item_rows.ids[row]) for bulk in bulks for row in bulk.rows]
        leases = await context.store.run(
            context.store.sync.leases.take, ids, now_s, context.lease_s, worker=context.member.name
        )
        taken = {lease.item_id: lease for lease in leases}
        unused: list[Lease] = []
        for bulk in bulks:
            usable = [
                lease for row in bulk.rows if (lease := self._usable_lease(bulk, row, taken, now_s, unused))
            ]
            if usable:
                self._polls.launch(bulk, usable)
            else:
                self._polls.leave(bulk.group_key)
        if unused:
            await context.store.run(context.store.sync.leases.release, unused)

    def _usable_lease(
        self, bulk: Bulk, row: int, taken: Mapping[int, Lease], now_s: float, unused: list[Lease]
    ) -> Lease | None:
        """Return the lease of ``row`` in ``taken`` (by item id) if the row is to be polled. A lease that is
        not needed is added to ``unused``."""
        item_rows = self._scheduler.item_rows
        lease = taken.get(int(item_rows.ids[row]))
        if lease is None:
            # Another engine has leased the item, or it was paused a moment ago.
            item_rows.not_before_s[row] = now_s + _TAKEN_ELSEWHERE_S
        elif self._scheduler.catch_up(lease, row, now_s) and not bulk.audit and self._is_early(row, now_s):
            unused.append(lease)
        else:
            return lease
        item_rows.is_busy[row] = False
        return None

    def _is_early(self, row: int, now_s: float) -> bool:
        """Return whether another engine has polled ``row``, so that its next poll is later than ``now_s``."""
        rows, scheduler = np.array([row]), self._scheduler
        return bool(scheduler.policy.next_polls_s(rows, scheduler.item_rows.polled_s[rows])[0] > now_s)
