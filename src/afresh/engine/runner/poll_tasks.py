"""Runs the polls: each is fetched, decided and passed to the writer. Counts the polls of each group."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from afresh.engine.runner.batch_polls import BatchPolls
from afresh.engine.runner.run_context import RunContext
from afresh.engine.runner.slot_shares import SlotShares
from afresh.engine.runner.writer import Writer
from afresh.engine.scheduler.picker import GroupKey
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease


@dataclass(frozen=True, slots=True)
class Bulk:
    """Rows of one group that are polled with one request; most often a single row."""

    group_key: GroupKey
    rows: tuple[int, ...]
    audit: bool = False


class PollTasks:
    """The polls of one run. ``shares`` counts the polls under way in each group; ``in_flight`` are their
    tasks. ``defect`` is an error that a poll task raised, which must end the run."""

    def __init__(self, context: RunContext, writer: Writer) -> None:
        self._context, self._writer = context, writer
        self.shares = SlotShares()
        self._batch_polls = BatchPolls(context)
        self.in_flight: set[asyncio.Task[None]] = set()
        self._patience_s: dict[asyncio.Task[None], float] = {}  # of polls of groups that were quick
        self._late: set[asyncio.Task[None]] = set()
        self.defect: BaseException | None = None

    def begin(self, group_key: GroupKey) -> None:
        """Count one more poll in a group. Call ``leave`` when it is over, or if it is not made."""
        self.shares.begin(group_key)

    def leave(self, group_key: GroupKey) -> None:
        self.shares.end(group_key)
        self._context.scheduler.picker.release_group(group_key)
        self._context.wakeup.set()

    def launch(self, bulk: Bulk, leases: Sequence[Lease]) -> None:
        """Start a task that polls ``leases``; ``begin`` must have been called for their group."""
        task = asyncio.create_task(self.poll(bulk, leases))
        self.in_flight.add(task)
        patience_s = self.shares.patience_s(bulk.group_key)
        if patience_s < math.inf:
            self._patience_s[task] = patience_s
        task.add_done_callback(self._end)

    async def poll(self, bulk: Bulk, leases: Sequence[Lease], *, may_choose: bool = True) -> None:
        """Poll ``leases`` and pass the outcomes on. With ``may_choose``, the source may add items. If the run
        stops while the poll waits for the budget, the leases are given back."""
        context = self._context
        try:
            answers = await self._fetch(bulk, leases, may_choose=may_choose)
            self.shares.record(bulk.group_key, sum(fetched.seconds for _, fetched in answers))
            for lease, fetched in answers:
                poll = context.recorder.decide(lease, fetched, context.clock.now_s(), audit=bulk.audit)
                context.gate.record_cost(poll.spent)
                self._writer.put(poll)
        except asyncio.CancelledError:
            if not context.gate.waits.has_cut():
                raise
            # The run stops, and the budget allows no request now: other engines may poll the items.
            await self._batch_polls.release(leases)
        finally:
            self.leave(bulk.group_key)

    async def _fetch(
        self, bulk: Bulk, leases: Sequence[Lease], *, may_choose: bool
    ) -> list[tuple[Lease, Fetched]]:
        """Return tuples (lease, answer of the source). A source that chooses batches may add items."""
        context, name = self._context, leases[0].source
        is_requested = context.scheduler.item_rows.is_requested[bulk.rows[0]]
        with context.sources.using(name):
            batches = context.sources.capabilities(name).batches
            if may_choose and not bulk.audit and not is_requested and batches is not None:
                return await self._batch_polls.poll(batches, leases[0], context.settings.now.run.lease)
            found = await context.sources.poll(leases, conditional=not bulk.audit)
        return list(zip(leases, found, strict=True))

    def end_late_requests(self) -> None:
        """End the requests that hold slots for quick groups and are not quick. Call this again and again
        while all slots are taken: a request is ended when two calls find it late, because after a pause of
        this process itself all requests look late once."""
        under_way = self._context.gate.under_way
        late = {task for task, most_s in self._patience_s.items() if under_way.lasted_s(task) > most_s}
        for task in late & self._late:
            under_way.cut(task)
        self._late = late

    def _end(self, task: asyncio.Task[None]) -> None:
        self.in_flight.discard(task)
        self._patience_s.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            self.defect = task.exception()
            self._context.wakeup.set()

    def is_quiet(self, group: str) -> bool:
        """Return whether a group can be released: it has no poll under way, and no delay or back-off."""
        now_s, sources = self._context.clock.now_s(), self._context.sources
        if any(
            self._context.scheduler.group_names(group_key)[1] == group for group_key in self.shares.in_group
        ):
            return False
        return all(sources.ready_s(name, group, now_s) <= now_s for name in sources.names())
