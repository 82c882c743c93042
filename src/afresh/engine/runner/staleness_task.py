"""Reads which items are stale, from sources that observe this without polls, while the polls continue.

Every such source (``sources.capabilities``) is read every few seconds in a task of its own, so that a slow
database does not delay other sources. Every reading is a request of the budget. So that refreshes are not
left without requests, the readings of all sources together begin at most at half the rate of the budget.
Reading is also a listing: it finds new and missing items. The reports are saved in the store with the state
of the source, for the next process and for commands that only read.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence

from afresh.engine.logs import log_event
from afresh.engine.runner.listing_task import ListingTask
from afresh.engine.runner.run_context import RunContext
from afresh.engine.scheduler.earnings import apply_money_terms, has_income, update_budget
from afresh.engine.scheduler.observed_staleness import observed_staleness, pack_reports
from afresh.engine.state_names import STALENESS_REPORTS, STALENESS_STATE
from afresh.sources.capabilities import Capabilities, StalenessReport

_CHECK_EVERY_S = 0.1  # the longest time until changed settings are noticed
_SHORTEST_PAUSE_S = 1e-3
_SLOTS = 2.0  # a reading begins so many slots of the budget after the last one: the others are for refreshes
MONEY_EVERY_S = 2.0
_SAVE_EVERY_S = 60.0
_COSTLY = 50.0  # computing money terms may use at most 1/50 of the time


class StalenessTask:
    """Reads the staleness reports of every source that has some, until cancelled. ``is_busy`` is true before
    the first reading and while a source is being read."""

    def __init__(self, context: RunContext, listing_task: ListingTask) -> None:
        self._context, self._store, self._clock = context, context.store, context.clock
        self._scheduler, self._recorder = context.scheduler, context.recorder
        self._listing_task = listing_task
        self._ids: dict[str, dict[str, int]] = {}  # by source and key
        self._known: dict[str, Capabilities] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._next_s: dict[str, float] = {}
        self._turn_s = float("-inf")  # when the next reading of any source may begin
        self._released: set[int] = set()  # the ids of the items that this round may poll although not due
        self._overdue_s: dict[str, float] = {}  # when a reading that has begun has lasted too long
        self._applied_s = context.clock.elapsed_s()
        self._saved_summary: Sequence[object] = []  # a summary of the reports that were saved last
        self._saved_s = float("-inf")
        self.is_busy = True

    async def run(self) -> None:
        try:
            while True:
                waits = self._start_readings()
                self.is_busy = bool(self._reading) or waits
                pause_s = self._pause_s()
                if self._reading:
                    await asyncio.wait(self._reading.values(), timeout=pause_s)
                    for name in [name for name, task in self._reading.items() if task.done()]:
                        self._reading.pop(name).result()  # raises the error of the task, if there is one
                else:
                    await asyncio.sleep(pause_s)
                self._update_money_terms()
        finally:
            for task in self._reading.values():
                task.cancel()
            await asyncio.gather(*self._reading.values(), return_exceptions=True)

    def is_reading(self, source: str) -> bool:
        """Return whether the first reports of ``source`` are not read yet, or whether it is being read for
        longer than the time between two readings. Its items are picked afterwards. While newer reports are
        read, items are picked by the last ones: to wait for every reading would leave a part of the budget
        unused."""
        if source not in self._known:
            return self._context.sources.capabilities(source).staleness is not None
        return source in self._reading and self._clock.elapsed_s() > self._overdue_s[source]

    def after_commit(self) -> None:
        """Apply the reports again after a commit, because the refreshed items are no longer stale."""
        if self._known:
            self._apply_reports()

    async def save_state(self) -> None:
        values: dict[str, bytes | None] = {}
        for name, source in self._known.items():
            if source.state is not None:
                values[STALENESS_STATE + name] = source.state.save_state()
            values[STALENESS_REPORTS + name] = pack_reports(_reports(source))
        if values:
            await self._store.run(self._store.sync.state.set, values)

    async def _save_changes(self) -> None:
        """Save the reports once a minute, and each time one differs from what is saved."""
        seen = [pair for source in self._known.values() for pair in _reports(source).items()]
        summary = [(key, told.known, told.stale_since_s, told.cost_s, told.below) for key, told in seen]
        late = self._clock.elapsed_s() >= self._saved_s + _SAVE_EVERY_S
        if late or summary != self._saved_summary or any(told.changed for _, told in seen):
            await self.save_state()
            self._saved_summary, self._saved_s = summary, self._clock.elapsed_s()

    def _start_readings(self) -> bool:
        """Start the readings that are due, the one that is due longest first. Return whether a source waits
        for its first reading."""
        settings, now_s = self._context.settings.now, self._clock.elapsed_s()
        tables = {table.settings.name: table.settings for table in settings.sources}
        can = {name: self._context.sources.capabilities(name) for name in tables}
        observing = [name for name in tables if can[name].staleness is not None]
        for by_source in (self._known, self._next_s):
            for name in set(by_source) - set(observing):
                del by_source[name]
        read = [name for name in observing if name not in self._reading]
        due_s = {name: self._next_s.get(name, float("-inf")) for name in read}
        for name in sorted(read, key=lambda name: due_s[name]):
            if due_s[name] > now_s or not self._takes_turn(now_s):
                break
            every_s = tables[name].listings_every_s or settings.run.listings_every
            # A reading that starts a little late does not delay the next one.
            begun_s = due_s[name] if now_s - due_s[name] < every_s else now_s
            self._next_s[name], self._overdue_s[name] = begun_s + every_s, now_s + every_s
            self._reading[name] = asyncio.create_task(self._read_reports(name, can[name]))
        return any(name not in self._known and name not in self._reading for name in read)

    def _pause_s(self) -> float:
        """Return how long nothing is to be done: until the next reading is due, or the settings are checked
        again. Readings that waited for the next check would come less often than the settings say."""
        waiting = (due_s for name, due_s in self._next_s.items() if name not in self._reading)
        due_s = max(min(waiting, default=math.inf), self._turn_s)
        return min(max(due_s - self._clock.elapsed_s(), _SHORTEST_PAUSE_S), _CHECK_EVERY_S)

    def _takes_turn(self, now_s: float) -> bool:
        """Return whether a reading may begin now. Workers share the budget, and with it the readings. Turns
        that were missed since the last check are made up for."""
        if now_s < self._turn_s:
            return False
        between_s = _SLOTS * self._context.gate.spacing_s * self._context.member.workers_count
        self._turn_s = max(self._turn_s, now_s - _CHECK_EVERY_S) + between_s
        return True

    async def _read_reports(self, name: str, source: Capabilities) -> None:
        if self._known.get(name) is not source:
            kept = await self._store.run(self._store.sync.state.get, STALENESS_STATE + name)
            if kept is not None and source.state is not None:
                source.state.load_state(kept)
        await self._listing_task.read_and_report(name)
        self._known[name] = source
        seen = _reports(source)
        if seen.keys() - self._ids.get(name, {}).keys():
            self._ids[name] = await self._store.run(self._store.sync.items.ids, list(seen), name)
        self._apply_reports()
        await self._save_changes()

    def _apply_reports(self) -> None:
        item_rows, policy = self._scheduler.item_rows, self._scheduler.policy
        reports = {name: _reports(source) for name, source in self._known.items()}
        settings = self._context.settings.now
        policy.staleness = observed_staleness(reports, self._ids, item_rows, settings)
        staleness, due_s = policy.staleness, self._recorder.only_due_s
        if staleness is not None and due_s is not None:
            # In a single round, stale items that it has not polled yet may be polled. Each is released once,
            # because a poll that fails does not count as one, and would be repeated without end.
            rows = staleness.rows[staleness.stale]
            rows = rows[item_rows.polled_s[rows] < due_s]
            new = [row for row in rows.tolist() if int(item_rows.ids[row]) not in self._released]
            self._released.update(item_rows.ids[new].tolist())
            item_rows.not_before_s[new] = float("-inf")
        self._apply_money_terms()

    def _apply_money_terms(self) -> None:
        apply_money_terms(self._scheduler.policy, self._recorder.money_input())
        self._applied_s = self._clock.elapsed_s()
        self._scheduler.picker.invalidate()
        self._context.wakeup.set()

    def _update_money_terms(self) -> None:
        """If copies earn money, compute the money terms and the budget again every two seconds."""
        given, now_s = self._recorder.money_input(), self._clock.elapsed_s()
        if not has_income(given.settings) or now_s < self._applied_s + MONEY_EVERY_S:
            return
        self._apply_money_terms()
        found = update_budget(self._scheduler.policy, given)
        self._applied_s = now_s + _COSTLY * (self._clock.elapsed_s() - now_s)
        if found is not None:
            log_event(
                logging.DEBUG, "budget chosen", requests_per_s=found.requests_per_s, futile=found.futile
            )


def _reports(source: Capabilities) -> Mapping[str, StalenessReport]:
    return {} if source.staleness is None else source.staleness.staleness_reports()
