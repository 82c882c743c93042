"""Calls the hooks of the user: commands and functions, with one change, with a batch, or with a stale view.

A command is run without a shell, in a process of its own. A function runs in a thread of its own, a coroutine
function on the one event loop of all coroutine hooks. A call that takes longer than ``timeout_s`` has failed:
the command is killed; a function goes on, and until it ends no call with the same tag begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from afresh.engine.feed.change_json import change_line
from afresh.engine.feed.feed_reader import copy_of_change
from afresh.engine.settings.item_views import HookSetting
from afresh.sources.python.user_calls import UserCalls
from afresh.sources.python.user_function import RaisedError, find_function
from afresh.sources.user_command import CommandFailedError, run_command
from afresh.stores.store import Store
from afresh.values.changes import Change
from afresh.values.stored import Event

_MOST_CALLS = 64  # of hook functions, among them those that did not end within their time
ReadyHook: TypeAlias = Callable[[Any], Any] | tuple[str, ...]
"""A hook that can be called: a function, or a command as a tuple of words."""


@dataclass(frozen=True, slots=True)
class StaleView:
    """What the hook of an item view receives: the view became stale by ``change``, which is of its item."""

    view: str
    change: Change


def make_ready(hook: HookSetting, setting: str) -> ReadyHook:
    """Return a hook that can be called; raise ``UsageError`` if its function cannot be found."""
    return find_function(hook, setting) if isinstance(hook, str) else tuple(hook)


class HookCalls:
    """Calls hooks, each for at most ``timeout_s`` seconds. Every call returns why it failed, or an empty
    string. ``tag`` is what only one call at a time may be about."""

    def __init__(self, timeout_s: float) -> None:
        self._calls, self.timeout_s = UserCalls("afresh hooks", _MOST_CALLS), timeout_s

    async def close(self) -> None:
        await self._calls.close()

    async def tell_change(self, hook: ReadyHook, change: Change, tag: Hashable) -> str:
        return await self._call(hook, change, (change.kind, change.item), change, tag)

    async def tell_view(self, hook: ReadyHook, view: str, change: Change) -> str:
        words = (change.kind, view, change.item)
        return await self._call(hook, StaleView(view, change), words, change, view)

    async def tell_batch(self, hook: ReadyHook, changes: Sequence[Change], tag: Hashable) -> str:
        """Call a function with a list of changes; a command gets them as lines of JSON on its standard input,
        and ``batch`` and their number as its last two arguments."""
        words = ("batch", str(len(changes)))
        lines = "".join(f"{change_line(change)}\n" for change in changes)
        given = replace(changes[0], content=lines.encode(errors="surrogatepass"))
        return await self._call(hook, list(changes), words, given, tag)

    async def _call(
        self, hook: ReadyHook, given: object, words: tuple[str, ...], change: Change, tag: Hashable
    ) -> str:
        try:
            async with asyncio.timeout(self.timeout_s):
                if isinstance(hook, tuple):
                    await run_command((*hook, *words), change.content, {"AFRESH_SOURCE": change.source})
                else:
                    await self._calls.call(hook, given, tag)
        except TimeoutError:
            return f"did not end within {self.timeout_s:g} s"
        except (CommandFailedError, RaisedError) as error:
            return str(error)
        return ""


def read_change(store: Store, event: Event, *, previous: bool) -> Change:
    """Return the change of an event with its content and, if ``previous``, with the content before."""
    copy = copy_of_change(store, event.item_id, event.kind, event.version)
    older = store.copies.get(event.item_id, event.version - 1) if previous and event.version > 1 else None
    return Change(
        event.key,
        event.source,
        event.kind,
        event.version,
        event.time_s,
        b"" if copy is None else copy.content,
        size=None if copy is None else len(copy.content),
        previous_size=None if older is None else len(older.content),
        previous=None if older is None else older.content,
        has_content=copy is not None,
        change_size=None if copy is None else copy.version.change_size,
    )
