"""The loop: due → lease → fetch → decide → commit.

    Policy (memory) ──Picker.next──▶ rows ──Store.lease──▶ Lease ──Source.poll──▶ Fetched
         ▲                (groups that are ready)              (Gate: the budget)     │
         │                                                                            ▼
         └────observe──── Observation ◀──Writer: groups within 100 ms──◀ Outcome ◀── decide

Everything here runs on one event loop; the store is called in the writer's thread alone. An item is busy from
its pick until its outcome is committed, so it is never polled twice at once; its lease says the same to other
engines. Stopping drains: no new polls, those under way end, everything is committed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from afresh.engine import audits
from afresh.engine.accounts import Accounts, by_then
from afresh.engine.budget import Limits
from afresh.engine.choices import Choices
from afresh.engine.earnings import appraise, earns
from afresh.engine.fleet import Member
from afresh.engine.gate import Gate
from afresh.engine.hooks import Hook, Hooks
from afresh.engine.line import StoreLine
from afresh.engine.lister import Lister
from afresh.engine.logs import say
from afresh.engine.memory import Memory
from afresh.engine.picker import Picker, Place
from afresh.engine.settings import BudgetTable, Settings
from afresh.engine.snapshot import recalled
from afresh.engine.source_set import Build, SourceSet
from afresh.engine.state_names import THRESHOLD, USES
from afresh.engine.watch import StoreNews, Watch
from afresh.engine.witness import Witness
from afresh.engine.writer import Writer
from afresh.sources.choosing import ChoosingSource
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.fetched import Fetched
from afresh.values.items import ItemChange
from afresh.values.lease import Lease
from afresh.values.outcome import Outcome, Refusal

TICK_S = 0.5
_AHEAD_S = 0.05  # polls are leased so far ahead of their requests
_MOST_AT_ONCE = 64
_TAKEN_ELSEWHERE_S = 5.0
_PENDING_AUDITS = 4


@dataclass(frozen=True, slots=True)
class Bulk:
    """Rows of one place that are polled together, most often a single one."""

    place: Place
    rows: tuple[int, ...]
    audit: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How a run goes: counts since its start."""

    polls: int = 0
    changes: int = 0
    failures: int = 0
    requests: int = 0
    audits: int = 0
    in_flight: int = 0
    freshness: float = math.nan
    trouble: str = ""


BuildFor = Callable[[Gate], Build]
"""What builds the sources whose requests pass a gate."""


class Loop:
    """One run of the engine, from ``run`` until it returns."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Clock,
        rng: np.random.Generator,
        build_for: BuildFor,
    ) -> None:
        self.store, self.settings, self._clock, self._rng = store, settings, clock, rng
        self._build_for = build_for
        self.memory = Memory()
        self._in_flight: set[asyncio.Task[None]] = set()
        self._at_place: Counter[Place] = Counter()
        self._audits: list[int] = []
        self._stirred = asyncio.Event()
        self._stopping = False
        self._given_up = asyncio.Event()
        self._defect: BaseException | None = None
        self.running = False

    def stop(self) -> None:
        """Start no more polls; end when those under way are committed. A second time: end now."""
        if self._stopping:
            self._given_up.set()
        self._stopping = True
        self._stirred.set()

    def progress(self) -> Progress:
        """How it goes."""
        return Progress(
            **{name: self._accounts.counts[name] for name in ("polls", "changes", "failures", "audits")},
            requests=self._gate.requests,
            in_flight=len(self._in_flight),
            freshness=self.policy.freshness(self._clock.now_s())[0],
            trouble=self._writer.trouble,
        )

    async def run(self, *, for_s: float = math.inf, once: bool = False) -> Progress:
        """Poll until stopped, for a time, or (``once``) until everything due now was polled once."""
        await self._start()
        self.running = True
        until_s = self._clock.elapsed_s() + for_s
        if once:
            self._accounts.only_due_s = self._clock.now_s()
            self._accounts.restrict()
        serving = self._serve()
        helpers = {
            asyncio.create_task(self._watch.run()),
            asyncio.create_task(self._lister.run(once=once)),
            asyncio.create_task(self._witness.run()),
            asyncio.create_task(self._tell_hooks()),
            asyncio.create_task(self._keep_up()),
        }
        try:
            await self._feed(until_s, {*serving, *helpers})
        finally:
            await self._finish(serving, *helpers)
        return self.progress()

    async def refresh(self, item_id: int) -> bool:
        """Poll one item now, whatever its status; False if another engine is polling it."""
        await self._start([item_id])
        row = self.memory.row(item_id)
        serving = self._serve()
        try:
            if row is None or not await self._turn_of(row):
                return False
            now_s, lease_s = self._clock.now_s(), self._lease_s
            leases = await self._writer.call(
                lambda: self.store.leases.take([item_id], now_s, lease_s, any_status=True)
            )
            if not leases:
                return False
            place = self.picker.place(row)
            self._at_place[place] += 1
            await self._poll(Bulk(place, (row,)), leases)
            return True
        finally:
            await self._finish(serving)

    async def _turn_of(self, row: int) -> bool:
        """Wait until the group of an item is ours; False if whoever has it polled the item meanwhile."""
        group, ids = self._named(self.picker.place(row))[1], [int(self.memory.ids[row])]
        (before,) = await self._writer.surely(lambda: self.store.items.by_id(ids)) or (None,)
        holding = asyncio.create_task(self.member.claims.hold(group))
        try:
            held, _ = await asyncio.wait({holding}, timeout=TICK_S)
            if not held and before is not None and before.status == "active":
                soon = ItemChange(due_s=self._clock.now_s())
                await self._writer.surely(lambda: self.store.items.change([before.key], soon))
            while not held:
                held, _ = await asyncio.wait({holding}, timeout=TICK_S)
                (item,) = await self._writer.surely(lambda: self.store.items.by_id(ids)) or (None,)
                if item is None or before is None or item.polls > before.polls:
                    return False
            return True
        finally:
            holding.cancel()

    async def list_items(self, source: str) -> int:
        """Read the documents of one source now; how many items they add."""
        await self._start([])
        serving = self._serve()
        try:
            return await self._lister.read(source)
        finally:
            await self._finish(serving)

    def _serve(self) -> tuple[asyncio.Task[None], ...]:
        """What every request needs until the last is committed: the writer, the beats and the claims."""
        member = self.member
        work = (self._writer.run(), member.run(self._is_quiet), member.claims.run(self.sources.inherit))
        return tuple(asyncio.create_task(each) for each in work)

    async def _start(self, only: Sequence[int] | None = None) -> None:
        """Take in what the store remembers, of all items or some."""
        store, clock, settings = self.store, self._clock, self.settings
        self._writer = Writer(store, self._committed, self._engine_state, self._complete)
        news = await self._writer.surely(lambda: StoreNews(store))
        if only is None:
            self.memory.load(await self._writer.surely(lambda: news.added(0)))
        else:
            self.memory.load([await self._writer.surely(lambda: store.plan.columns_of(only))])
        await self._join()
        now_s = clock.now_s()
        self.policy = await self._writer.surely(lambda: recalled(store, settings, self.memory, now_s))
        self.picker = Picker(self.memory, self.policy)
        self._counted = max(int(self.memory.active.sum()), 1)
        self._accounts = Accounts(settings, self.memory, self.policy)
        self._watch = Watch(
            store, self._writer, news, self.picker, self._accounts, clock, self._stirred, self._plans
        )
        await self._watch.begin()
        self.sources = SourceSet(store, self._writer, clock, self._build_for(self._gate))
        await self.sources.open(settings)
        self._lister = Lister(
            store, self._writer, clock, self.sources, settings, self._gate.paid, self._plans
        )
        self._witness = Witness(
            store,
            self._writer,
            clock,
            self.sources,
            self._lister,
            self._accounts,
            self.picker,
            lambda: self._watch.names,
            self._stirred,
        )
        self._choices = Choices(store, self._writer, self.memory, clock, self._catch_up)
        self._hooks = Hooks(
            store, self._writer, clock, hooks_of(settings), timeout_s=settings.run.hook_timeout
        )

    async def _join(self) -> None:
        """Become a worker of the store, with the gate that all its requests pass."""
        store, settings = self.store, self.settings
        delay_s = max((float(getattr(each.settings, "delay", 0.0)) for each in settings.sources), default=0.0)
        self.member = Member(
            store,
            self._writer,
            self._clock,
            claim_s=settings.run.claim,
            delay_s=delay_s,
            stirred=self._stirred,
        )
        await self.member.join()
        line = StoreLine(store, self._writer, self.member.time, lambda: self.member.alone)
        limits, caps = limits_of(settings.budget), settings.plan.caps
        self._gate = Gate(self._clock, limits, line, self.member.claims, caps)

    def _plans(self) -> bool:
        return self.member.plans

    def _is_elsewhere(self, group: str) -> bool:
        return group not in self.member.claims

    @property
    def _lease_s(self) -> float:
        # While its group is claimed nobody else polls an item; when the claim has run out somebody may.
        return min(self.settings.run.lease, self.settings.run.claim)

    def _is_quiet(self, group: str) -> bool:
        """Whether a group can be left to others: nothing is asked there, and it could be asked again."""
        now_s = self._clock.now_s()
        if any(self._named(place)[1] == group for place in self._at_place):
            return False
        return all(self.sources.ready_s(name, group, now_s) <= now_s for name in self.sources.names())

    def _engine_state(self) -> Mapping[str, bytes | None]:
        if not self.member.plans:
            return {}
        return {THRESHOLD: repr(self.policy.threshold).encode(), USES: self._accounts.uses.pack()}

    async def _tell_hooks(self) -> None:
        while True:
            delivered = await self._hooks.deliver() if self.member.plans else self._hooks.leave()
            await asyncio.sleep(0 if delivered else TICK_S)

    async def _keep_up(self) -> None:
        """Keep the sources' manners, and a budget for each item in step with how many there are."""
        while True:
            await asyncio.sleep(TICK_S)
            await self.sources.keep(is_elsewhere=self._is_elsewhere)
            items, budget = max(int(self.memory.active.sum()), 1), self.settings.budget
            if budget.each_item and items != self._counted:
                more = budget.model_copy(update={"requests": budget.requests * items / self._counted})
                self._counted = items
                self.reload(replace(self.settings, budget=more))

    # The feed: pick, lease, launch.

    async def _feed(self, until_s: float, helpers: set[asyncio.Task[None]]) -> None:
        while not self._stopping:
            for helper in helpers:
                if helper.done():
                    helper.result()  # raises if the store is damaged: not to be waited out
            if self._defect is not None:
                raise self._defect
            left_s = until_s - self._clock.elapsed_s()
            if left_s <= 0:
                return
            wait_s = max(self._gate.wait_s(), 0.0)
            ahead = max(1, min(int(self.settings.budget.requests * _AHEAD_S), _MOST_AT_ONCE))
            room = self.settings.run.concurrency - len(self._in_flight)
            if self._writer.crowded or room <= 0 or self._gate.waiting >= ahead or wait_s > _AHEAD_S:
                await self._pause(min(left_s, wait_s if wait_s > _AHEAD_S else TICK_S))
                continue
            bulks = self._choose(min(ahead, room))
            if bulks:
                await self._launch(bulks)
            elif self._is_done():
                return
            else:
                rest_s = self.picker.wake_s() - self._clock.now_s()
                await self._pause(min(left_s, max(rest_s, 0.001), TICK_S / 2))

    async def _pause(self, seconds: float) -> None:
        """Wait until something ends or changes, ``seconds`` at most."""
        self._stirred.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), max(seconds, 0.0))

    def _is_done(self) -> bool:
        """``once``: nothing due is left, not even in groups that rest."""
        if self._accounts.only_due_s is None or self._in_flight or bool(self.memory.busy.any()):
            return False
        if self._lister.busy or self._witness.busy:
            return False
        return not bool(np.any(self.policy.worth(self._clock.now_s()) > -np.inf))

    def _choose(self, most: int) -> list[Bulk]:
        """Bulks of rows to poll now, marked busy: of one row each but where a source can do more at once."""
        chosen: list[Bulk] = []
        for _ in range(most):
            row = self._audit()
            audit = row is not None
            if row is None:
                row = self.picker.next(self._clock.now_s(), self._ready_s)
                if row is None:
                    break
                self._draw_audit()
            place = self.picker.place(row)
            self._at_place[place] += 1
            more = 0 if audit else self.sources.bulk_limit(*self._named(place)) - 1
            chosen.append(Bulk(place, (row, *self.picker.further(place, more)), audit))
        return chosen

    def _named(self, place: Place) -> tuple[str, str]:
        return self._watch.names.get(place[0], ""), self._watch.names.get(place[1], "")

    def _draw_audit(self) -> None:
        """After a poll that was chosen, perhaps one that is drawn: a set share of all."""
        share = self.settings.plan.audit_share
        if self._accounts.only_due_s is None and len(self._audits) < _PENDING_AUDITS:
            row = audits.draw(self.memory, self._rng) if self._rng.random() < share / (1.0 - share) else None
            if row is not None and not self.policy.watched()[row]:  # whose staleness is seen needs no audit
                self._audits.append(row)

    def _audit(self) -> int | None:
        """An audit that can be made now; a draw is kept until its group is ready, lest busy hosts escape."""
        for row in self._audits:
            group = self._named(self.picker.place(row))[1]
            if not self.memory.active[row] or self.member.claims.is_elsewhere(group):
                self._audits.remove(row)  # whoever has the group draws there
                return None
            now_s = self._clock.now_s()
            if not self.memory.busy[row] and self._ready_s(self.picker.place(row), now_s) <= now_s:
                self._audits.remove(row)
                return self.picker.take(row, 0.0)
        return None

    def _ready_s(self, place: Place, now_s: float) -> float:
        name, group = self._named(place)
        table = self.settings.source(name)
        if table is None or self._at_place[place] >= table.concurrency or self._witness.looking(name):
            return math.inf
        ready_s = max(self.sources.ready_s(name, group, now_s), self._gate.ready_s(group))
        return ready_s if ready_s > now_s else self.member.claims.ready_s(group, now_s)

    async def _launch(self, bulks: Sequence[Bulk]) -> None:
        memory, now_s, lease_s = self.memory, self._clock.now_s(), self._lease_s
        ids = [int(memory.ids[row]) for bulk in bulks for row in bulk.rows]
        leases = await self._writer.surely(lambda: self.store.leases.take(ids, now_s, lease_s))
        taken = {lease.item_id: lease for lease in leases}
        unused: list[Lease] = []
        for bulk in bulks:
            wanted = [lease for row in bulk.rows if (lease := self._wanted(bulk, row, taken, now_s, unused))]
            if not wanted:
                self._leave(bulk.place)
                continue
            task = asyncio.create_task(self._poll(bulk, wanted))
            self._in_flight.add(task)
            task.add_done_callback(self._ended)
        if unused:
            await self._writer.surely(lambda: self.store.leases.release(unused))

    def _wanted(
        self, bulk: Bulk, row: int, taken: Mapping[int, Lease], now_s: float, unused: list[Lease]
    ) -> Lease | None:
        """The lease of a row that is to be polled now; None where others have it, or had it just before."""
        lease = taken.get(int(self.memory.ids[row]))
        if lease is None:
            # Another engine has it, or it was paused a moment ago.
            self.memory.hold_s[row] = now_s + _TAKEN_ELSEWHERE_S
        elif self._catch_up(lease, row, now_s) and not bulk.audit and self._is_early(row, now_s):
            unused.append(lease)
        else:
            return lease
        self.memory.busy[row] = False
        return None

    def _catch_up(self, lease: Lease, row: int, now_s: float) -> bool:
        """Whether another engine has polled the item since we did; then what it learned counts here too."""
        polled_s = lease.polled_s
        if polled_s is None or polled_s > now_s:  # never, or by a clock that was set back since
            return False
        if not self.memory.catch_up(row, polled_s):
            return False
        self.memory.hold_s[row] = self.policy.ranking.take_over(row, polled_s, lease.belief)
        return True

    def _is_early(self, row: int, now_s: float) -> bool:
        """Whether another engine polled the item so lately that it is not worth a poll now."""
        return self.policy.due_s(row, float(self.memory.polled_s[row])) > now_s

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A poll is over; a defect of ours in it ends the run rather than hide."""
        self._in_flight.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._defect = task.exception()
            self._stirred.set()

    # One poll.

    async def _poll(self, bulk: Bulk, leases: Sequence[Lease]) -> None:
        try:
            for lease, fetched in await self._fetched(bulk, leases):
                outcome = self._accounts.outcome(lease, fetched, self._clock.now_s(), audit=bulk.audit)
                self._gate.paid(outcome.spent)
                self._writer.put(outcome)
        finally:
            self._leave(bulk.place)

    async def _fetched(self, bulk: Bulk, leases: Sequence[Lease]) -> list[tuple[Lease, Fetched]]:
        """What the source makes of it; one that chooses what to refresh may bring others."""
        choosing = self.running and not bulk.audit and not self.memory.asked[bulk.rows[0]]
        async with self.sources.using(leases[0].source) as source:
            if choosing and isinstance(source, ChoosingSource):
                return await self._choices.poll(source, leases[0], self.settings.run.lease)
            found = await self.sources.poll(leases, conditional=not bulk.audit)
        return list(zip(leases, found, strict=True))

    def _leave(self, place: Place) -> None:
        self._at_place[place] -= 1
        if self._at_place[place] <= 0:
            del self._at_place[place]
        self.picker.freed(place)
        self._stirred.set()

    def _complete(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        now_s = self._clock.now_s()
        return self._accounts.complete([by_then(outcome, now_s) for outcome in outcomes])

    def _committed(self, outcomes: Sequence[Outcome], refusals: Sequence[Refusal]) -> None:
        for refusal in refusals:
            say(logging.WARNING, "an outcome was not kept", problem=str(refusal))
        rows = self.memory.rows([outcome.lease.item_id for outcome in outcomes])
        self._witness.polled()
        self.memory.busy[rows] = False
        self._stirred.set()

    def reload(self, settings: Settings) -> list[str]:
        """Other settings from now on; which sources are others, in words. Refused whole if any is wrong."""
        words = self.sources.exchange(settings.sources)
        self._hooks.exchange(hooks_of(settings), timeout_s=settings.run.hook_timeout)
        self.settings = self._accounts.settings = self._lister.settings = settings
        self._gate.limit(limits_of(settings.budget), settings.plan.caps)
        self.policy.name = settings.plan.policy
        self.policy.ranking.set_objective(settings.plan.objective)
        if not earns(settings):
            self.policy.ranking.set_budget(settings.budget.requests)
        appraise(self.policy, settings, self._watch.names, self._accounts.uses)
        self.picker.stale()
        self._stirred.set()
        return words

    async def _finish(self, serving: Sequence[asyncio.Task[None]], *others: asyncio.Task[None]) -> None:
        """Drain: polls under way end, what they brought is committed, sources and thread are let go."""
        for other in others:
            other.cancel()
        draining = asyncio.create_task(self._drain())
        giving_up = asyncio.create_task(self._given_up.wait())
        await asyncio.wait({draining, giving_up, *serving}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            say(logging.WARNING, "stopped before everything was kept", problem=self._writer.trouble)
        ended = (*others, *self._in_flight, draining, giving_up, *serving)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        await self.member.leave()
        await self.sources.close()
        self._writer.close()

    async def _drain(self) -> None:
        if self._in_flight:
            await asyncio.wait(set(self._in_flight))
        await self._writer.flushed()
        while self.member.plans and await self._hooks.deliver():
            pass
        await self._gate.close()
        await self._watch.keep_learned()
        await self._witness.keep()
        await self.sources.keep(notes=True, is_elsewhere=self._is_elsewhere)


def hooks_of(settings: Settings) -> dict[str, Hook]:
    """Who is told of the changes of each source."""
    return {table.settings.name: table.on_change for table in settings.sources if table.on_change}


def limits_of(budget: BudgetTable) -> Limits:
    """The budget of the settings as limits per second."""
    return Limits(
        budget.requests,
        *(math.inf if limit is None else limit for limit in (budget.bytes, budget.seconds, budget.money)),
    )
