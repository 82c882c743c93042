"""Hooks: every change is delivered to a command or a function, at least once and in order for each item.

Hooks are a consumer of the change feed: the store queues what the feed has for them, and offers a change only
when no earlier change of its item is taken or deferred. So the order is kept even if the process is killed in
the middle of a delivery. A failed delivery is repeated after longer and longer waits; later changes of the
same item wait until it succeeds, or until it is given up after a number of attempts. What was given up is
kept, until ``afresh hooks`` retries or drops it.

**What runs where.** The planner of a fleet delivers, so that no two processes do. Sources are independent of
each other. For one source, one call runs at a time, in the order in which the changes were committed, unless
its settings allow several (``at_once``): then calls for one item still follow each other.

If item views are made from the item, their hooks are told too, after the hook of the source. The hook of a
view is called once at a time.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from afresh.engine.feed.hook_calls import HookCalls, ReadyHook, StaleView, make_ready, read_change
from afresh.engine.logs import log_event
from afresh.engine.settings.hook_rules import HookRules, SourceHook
from afresh.engine.settings.item_views import HookSetting, ItemViews
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import HOOKS
from afresh.engine.threaded_store import ThreadedStore
from afresh.values.backoff import Backoff
from afresh.values.changes import Change
from afresh.values.clock import Clock
from afresh.values.stored import DueEvents, Event

__all__ = ["Hooks", "StaleView", "source_hooks"]

_AT_ONCE = 16  # changes of a source that are taken together
_ROUND_S = 5.0  # after this time the rest of them is put back, so that a slow source delays no other one
_ALONE_AFTER = 3  # a change that failed so often in batches is delivered alone, to find the one that fails
RETRIES = Backoff(first_s=2.0, longest_s=3600.0)
_OF_SOURCE = ""  # stands for the hook of the item's source, among the names of views
_Teller: TypeAlias = Callable[[Change], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class _HeldUp:
    """A delivery that failed: the event, when it is tried again (Unix seconds), and those of its hooks that
    were told already and are not told again: "" for the hook of the source, or the name of a view."""

    event: int
    until_s: float
    told: tuple[str, ...] = ()


class Hooks:
    """Delivers the changes of a store to the hooks of their sources, and of the views of their items."""

    def __init__(
        self,
        store: ThreadedStore,
        clock: Clock,
        hooks: Mapping[str, SourceHook | HookSetting],
        views: ItemViews | None = None,
        *,
        timeout_s: float,
    ) -> None:
        self._store, self._clock = store, clock
        self._calls = HookCalls(timeout_s)
        self.replace_hooks(hooks, views, timeout_s=timeout_s)
        # By item id; None until it is read from the store.
        self._held_up: dict[int, _HeldUp] | None = None

    def replace_hooks(
        self,
        hooks: Mapping[str, SourceHook | HookSetting],
        views: ItemViews | None = None,
        *,
        timeout_s: float,
    ) -> None:
        """Deliver all changes to ``hooks`` (by source) and to the hooks of ``views`` from now on, also those
        that are waiting already."""
        found = {
            name: hook if isinstance(hook, SourceHook) else SourceHook(hook) for name, hook in hooks.items()
        }
        of_source = {name: make_ready(hook.hook, "on_change") for name, hook in found.items()}
        tables = views.tables if views is not None else ()
        of_view = {view.name: make_ready(view.on_stale, "on_stale") for view in tables if view.on_stale}
        # Nothing is replaced if a function cannot be found.
        self._calls.timeout_s, self._views = timeout_s, views or ItemViews()
        self._hooks, self._view_hooks = of_source, of_view
        self._rules = {name: hook.rules for name, hook in found.items()}
        self._one_at_a_time = {name: asyncio.Lock() for name in of_view}

    def forget_told(self) -> None:
        """Forget which hooks were told, because another worker delivers now."""
        self._held_up = None

    async def close(self) -> None:
        await self._calls.close()

    async def deliver(self, *, finish: bool = False) -> int:
        """Deliver the next changes that are due; return how many were delivered. With ``finish``, batches are
        delivered also if they could still grow."""
        if not (self._hooks or self._view_hooks):
            return 0
        sync = self._store.sync
        if not await self._store.run(sync.events.waiting):
            return 0
        if self._held_up is None:
            self._held_up = await self._read_held_up()
        due = await self._store.run(sync.events.due, self._clock.now_s())
        ready = [source for source, found in due.items() if finish or self._is_ready(source, found)]
        return sum(await asyncio.gather(*map(self._deliver_source, ready)))

    def _is_ready(self, source: str, due: DueEvents) -> bool:
        """Return whether what is due of a source is delivered now, or waits for a larger batch."""
        rules = self._rules_of(source)
        return due.number >= rules.batch or self._clock.now_s() - due.oldest_s >= rules.within

    def _rules_of(self, source: str) -> HookRules:
        return self._rules.get(source) or HookRules()

    @property
    def _reserved_s(self) -> float:
        """The seconds after which an event that was taken is offered again, if its delivery was cut short."""
        return _ROUND_S + (2 + len(self._view_hooks)) * self._calls.timeout_s

    async def _deliver_source(self, source: str) -> int:
        rules, now_s = self._rules_of(source), self._clock.now_s()
        limit = max(_AT_ONCE, rules.batch, rules.at_once)
        take = self._store.sync.events.take
        events = await self._store.run(take, now_s, limit, self._reserved_s, source)
        if rules.batch > 1 and source in self._hooks:
            return await self._deliver_batch(source, events)
        if rules.at_once == 1:
            return await self._deliver_in_order(events)
        lines: dict[int, list[Event]] = {}
        for event in events:
            lines.setdefault(event.item_id, []).append(event)
        turns = asyncio.Semaphore(rules.at_once)

        async def deliver(line: list[Event]) -> int:
            async with turns:
                return await self._deliver_in_order(line)

        return sum(await asyncio.gather(*map(deliver, lines.values())))

    async def _deliver_in_order(self, events: Sequence[Event]) -> int:
        """Deliver events one after the other; return how many were delivered. If one fails, the later ones of
        its item are put back. After ``_ROUND_S`` seconds all that are left are put back."""
        began_s, done = self._clock.elapsed_s(), 0
        blocked: dict[int, float] = {}
        for place, event in enumerate(events):
            if self._clock.elapsed_s() - began_s > min(_ROUND_S, self._calls.timeout_s / 2):
                await self._put_back(events[place:], blocked)
                break
            if event.item_id in blocked:
                await self._put_back([event], blocked)
            elif (until_s := await self._deliver_one(event)) is None:
                done += 1
            elif until_s < math.inf:
                blocked[event.item_id] = until_s
        return done

    async def _deliver_one(self, event: Event) -> float | None:
        """Deliver one event to all its hooks that were not told yet. Return None if it was delivered, else
        when it is tried again."""
        held = (self._held_up or {}).get(event.item_id)
        told = held.told if held is not None and held.event == event.id else ()
        told, problem = await self._deliver_event(event, told)
        if problem:
            return await self._fail([event], problem, {event.id: told})
        await self._succeed([event])
        return None

    async def _deliver_batch(self, source: str, events: Sequence[Event]) -> int:
        """Deliver events of one source to its hook together, and then to the hooks of views one by one."""
        rules, held = self._rules_of(source), self._held_up or {}
        told = {event.id for event in events if _was_told(held.get(event.item_id), event)}
        # Before it is given up, too: only a call of its own shows that the change itself fails.
        alone_after = min(_ALONE_AFTER, max(1, rules.attempts - 1))
        alone = [event for event in events if event.attempts > alone_after and event.id not in told]
        rest = [event for event in events if event.id not in told and event not in alone]
        # A change must not overtake an earlier one of its item that is delivered in another batch.
        done, blocked = [event for event in events if event.id in told], dict[int, float]()
        batches = [[event] for event in alone] + [
            rest[start : start + rules.batch] for start in range(0, len(rest), rules.batch)
        ]
        for batch in sorted(batches, key=lambda found: found[0].id):
            free = [event for event in batch if event.item_id not in blocked]
            await self._put_back([event for event in batch if event.item_id in blocked], blocked)
            if free and (until_s := await self._tell_batch(source, free)) is not None:
                blocked |= {event.item_id: until_s for event in free if until_s < math.inf}
            else:
                done += free
        return await self._finish_batch(done)

    async def _tell_batch(self, source: str, events: Sequence[Event]) -> float | None:
        """Call the hook of a source with events. Return None if it succeeded, else when it is tried again."""
        changes = [await self._change(event) for event in events]
        problem = await self._calls.tell_batch(self._hooks[source], changes, ("source", source))
        return await self._fail(events, problem, {}) if problem else None

    async def _finish_batch(self, events: Sequence[Event]) -> int:
        """Tell the hooks of views about events that the hook of the source was told; return how many events
        were delivered to all."""
        plain = [event for event in events if not self._has_view_hook(event)]
        await self._succeed(plain)
        done, blocked = len(plain), dict[int, float]()
        for event in events:
            if event.item_id in blocked:
                await self._put_back([event], blocked)
            elif self._has_view_hook(event):
                held = (self._held_up or {}).get(event.item_id)
                if not _was_told(held, event):
                    await self._save_held_up({event.item_id: _HeldUp(event.id, 0.0, (_OF_SOURCE,))})
                until_s = await self._deliver_one(event)
                done += until_s is None
                if until_s is not None:
                    blocked[event.item_id] = until_s
        return done

    def _has_view_hook(self, event: Event) -> bool:
        return any(view.name in self._view_hooks for view in self._views.of_item(event.key))

    async def _succeed(self, events: Sequence[Event]) -> None:
        if events:
            await self._save_held_up({event.item_id: None for event in events})
            await self._store.run(self._store.sync.events.done, [event.id for event in events])

    async def _fail(
        self, events: Sequence[Event], problem: str, told: Mapping[int, tuple[str, ...]]
    ) -> float:
        """Defer events whose delivery failed, or give up one that was alone after too many attempts. ``told``
        are the hooks that were told of each event all the same. Return when they are tried again."""
        attempts = max(event.attempts for event in events)
        until_s = self._clock.now_s() + RETRIES.wait_s(attempts)
        given_up = len(events) == 1 and attempts >= self._rules_of(events[0].source).attempts
        if given_up:
            until_s = math.inf
        held = {
            event.item_id: None if given_up else _HeldUp(event.id, until_s, told.get(event.id, ()))
            for event in reversed(events)  # of the events of one item, the first is the one that waits
        }
        await self._save_held_up(held)
        words = "a hook failed too often: its change was given up" if given_up else "hook failed"
        item = events[0].key if len(events) == 1 else f"{len(events)} items"
        level = logging.ERROR if given_up else logging.WARNING
        log_event(level, words, item=item, attempt=attempts, problem=problem)
        ids = [event.id for event in events]
        await self._store.run(self._store.sync.events.defer, ids, until_s, problem)
        return until_s

    async def _put_back(self, events: Sequence[Event], blocked: Mapping[int, float]) -> None:
        """Put back events that were taken, but not delivered: until the earlier event of their item is tried
        again (``blocked``, by item), or until now."""
        by_time: dict[float, list[int]] = {}
        for event in events:
            by_time.setdefault(blocked.get(event.item_id, self._clock.now_s()), []).append(event.id)
        for until_s, ids in by_time.items():
            await self._store.run(self._store.sync.events.put_back, ids, until_s)

    async def _read_held_up(self) -> dict[int, _HeldUp]:
        packed = await self._store.run(self._store.sync.state.get, HOOKS)
        kept = json.loads(packed) if packed else {}
        return {
            int(item): _HeldUp(event, until_s, *map(tuple, told))  # afresh 0.1.0 did not save ``told``
            for item, (event, until_s, *told) in kept.items()
        }

    async def _save_held_up(self, failed: Mapping[int, _HeldUp | None]) -> None:
        """Save the deliveries that failed, by item; None for an item that no delivery holds up any more."""
        before = self._held_up or {}
        held_up = {**before, **{item: one for item, one in failed.items() if one is not None}}
        for item, one in failed.items():
            if one is None:
                held_up.pop(item, None)
        self._held_up = held_up
        if held_up != before:
            packed = json.dumps({item: (one.event, one.until_s, one.told) for item, one in held_up.items()})
            await self._store.run(self._store.sync.state.set, {HOOKS: packed.encode()})

    async def _deliver_event(self, event: Event, told: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
        """Deliver one event to all its hooks but those in ``told``. Return a tuple: the hooks that are told
        now, and why another one failed, or an empty string if none did."""
        waiting = [teller for teller in self._tellers(event) if teller[0] not in told]
        if not waiting:
            return told, ""  # the source no longer has a hook
        change, problems = await self._change(event), []
        for name, tell in waiting:
            problem = await tell(change)
            if problem:
                problems.append(f"view {name!r}: {problem}" if name else problem)
            else:
                told = (*told, name)
        return told, "; ".join(problems)

    def _tellers(self, event: Event) -> list[tuple[str, _Teller]]:
        """Return a tuple (name, function) for each hook of an event; the function calls the hook, and returns
        why this failed, or an empty string. The name is that of a view, or "" for the hook of the source."""
        found: list[tuple[str, _Teller]] = []
        if event.source in self._hooks:
            found.append((_OF_SOURCE, partial(self._tell_source, self._hooks[event.source])))
        for view in self._views.of_item(event.key):
            if view.name in self._view_hooks:
                hook, lock = self._view_hooks[view.name], self._one_at_a_time[view.name]
                found.append((view.name, partial(self._tell_view, hook, lock, view.name)))
        return found

    async def _tell_source(self, hook: ReadyHook, change: Change) -> str:
        rules, source = self._rules_of(change.source), ("source", change.source)
        if rules.batch > 1:
            return await self._calls.tell_batch(hook, [change], source)
        tag = source if rules.at_once == 1 else (*source, change.item)
        return await self._calls.tell_change(hook, change, tag)

    async def _tell_view(self, hook: ReadyHook, lock: asyncio.Lock, view: str, change: Change) -> str:
        async with lock:
            return await self._calls.tell_view(hook, view, change)

    async def _change(self, event: Event) -> Change:
        previous = self._rules_of(event.source).previous
        return await self._store.run(read_change, self._store.sync, event, previous=previous)


def _was_told(held: _HeldUp | None, event: Event) -> bool:
    return held is not None and held.event == event.id and _OF_SOURCE in held.told


def source_hooks(settings: Settings) -> dict[str, SourceHook]:
    """Return the hooks of the sources, by source."""
    return {
        table.settings.name: SourceHook(table.on_change, table.hook)
        for table in settings.sources
        if table.on_change
    }
