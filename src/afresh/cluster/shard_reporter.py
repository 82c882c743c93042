"""A shard's side of the coordination: reports go out beside its run, and shares come back.

The requests of the run pass the ``ShareLimiter``, which is the promise. The run's own budget follows the
share more slowly, because a change of it lets the engine compute the next polls of all items again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass

from afresh.allocation.spend_curve import SpendCurve
from afresh.cluster.coordination import ShardReport, ShareAnswer
from afresh.cluster.routed_items import OUTBOX, take_from_outbox
from afresh.cluster.shard_settings import with_budget
from afresh.cluster.share import Share, ShareLimiter
from afresh.engine.logs import log_event
from afresh.engine.reporting.group_status import group_statuses
from afresh.engine.reporting.spending_at_prices import spend_curve
from afresh.engine.runner.engine_run import Run
from afresh.stores.store import Store
from afresh.values.errors import StoreError
from afresh.values.items import ItemCount

CURVE_EVERY_S = 20.0
LESSONS_EVERY_S = 60.0
_FIRST_CURVES = 3  # with every report at first, because much is learned then
_MUCH = 0.02  # a share that differs by this much changes the budget of the run


@dataclass(frozen=True, slots=True)
class CoordinatorLink:
    """How a shard reaches the coordinator. Both functions return None if it cannot be reached. ``report``
    sends a report and returns the answer, ``deliver`` sends the outbox and returns whether it arrived."""

    report: Callable[[ShardReport], Awaitable[ShareAnswer | None]]
    deliver: Callable[[bytes], Awaitable[bool | None]]


class ShardReporter:
    """Reports for the runs of one shard; ``Engine.beside`` calls it with each run."""

    def __init__(self, shard: int, store: Store, link: CoordinatorLink, every_s: float) -> None:
        self._shard, self._store, self._link, self._every_s = shard, store, link, every_s
        self.limiter, self.run_number, self.price = ShareLimiter(), 0, 0.0
        self.is_replaced, self._is_cut_off = False, False
        self._curves, self._curve_at_s, self._lessons_at_s = 0, -1e300, -1e300

    def __call__(self, run: Run) -> Coroutine[object, object, None]:
        run.context.gate.outside = self.limiter  # before the first request
        return self._work(run)

    async def _work(self, run: Run) -> None:
        while True:
            await self._report(run)
            await self._deliver(run)
            await asyncio.sleep(self._every_s)

    async def _report(self, run: Run) -> None:
        clock, held = run.context.clock, self.limiter.share
        sent_s = clock.elapsed_s()
        counts = await run.context.store.run(self._store.items.counts)
        items = sum(count.items for count in counts if count.status == "active")
        curve = self._curve(run, counts, sent_s) if self._is_curve_due(sent_s) else None
        number = None if held is None else held.number
        is_due = sent_s >= self._lessons_at_s + LESSONS_EVERY_S
        lessons = run.scheduler.lessons() if is_due else None
        report = ShardReport(self._shard, self.run_number, number, curve, items, lessons)
        answer = await self._link.report(report)
        self._log_reach(answer is not None)
        if answer is None:
            return
        if curve is not None:
            self._curves, self._curve_at_s = self._curves + 1, sent_s
        if answer.is_replaced:
            self.is_replaced = True
            self.limiter.drop()
            log_event(logging.ERROR, "another process runs this shard: this one stops", shard=self._shard)
            run.stop()
            return
        self.run_number, self.price = answer.run, answer.price
        if answer.common is not None:
            self._lessons_at_s = sent_s
            run.scheduler.adopt_common(answer.common, clock.now_s())
        if answer.share is not None:
            until_s = sent_s + answer.duration_s
            if self.limiter.hold(answer.share, clock.elapsed_s(), until_s):
                self._follow(run, answer.share)

    def _is_curve_due(self, now_s: float) -> bool:
        return self._curves < _FIRST_CURVES or now_s >= self._curve_at_s + CURVE_EVERY_S

    def _curve(self, run: Run, counts: list[ItemCount], now_s: float) -> SpendCurve:
        del now_s
        context = run.context
        groups = group_statuses(self._store, counts, context.settings.now, context.clock.now_s())
        limits = {group.group: group.most_per_s for group in groups}
        return spend_curve(run.scheduler, limits, price=self.price)

    def _follow(self, run: Run, share: Share) -> None:
        """Let the run plan with its share, if that differs much from the budget with which it plans now."""
        budget = run.settings.budget
        rate = max(share.rate_per_s, 1e-9)
        if abs(rate - budget.requests) > _MUCH * budget.requests:
            run.reload(with_budget(run.settings, rate, share.burst))

    async def _deliver(self, run: Run) -> None:
        """Send the items of other hosts that listings named."""
        store = run.context.store
        try:
            packed = await store.run_once(self._store.state.get, OUTBOX)
            if packed and packed != b"[]" and await self._link.deliver(packed):
                await store.run_once(take_from_outbox, self._store.state, packed)
        except StoreError as error:  # the items stay in the outbox; other calls report the trouble
            log_event(logging.DEBUG, "the outbox cannot be read", problem=str(error))

    def _log_reach(self, reached: bool) -> None:
        if reached == self._is_cut_off:
            self._is_cut_off = not reached
            words = "the coordinator answers again" if reached else "the coordinator does not answer"
            log_event(logging.INFO if reached else logging.WARNING, words, shard=self._shard)
