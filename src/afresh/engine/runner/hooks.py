"""Hooks: every change is delivered to a command or a function, at least once and in order for each item.

Events are queued in the transaction that keeps the copy, so none is lost. A command gets the kind of event
and the item's key as its last two arguments and the content on standard input; a function gets a ``Change``.
What fails is tried again later and later, and the item's later events wait behind it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from afresh.engine.logs import log_event
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import HOOKS
from afresh.sources.python.user_function import RaisedError, await_function, call_function, find_function
from afresh.stores.async_store import AsyncStore
from afresh.values.backoff import Backoff
from afresh.values.clock import Clock
from afresh.values.leftovers import LEFTOVERS
from afresh.values.stored import Event

_AT_ONCE = 16
RETRIES = Backoff(first_s=2.0, longest_s=3600.0)
_LONGEST_WORDS = 200

Hook: TypeAlias = tuple[str, ...] | str
Call: TypeAlias = Callable[["Change"], Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What a hook gets: ``kind`` is new, changed, gone or removed; ``content`` is empty for the last two."""

    item: str
    source: str
    kind: str
    version: int
    time_s: float
    content: bytes


class HookFailedError(Exception):
    """A hook did not do its work; the text says how."""


class Hooks:
    """Delivers the events of a store to the hooks of their sources."""

    def __init__(
        self, store: AsyncStore, clock: Clock, hooks: Mapping[str, Hook], *, timeout_s: float
    ) -> None:
        self._store, self._clock = store, clock
        self.replace_hooks(hooks, timeout_s=timeout_s)
        self._behind: dict[int, tuple[int, float]] | None = None  # by item: the event that failed, until when

    def replace_hooks(self, hooks: Mapping[str, Hook], *, timeout_s: float) -> None:
        """Deliver to other hooks from now on, also the events that wait."""
        self._timeout_s = timeout_s
        self._hooks: dict[str, Call | tuple[str, ...]] = {
            name: find_function(hook, "on_change") if isinstance(hook, str) else tuple(hook)
            for name, hook in hooks.items()
        }

    def forget_order(self) -> int:
        """Leave the delivery to another worker: before the next one here, what is held up is read again."""
        self._behind = None
        return 0

    async def deliver(self) -> int:
        """Deliver the events that are due; return how many were delivered."""
        if not self._hooks or not await self._store.events.waiting():
            return 0
        if self._behind is None:
            packed = await self._store.state.get(HOOKS)
            kept = json.loads(packed) if packed else {}
            self._behind = {int(item): (event, until_s) for item, (event, until_s) in kept.items()}
        events = await self._store.events.take(self._clock.now_s(), _AT_ONCE, 2 * self._timeout_s)
        lines: dict[int, list[Event]] = {}
        for event in events:
            lines.setdefault(event.item_id, []).append(event)
        return sum(await asyncio.gather(*(self._in_order(line) for line in lines.values())))

    async def _hold(self, item_id: int, place: tuple[int, float] | None) -> None:
        behind = self._behind = dict(self._behind or {})
        if place is not None:
            behind[item_id] = place
        elif behind.pop(item_id, None) is None:
            return
        await self._store.state.set({HOOKS: json.dumps(behind).encode()})

    async def _in_order(self, line: Sequence[Event]) -> int:
        """Deliver the events of one item in order, until one fails; return how many were delivered."""
        held, until_s = (self._behind or {}).get(line[0].item_id, (0, 0.0))
        if held and line[0].id > held:
            await self._store.events.defer([event.id for event in line], until_s)
            return 0
        for done, event in enumerate(line):
            problem = await self._deliver_event(event)
            if problem:
                until_s = self._clock.now_s() + RETRIES.wait_s(event.attempts)
                await self._hold(event.item_id, (event.id, until_s))
                log_event(
                    logging.WARNING, "hook failed", item=event.key, attempt=event.attempts, problem=problem
                )
                await self._store.events.defer([event.id for event in line[done:]], until_s)
                return done
            await self._hold(event.item_id, None)
            await self._store.events.done([event.id])
        return len(line)

    async def _deliver_event(self, event: Event) -> str:
        """Deliver one event; return why it failed, or an empty text."""
        hook = self._hooks.get(event.source)
        if hook is None:
            return ""  # the source no longer has a hook
        change = await self._change(event)
        try:
            async with asyncio.timeout(self._timeout_s):
                await (run_command(hook, change) if isinstance(hook, tuple) else call(hook, change))
        except TimeoutError:
            return f"no end within {self._timeout_s:g} s"
        except HookFailedError as error:
            return str(error)
        return ""

    async def _change(self, event: Event) -> Change:
        copy = await self._store.copies.get(event.item_id, event.version)
        if copy is None and event.kind in ("new", "changed"):
            # That version is no longer kept; a newer one says more.
            copy = await self._store.copies.get(event.item_id)
        content = copy.content if copy is not None and event.kind in ("new", "changed") else b""
        return Change(event.key, event.source, event.kind, event.version, event.time_s, content)


async def run_command(command: tuple[str, ...], change: Change) -> None:
    """Run a command with the event; raises ``HookFailedError`` unless it ends with 0."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            change.kind,
            change.item,
            stdin=pipe,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=pipe,
            start_new_session=True,  # what it starts itself can then be ended with it
        )
    except OSError as error:
        raise HookFailedError(f"{command[0]}: {error.strerror}") from None
    with LEFTOVERS.process(process.pid, leads_group=True):
        try:
            _, words = await process.communicate(change.content)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):  # it has just ended
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    if process.returncode != 0:
        said = words.decode(errors="replace").strip().splitlines()[-1:] or ["without a word"]
        raise HookFailedError(f"{command[0]} ended with {process.returncode}: {said[0][:_LONGEST_WORDS]}")


async def call(function: Call, change: Change) -> None:
    """Call a function or coroutine function with the event; whatever it raises is a failure."""
    try:
        if inspect.iscoroutinefunction(function):
            await await_function(function, change)
        else:
            await asyncio.to_thread(call_function, function, change)
    except RaisedError as error:
        raise HookFailedError(str(error)) from None


def source_hooks(settings: Settings) -> dict[str, Hook]:
    return {table.settings.name: table.on_change for table in settings.sources if table.on_change}
