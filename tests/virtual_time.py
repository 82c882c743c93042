"""Time that a test moves: a clock and an event loop that jumps to the next timer instead of waiting for it.

Behaviour over minutes runs in milliseconds, in the same order on every machine. Nothing here waits for the
outside world: whoever runs on this loop answers from memory. Work for other threads is done at once, on the
loop's own thread, and takes no time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple, Unpack
from unittest.mock import patch

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_BEGIN_S = 1_704_067_200.0  # 2024-01-01, midnight UTC
_ROUND_S = 2e-4  # what one round of the loop takes: whoever waits awake sees time go on
_GLANCE_S = 1e-6  # what one look at the clock takes: no two looks give the same time


class StuckError(AssertionError):
    """Everybody waits, and nobody for a time that would come."""


class VirtualTime:
    """A clock (see ``values/clock.py``) that goes on when somebody on its loops waits, or when told to."""

    def __init__(self, *, round_s: float = _ROUND_S) -> None:
        """``round_s`` is what one round of a loop takes."""
        self.passed_s, self.round_s = 1000.0, round_s
        self.set_back_s = 0.0  # by which the time of day was set back

    def now_s(self) -> float:
        """The time of day, in Unix seconds."""
        return _BEGIN_S + self.elapsed_s() - self.set_back_s

    def elapsed_s(self) -> float:
        """Seconds that only grow."""
        self.passed_s += _GLANCE_S
        return self.passed_s

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """An event loop that lives in this time."""
        return _VirtualLoop(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on a loop of this time: ``asyncio.run`` without the waiting."""
        with asyncio.Runner(loop_factory=self.new_loop) as runner:
            return runner.run(work)


async def pass_time(seconds: float) -> None:
    """Sleep in virtual time. Tests use it instead of ``asyncio.sleep``, which would wait for real on a real
    loop; here that is an error."""
    assert isinstance(asyncio.get_running_loop(), _VirtualLoop), "this loop waits for real"
    await asyncio.sleep(seconds)


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for events it lets the time pass; none ever comes."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Pass the time."""
        if timeout is None:
            raise StuckError("everybody waits, and nobody for a time: this would wait for ever")
        self._time.passed_s += timeout or self._time.round_s
        return []


class _VirtualLoop(asyncio.SelectorEventLoop):
    """Timers by virtual time; what would go to another thread is done in the next round of the loop."""

    def __init__(self, time: VirtualTime) -> None:
        self._virtual = time
        super().__init__(_JumpingSelector(time))

    def time(self) -> float:
        """The virtual time."""
        return self._virtual.passed_s

    def run_forever(self) -> None:
        """Run; work that is given to the threads of any pool meanwhile is done where it is given."""
        with patch.object(ThreadPoolExecutor, "submit", _done_at_once):
            super().run_forever()

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Do the work on this thread; the loop's own pool is never made."""
        del executor
        return asyncio.wrap_future(_done_at_once(None, func, *args), loop=self)


def _done_at_once(_pool: object, func: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
    """In place of ``ThreadPoolExecutor.submit``: the work is over when this returns."""
    done: Future[T] = Future()
    try:
        done.set_result(func(*args, **named))
    except Exception as error:  # noqa: BLE001  # whoever waits for the result gets it
        done.set_exception(error)
    return done
