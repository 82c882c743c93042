"""The python source: a function of the user receives the key of an item and returns its content.

The setting ``call`` is ``module:function``. The function returns bytes, text, or None if there is no such
item. ``bulk_call`` names a function that receives several keys and returns a mapping from keys to such
results; a key that it lacks has no item. Every function runs in a thread that is not the engine's own (see
``user_calls.py``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from afresh.sources.capabilities import Capabilities, share_cost
from afresh.sources.change_detection import compare_content, most_bytes_here
from afresh.sources.context import SourceContext
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.python.settings import PythonSettings
from afresh.sources.python.user_calls import UserCalls
from afresh.sources.python.user_function import RaisedError, describe_error, find_function
from afresh.sources.source import SingleGroupSource
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing


class PythonSource(SingleGroupSource):
    """A ``Source`` whose items are the results of a function. One call counts as one request. All items form
    one group. If a call times out, its poll fails, but its thread stays in use until the function returns.
    While no thread is free, polls fail without a call."""

    def __init__(self, settings: PythonSettings, context: SourceContext) -> None:
        super().__init__(settings)
        self._settings, self._context = settings, context
        self._function = find_function(settings.call)
        self._recipe = settings.recipe
        self._calls = UserCalls(f"afresh {settings.name}", settings.concurrency)
        self._bulk_function = find_function(settings.bulk_call, "bulk_call") if settings.bulk_call else None
        self.capabilities = Capabilities(bulk=self if self._bulk_function is not None else None)
        context.parsers.join()

    def group(self, key: str) -> str:
        del key
        return self._settings.call

    def ready_s(self, group: str, now_s: float) -> float:
        """Return when the next window opens (Unix seconds); infinite while ``concurrency`` calls run."""
        del group
        return float("inf") if self._calls.is_full else self._windows.next_opening_s(now_s)

    def bulk_limit(self, group: str) -> int:
        del group
        return self._settings.bulk

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        del conditional
        return (await self._poll(self._function, [lease]))[0]

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        """Implement ``BulkSource.poll_many`` with one call of the function ``bulk_call``."""
        del conditional
        assert self._bulk_function is not None
        return await self._poll(self._bulk_function, leases, bulk=True) if leases else []

    async def _poll(
        self, function: Callable[..., Any], leases: Sequence[Lease], *, bulk: bool = False
    ) -> list[Fetched]:
        if self._calls.is_full:
            words = f"{self._settings.call}: all {self._settings.concurrency} calls still run"
            return [Fetched("failed", problem=words)] * len(leases)
        await self._context.admit(leases[0].group)
        start_s = self._context.clock.elapsed_s()
        keys = [lease.key for lease in leases]
        given, tag = (keys, tuple(keys)) if bulk else (keys[0], keys[0])
        try:
            async with asyncio.timeout(self._settings.timeout):
                answer = await self._calls.call(function, given, tag)
                answers = _by_key(answer) if bulk else {keys[0]: answer}
                found = [await self._compare(lease, answers.get(lease.key)) for lease in leases]
        except TimeoutError:
            words = f"no answer within {self._settings.timeout:g} s"
            found = [Fetched("failed", problem=words)] * len(leases)
        except Exception as error:  # noqa: BLE001  # any error of the user's code is the result of the poll
            words = str(error) if isinstance(error, RaisedError) else describe_error(error)
            found = [Fetched("failed", problem=words)] * len(leases)
        return share_cost(found, requests=1, seconds=self._context.clock.elapsed_s() - start_s)

    async def listings(self) -> AsyncIterator[Listing]:
        """Yield nothing, because a function lists no items."""
        return
        yield

    async def close(self) -> None:
        """Accept no more calls. Running calls are not waited for, because a thread cannot be stopped."""
        self._context.parsers.leave()
        await self._calls.close()

    async def _compare(self, lease: Lease, answer: object) -> Fetched:
        if answer is None:
            return Fetched("gone", problem="the function knows no such item")
        if not isinstance(answer, bytes | bytearray | memoryview | str):
            return Fetched("failed", problem=f"gave {type(answer).__name__}, not bytes or text")
        media_type = "text/plain; charset=utf-8" if isinstance(answer, str) else "application/octet-stream"
        content = answer.encode("utf-8", "replace") if isinstance(answer, str) else bytes(answer)
        if len(content) > self._settings.max_size:
            return Fetched(
                "failed", problem=f"gave {len(content)} bytes, more than {self._settings.max_size}"
            )
        recipe, copy = self._recipe.for_item(lease.selector), (lease.content_hash, lease.validators)
        near_duplicate = self._settings.least_similarity
        arguments = content, media_type, recipe, *copy, near_duplicate
        small = most_bytes_here(recipe, near_duplicate)
        try:
            found = await self._context.parsers.parse(
                compare_content, *arguments, small=small, party=lease.group
            )
        except ParseBudgetError as error:
            return Fetched("failed", problem=str(error))
        return found.to_fetched(content, media_type)


def _by_key(answer: object) -> Mapping[str, object]:
    if not isinstance(answer, Mapping):
        raise RaisedError(f"bulk_call gave {type(answer).__name__}, not a mapping from keys to contents")
    return answer
