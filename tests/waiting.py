"""Waiting for a condition of the real machine: as long as it takes, within a limit that no machine needs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

LIMIT_S = 120.0
_LOOK_S = 0.02


def until(condition: Callable[[], object], what: str = "", limit_s: float = LIMIT_S) -> None:
    """Return as soon as ``condition()`` is true; ``what`` is said if it never is."""
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s, f"waited {limit_s:g} s in vain: {what or condition}"
        threading.Event().wait(_LOOK_S)


async def until_async(condition: Callable[[], object], what: str = "", limit_s: float = LIMIT_S) -> None:
    """The same for coroutines: the others go on meanwhile."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + limit_s
    while not condition():
        assert loop.time() < end_s, f"waited {limit_s:g} s in vain: {what or condition}"
        await asyncio.sleep(_LOOK_S)
