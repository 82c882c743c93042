"""Hooks: every change is delivered to a command or a function, at least once and in order for each item.

Events are queued in the transaction that commits the copy, so that none is lost. A command receives the kind
of event and the key of the item as its last two arguments and the content on standard input; a function
receives a ``Change``. A failed delivery is repeated after longer and longer waits. Later events of the same
item wait until it succeeds: the store offers an event only when no earlier event of its item is taken or
deferred, so that the order is kept even if the process is killed in the middle of a delivery.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from afresh.engine.logs import log_event
from afresh.engine.runner.hook_command import CommandFailedError, run_command
from afresh.engine.settings.tables import Settings
from afresh.engine.threaded_store import ThreadedStore
from afresh.sources.python.user_calls import UserCalls
from afresh.sources.python.user_function import RaisedError, find_function
from afresh.values.backoff import Backoff
from afresh.values.clock import Clock
from afresh.values.stored import Event

_AT_ONCE = 16
RETRIES = Backoff(first_s=2.0, longest_s=3600.0)
_MOST_CALLS = 64  # of hook functions, among them those that did not end within their time

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


class Hooks:
    """Delivers the events of a store to the hooks of their sources."""

    def __init__(
        self, store: ThreadedStore, clock: Clock, hooks: Mapping[str, Hook], *, timeout_s: float
    ) -> None:
        self._store, self._clock = store, clock
        self._calls = UserCalls("afresh hooks", _MOST_CALLS)
        self.replace_hooks(hooks, timeout_s=timeout_s)

    def replace_hooks(self, hooks: Mapping[str, Hook], *, timeout_s: float) -> None:
        """Deliver all events to ``hooks`` (by source) from now on, also events that are waiting already."""
        self._timeout_s = timeout_s
        self._hooks: dict[str, Call | tuple[str, ...]] = {
            name: find_function(hook, "on_change") if isinstance(hook, str) else tuple(hook)
            for name, hook in hooks.items()
        }

    async def close(self) -> None:
        await self._calls.close()

    async def deliver(self) -> int:
        """Deliver the next events that are due; return how many were delivered."""
        if not self._hooks or not await self._store.run(self._store.sync.events.waiting):
            return 0
        events = await self._store.run(
            self._store.sync.events.take, self._clock.now_s(), _AT_ONCE, self._reserved_s
        )
        lines: dict[int, list[Event]] = {}
        for event in events:
            lines.setdefault(event.item_id, []).append(event)
        return sum(await asyncio.gather(*(self._deliver_in_order(line) for line in lines.values())))

    @property
    def _reserved_s(self) -> float:
        """The seconds after which an event that was taken is offered again, if its delivery was cut short."""
        return 2 * self._timeout_s

    async def _deliver_in_order(self, line: Sequence[Event]) -> int:
        """Deliver the events of one item in order, until one fails; return how many were delivered."""
        taken_s = self._clock.elapsed_s()
        for done, event in enumerate(line):
            rest = [waiting.id for waiting in line[done:]]
            if self._clock.elapsed_s() - taken_s > self._timeout_s / 2:
                # The earlier deliveries took long: the rest must not be offered to another worker meanwhile.
                await self._defer(rest, self._clock.now_s() + self._reserved_s)
                taken_s = self._clock.elapsed_s()
            problem = await self._deliver_event(event)
            if problem:
                await self._defer(rest, self._clock.now_s() + RETRIES.wait_s(event.attempts))
                log_event(
                    logging.WARNING, "hook failed", item=event.key, attempt=event.attempts, problem=problem
                )
                return done
            await self._store.run(self._store.sync.events.done, [event.id])
        return len(line)

    async def _defer(self, ids: Sequence[int], until_s: float) -> None:
        await self._store.run(self._store.sync.events.defer, ids, until_s)

    async def _deliver_event(self, event: Event) -> str:
        """Deliver one event; return why it failed, or an empty string if it was delivered."""
        hook = self._hooks.get(event.source)
        if hook is None:
            return ""  # the source no longer has a hook
        change = await self._change(event)
        try:
            async with asyncio.timeout(self._timeout_s):
                if isinstance(hook, tuple):
                    await run_command((*hook, change.kind, change.item), change.content)
                else:
                    await self._calls.call(hook, change, event.item_id)
        except TimeoutError:
            return f"did not end within {self._timeout_s:g} s"
        except (CommandFailedError, RaisedError) as error:
            return str(error)
        return ""

    async def _change(self, event: Event) -> Change:
        copy = await self._store.run(self._store.sync.copies.get, event.item_id, event.version)
        if copy is None and event.kind in ("new", "changed"):
            # The store no longer has this version, so that the newest one is delivered.
            copy = await self._store.run(self._store.sync.copies.get, event.item_id)
        content = copy.content if copy is not None and event.kind in ("new", "changed") else b""
        return Change(event.key, event.source, event.kind, event.version, event.time_s, content)


def source_hooks(settings: Settings) -> dict[str, Hook]:
    return {table.settings.name: table.on_change for table in settings.sources if table.on_change}
