"""Hooks: every change is delivered to a command or a function, at least once and in order for each item.

Events are queued in the transaction that commits the copy, so that none is lost. A command receives the kind
of event and the key of the item as its last two arguments and the content on standard input; a function
receives a ``Change``. A failed delivery is repeated after longer and longer waits, and later events of the
same item wait until it succeeds.
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
from afresh.engine.threaded_store import ThreadedStore
from afresh.sources.python.user_function import RaisedError, await_function, call_function, find_function
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
    """What a hook receives. ``kind`` is new, changed, gone or removed; the last two have no content."""

    item: str
    source: str
    kind: str
    version: int
    time_s: float
    content: bytes


class HookFailedError(Exception):
    """A hook failed; the message says why."""


class Hooks:
    """Delivers the events of a store to the hooks of their sources."""

    def __init__(
        self, store: ThreadedStore, clock: Clock, hooks: Mapping[str, Hook], *, timeout_s: float
    ) -> None:
        self._store, self._clock = store, clock
        self.replace_hooks(hooks, timeout_s=timeout_s)
        # By item id: the event that failed, and when it is tried again. None until read from the store.
        self._held_up: dict[int, tuple[int, float]] | None = None

    def replace_hooks(self, hooks: Mapping[str, Hook], *, timeout_s: float) -> None:
        """Deliver all events to ``hooks`` (by source) from now on, also events that are waiting already."""
        self._timeout_s = timeout_s
        self._hooks: dict[str, Call | tuple[str, ...]] = {
            name: find_function(hook, "on_change") if isinstance(hook, str) else tuple(hook)
            for name, hook in hooks.items()
        }

    def forget_order(self) -> int:
        """Forget which events failed, because another worker delivers now. Return 0, the number delivered."""
        self._held_up = None
        return 0

    async def deliver(self) -> int:
        """Deliver the next events that are due; return how many were delivered."""
        if not self._hooks or not await self._store.run(self._store.sync.events.waiting):
            return 0
        if self._held_up is None:
            packed = await self._store.run(self._store.sync.state.get, HOOKS)
            kept = json.loads(packed) if packed else {}
            self._held_up = {int(item): (event, until_s) for item, (event, until_s) in kept.items()}
        events = await self._store.run(
            self._store.sync.events.take, self._clock.now_s(), _AT_ONCE, 2 * self._timeout_s
        )
        lines: dict[int, list[Event]] = {}
        for event in events:
            lines.setdefault(event.item_id, []).append(event)
        return sum(await asyncio.gather(*(self._deliver_in_order(line) for line in lines.values())))

    async def _save_held_up(self, item_id: int, failed: tuple[int, float] | None) -> None:
        held_up = self._held_up = dict(self._held_up or {})
        if failed is not None:
            held_up[item_id] = failed
        elif held_up.pop(item_id, None) is None:
            return
        await self._store.run(self._store.sync.state.set, {HOOKS: json.dumps(held_up).encode()})

    async def _deliver_in_order(self, line: Sequence[Event]) -> int:
        """Deliver the events of one item in order, until one fails; return how many were delivered."""
        held, until_s = (self._held_up or {}).get(line[0].item_id, (0, 0.0))
        if held and line[0].id > held:  # an earlier event of the item failed, and must be delivered first
            await self._store.run(self._store.sync.events.defer, [event.id for event in line], until_s)
            return 0
        for done, event in enumerate(line):
            problem = await self._deliver_event(event)
            if problem:
                until_s = self._clock.now_s() + RETRIES.wait_s(event.attempts)
                await self._save_held_up(event.item_id, (event.id, until_s))
                log_event(
                    logging.WARNING, "hook failed", item=event.key, attempt=event.attempts, problem=problem
                )
                await self._store.run(
                    self._store.sync.events.defer, [event.id for event in line[done:]], until_s
                )
                return done
            await self._save_held_up(event.item_id, None)
            await self._store.run(self._store.sync.events.done, [event.id])
        return len(line)

    async def _deliver_event(self, event: Event) -> str:
        """Deliver one event; return why it failed, or an empty string if it was delivered."""
        hook = self._hooks.get(event.source)
        if hook is None:
            return ""  # the source no longer has a hook
        change = await self._change(event)
        try:
            async with asyncio.timeout(self._timeout_s):
                await (run_command(hook, change) if isinstance(hook, tuple) else call(hook, change))
        except TimeoutError:
            return f"did not end within {self._timeout_s:g} s"
        except HookFailedError as error:
            return str(error)
        return ""

    async def _change(self, event: Event) -> Change:
        copy = await self._store.run(self._store.sync.copies.get, event.item_id, event.version)
        if copy is None and event.kind in ("new", "changed"):
            # The store no longer has this version, so that the newest one is delivered.
            copy = await self._store.run(self._store.sync.copies.get, event.item_id)
        content = copy.content if copy is not None and event.kind in ("new", "changed") else b""
        return Change(event.key, event.source, event.kind, event.version, event.time_s, content)


async def run_command(command: tuple[str, ...], change: Change) -> None:
    """Run a hook command with the event; raise ``HookFailedError`` unless its exit code is 0."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            change.kind,
            change.item,
            stdin=pipe,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=pipe,
            start_new_session=True,  # so that the processes it starts can be ended with it
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
        last = words.decode(errors="replace").strip().splitlines()[-1:] or ["no error message"]
        raise HookFailedError(f"{command[0]} ended with {process.returncode}: {last[0][:_LONGEST_WORDS]}")


async def call(function: Call, change: Change) -> None:
    """Call a hook function or coroutine function; raise ``HookFailedError`` if it raises."""
    try:
        if inspect.iscoroutinefunction(function):
            await await_function(function, change)
        else:
            await asyncio.to_thread(call_function, function, change)
    except RaisedError as error:
        raise HookFailedError(str(error)) from None


def source_hooks(settings: Settings) -> dict[str, Hook]:
    return {table.settings.name: table.on_change for table in settings.sources if table.on_change}
