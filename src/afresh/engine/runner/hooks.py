"""Hooks: every change is delivered to a command or a function, at least once and in order for each item.

Events are queued in the transaction that commits the copy, so that none is lost. A command receives the kind
of event and the key of the item as its last two arguments, the name of the source in the environment variable
``AFRESH_SOURCE``, and the content on standard input; a function receives a ``Change``. A failed delivery is
repeated after longer and longer waits. Later events of the same item wait until it succeeds: the store offers
an event only when no earlier event of its item is taken or deferred, so that the order is kept even if the
process is killed in the middle of a delivery.

If item views are made from the item, their hooks are told too, after the hook of the source. Such a command
receives the kind of event, the name of the view and the key of the item as its last three arguments; such a
function receives a ``StaleView``. The hook of a view is called once at a time.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from afresh.engine.feed.feed_reader import copy_of_change
from afresh.engine.logs import log_event
from afresh.engine.settings.item_views import HookSetting, ItemViews
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import HOOKS
from afresh.engine.threaded_store import ThreadedStore
from afresh.sources.python.user_calls import UserCalls
from afresh.sources.python.user_function import RaisedError, find_function
from afresh.sources.user_command import CommandFailedError, run_command
from afresh.values.backoff import Backoff
from afresh.values.changes import Change
from afresh.values.clock import Clock
from afresh.values.stored import Event

_AT_ONCE = 16
RETRIES = Backoff(first_s=2.0, longest_s=3600.0)
_MOST_CALLS = 64  # of hook functions, among them those that did not end within their time
_OF_SOURCE = ""  # stands for the hook of the item's source, among the names of views

Call: TypeAlias = Callable[[Any], Any]
_Teller: TypeAlias = Callable[["Change"], Awaitable[str]]
ReadyHook: TypeAlias = Call | tuple[str, ...]
"""A hook that can be called: a function, or a command as a tuple of words."""


@dataclass(frozen=True, slots=True)
class StaleView:
    """What the hook of an item view receives: the view became stale by ``change``, which is of its item."""

    view: str
    change: Change


@dataclass(frozen=True, slots=True)
class _HeldUp:
    """A delivery that failed: the event, when it is tried again (Unix seconds), and those of its hooks that
    were told already and are not told again: "" for the hook of the source, or the name of a view."""

    event: int
    until_s: float
    told: tuple[str, ...] = ()


class Hooks:
    """Delivers the events of a store to the hooks of their sources, and of the views of their items."""

    def __init__(
        self,
        store: ThreadedStore,
        clock: Clock,
        hooks: Mapping[str, HookSetting],
        views: ItemViews | None = None,
        *,
        timeout_s: float,
    ) -> None:
        self._store, self._clock = store, clock
        self._calls = UserCalls("afresh hooks", _MOST_CALLS)
        self.replace_hooks(hooks, views, timeout_s=timeout_s)
        # By item id; None until it is read from the store.
        self._held_up: dict[int, _HeldUp] | None = None

    def replace_hooks(
        self, hooks: Mapping[str, HookSetting], views: ItemViews | None = None, *, timeout_s: float
    ) -> None:
        """Deliver all events to ``hooks`` (by source) and to the hooks of ``views`` from now on, also events
        that are waiting already."""
        of_source = {name: _make_ready(hook, "on_change") for name, hook in hooks.items()}
        tables = views.tables if views is not None else ()
        of_view = {view.name: _make_ready(view.on_stale, "on_stale") for view in tables if view.on_stale}
        # Nothing is replaced if a function cannot be found.
        self._timeout_s, self._views = timeout_s, views or ItemViews()
        self._hooks, self._view_hooks = of_source, of_view
        self._one_at_a_time = {name: asyncio.Lock() for name in of_view}

    def forget_told(self) -> None:
        """Forget which hooks were told, because another worker delivers now."""
        self._held_up = None

    async def close(self) -> None:
        await self._calls.close()

    async def deliver(self) -> int:
        """Deliver the next events that are due; return how many were delivered."""
        if not (self._hooks or self._view_hooks):
            return 0
        if not await self._store.run(self._store.sync.events.waiting):
            return 0
        if self._held_up is None:
            packed = await self._store.run(self._store.sync.state.get, HOOKS)
            kept = json.loads(packed) if packed else {}
            self._held_up = {
                int(item): _HeldUp(event, until_s, *map(tuple, told))  # afresh 0.1.0 did not save ``told``
                for item, (event, until_s, *told) in kept.items()
            }
        events = await self._store.run(
            self._store.sync.events.take, self._clock.now_s(), _AT_ONCE, self._reserved_s
        )
        lines: dict[int, list[Event]] = {}
        for event in events:
            lines.setdefault(event.item_id, []).append(event)
        return sum(await asyncio.gather(*(self._deliver_in_order(line) for line in lines.values())))

    async def _save_held_up(self, item_id: int, failed: _HeldUp | None) -> None:
        held_up = self._held_up = dict(self._held_up or {})
        if failed is not None:
            held_up[item_id] = failed
        elif held_up.pop(item_id, None) is None:
            return
        packed = json.dumps({item: (one.event, one.until_s, one.told) for item, one in held_up.items()})
        await self._store.run(self._store.sync.state.set, {HOOKS: packed.encode()})

    @property
    def _reserved_s(self) -> float:
        """The seconds after which an event that was taken is offered again, if its delivery was cut short."""
        return (2 + len(self._view_hooks)) * self._timeout_s

    async def _deliver_in_order(self, line: Sequence[Event]) -> int:
        """Deliver the events of one item in order, until one fails; return how many were delivered."""
        held, taken_s = (self._held_up or {}).get(line[0].item_id), self._clock.elapsed_s()
        for done, event in enumerate(line):
            rest = [waiting.id for waiting in line[done:]]
            if self._clock.elapsed_s() - taken_s > self._timeout_s / 2:
                # The earlier deliveries took long: the rest must not be offered to another worker meanwhile.
                await self._defer(rest, self._clock.now_s() + self._reserved_s)
                taken_s = self._clock.elapsed_s()
            told = held.told if held is not None and held.event == event.id else ()
            told, problem = await self._deliver_event(event, told)
            if problem:
                until_s = self._clock.now_s() + RETRIES.wait_s(event.attempts)
                await self._save_held_up(event.item_id, _HeldUp(event.id, until_s, told))
                log_event(
                    logging.WARNING, "hook failed", item=event.key, attempt=event.attempts, problem=problem
                )
                await self._defer(rest, until_s)
                return done
            await self._save_held_up(event.item_id, None)
            await self._store.run(self._store.sync.events.done, [event.id])
        return len(line)

    async def _defer(self, ids: Sequence[int], until_s: float) -> None:
        await self._store.run(self._store.sync.events.defer, ids, until_s)

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
        return await self._call(hook, change, (change.kind, change.item), change)

    async def _tell_view(self, hook: ReadyHook, lock: asyncio.Lock, view: str, change: Change) -> str:
        async with lock:
            words = (change.kind, view, change.item)
            return await self._call(hook, StaleView(view, change), words, change)

    async def _call(self, hook: ReadyHook, given: object, words: tuple[str, ...], change: Change) -> str:
        """Call a function with ``given``, or a command with ``words`` and the content on standard input."""
        try:
            async with asyncio.timeout(self._timeout_s):
                if isinstance(hook, tuple):
                    await run_command((*hook, *words), change.content, {"AFRESH_SOURCE": change.source})
                else:
                    # One call at a time for each item, or view.
                    tag = (change.source, change.item) if given is change else words[1]
                    await self._calls.call(hook, given, tag)
        except TimeoutError:
            return f"did not end within {self._timeout_s:g} s"
        except (CommandFailedError, RaisedError) as error:
            return str(error)
        return ""

    async def _change(self, event: Event) -> Change:
        copy = await self._store.run(
            copy_of_change, self._store.sync, event.item_id, event.kind, event.version
        )
        content, is_there = (b"", False) if copy is None else (copy.content, True)
        place = (event.key, event.source, event.kind, event.version, event.time_s)
        return Change(*place, content, has_content=is_there)


def _make_ready(hook: HookSetting, setting: str) -> ReadyHook:
    return find_function(hook, setting) if isinstance(hook, str) else tuple(hook)


def source_hooks(settings: Settings) -> dict[str, HookSetting]:
    return {table.settings.name: table.on_change for table in settings.sources if table.on_change}
