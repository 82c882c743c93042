"""SIGINT and SIGTERM, from the first statement of the program to its last: one ends it in order, two at once.

The handlers are set once and never replaced. At the first signal

- a command that said how it stops (``stopping_by``: ``run`` drains, ``serve`` closes its connections) is
  asked to, and has its own time limit for that;
- any other command is left by an exception, ``Interrupted``, which ends every ``with`` and ``finally`` on its
  way;
- a section that must not be cut in two (``held_back``) ends first.

An exception can be lost: Python drops one that is raised in ``__del__`` or in a callback from C, some
libraries turn every exception into one of their own, and nothing is raised while the main thread is inside a
long call of a C library. So a second thread, the guard, is told of each signal too. It raises again what
Python dropped, and ends the process itself when the limit has passed or a second signal came, after it has
removed what ``LEFTOVERS`` lists.

SIGINT ends the program also where its parent ignored it, as shells do for jobs in the background of a script:
whoever sends it to this process means it.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from afresh.values.clock import SystemClock
from afresh.values.leftovers import LEFTOVERS

if TYPE_CHECKING:
    from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
IN_ORDER_S = 1.5
"""How long a command may take to end in order where nothing is drained."""
_AT_ONCE_S = 1.0  # for a command that a second signal asks to stop at once
_GIVING_UP_S = 0.4  # for the same, when its time limit has passed
_PAUSE_S = 0.01  # between an exception that was lost and the next one
# What the guard is told: the number of a signal by Python itself, also while no Python code can run; the same
# number and this bit by our handler, also while an event loop has Python tell it instead of the guard.
_HANDLED, _AGAIN = 0x80, 0x7F
_RAISE_AGAIN = signal.SIGURG  # nothing else uses it, and by default it does nothing


class Interrupted(KeyboardInterrupt):  # it is no error, and asyncio lets only this kind through
    """A signal asks the program to end."""


class _Stop:
    """How the command in progress is asked to stop, and how long that may take."""

    def __init__(self, ask: Callable[[], None], limit_s: float) -> None:
        self._ask, self.limit_s, self.asked = ask, limit_s, False

    def ask(self) -> None:
        self.asked = True
        with suppress(RuntimeError):  # its event loop has just been closed: it has ended
            self._ask()


class Interruption:
    """The signals of one process."""

    def __init__(self) -> None:
        self.number = 0  # of the first signal
        self.was_raised = False
        self._signals = 0
        self._is_urgent = self._owed = self._was_asked = False
        self._held = 0
        self._stops: list[_Stop] = []
        self._saying = threading.Lock()
        self._told, self._tell = -1, -1

    def install(self) -> None:
        """Take both signals. Only the main thread can; called in another one, nothing changes."""
        if self._tell >= 0 or threading.current_thread() is not threading.main_thread():
            return
        self._told, self._tell = os.pipe()
        os.set_blocking(self._tell, False)
        for number in SIGNALS:
            signal.signal(number, self._receive)
        signal.signal(_RAISE_AGAIN, self._receive_again)
        signal.set_wakeup_fd(self._tell, warn_on_full_buffer=False)
        sys.unraisablehook = self._dropped
        threading.Thread(target=self._guard, daemon=True, name="afresh-signals").start()

    # What commands use.

    @contextmanager
    def stopping_by(self, ask: Callable[[], None], limit_s: float = IN_ORDER_S) -> Iterator[None]:
        """While the context lasts a signal calls ``ask``, and a second one calls it again.

        ``ask`` is called in the middle of anything, so it only passes the wish on, as an event loop's
        ``call_soon_threadsafe`` does. A signal that came before the context is passed on at once.
        """
        stop = _Stop(ask, limit_s)
        self._stops.append(stop)
        try:
            if self.number and not stop.asked:
                stop.ask()
            yield
        finally:
            self._stops.remove(stop)
            self._was_asked |= stop.asked

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """No exception is raised within; one that is due comes right after. For a few milliseconds only."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        if self._owed and not self._held:
            self._owed = False
            self._raise()

    def check(self) -> None:
        """Raise if a signal came: for a command that has stopped and has nothing more to do."""
        if self.number:
            self._raise()

    def program(self, work: Callable[[], None]) -> None:
        """Take the signals and do ``work``, the whole command.

        If a signal ended it, one line says so and the process exits with 128 + the signal's number. Whatever
        error ``work`` ends with after it was interrupted is taken for a consequence of that.
        """
        error: BaseException | None = None
        try:
            self.install()
            _perform(self.check, work)
        except BaseException as raised:  # noqa: BLE001  # it is raised again below
            error = raised
        if self._is_ended_by_signal(error):
            self._end()
        self._finish()
        if error is not None:
            raise error

    def _is_ended_by_signal(self, error: BaseException | None) -> bool:
        """Whether a signal is the reason why the command ended, with ``error`` if it is not None."""
        if isinstance(error, KeyboardInterrupt) and not self.number:  # it came before the handlers were set
            self.number = signal.SIGINT
        if error is None or (isinstance(error, SystemExit) and not error.code):
            # It ended by itself, perhaps because it was asked to. If not, a library has swallowed the
            # exception, and nobody knows what was left undone.
            return (self.was_raised and not self._was_asked) or self._is_urgent
        if isinstance(error, SystemExit):
            # After an interruption: how a library has converted the exception.
            return self.was_raised or self._is_urgent
        return bool(self.number)

    # What happens at a signal, in the main thread.

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.number = self.number or number
        self._signals += 1
        self._notify(number | _HANDLED)
        if self._signals > 2 or (self._signals == 2 and not self._stops):
            self._end_at_once()
        if self._signals == 2:
            self._is_urgent = True
        if self._stops:
            self._stops[-1].ask()
        else:
            self._raise_or_owe(frame)

    def _receive_again(self, _number: int, frame: FrameType | None) -> None:
        if self.number and not self._stops:
            self._raise_or_owe(frame)

    def _raise_or_owe(self, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code is not _perform.__code__:
            frame = frame.f_back
        if frame is None:  # the work has not begun, and will look first; or it has ended
            return
        self.was_raised = True
        if self._held:
            self._owed = True
        else:
            self._raise()

    def _raise(self) -> NoReturn:
        self.was_raised = True
        raise Interrupted(signal.Signals(self.number).name)

    def _dropped(self, dropped: sys.UnraisableHookArgs) -> None:
        """Python could not raise an exception where it arose; ours is asked for again."""
        if isinstance(dropped.exc_value, Interrupted):
            self._notify(_AGAIN)
        else:
            sys.__unraisablehook__(dropped)

    def _notify(self, word: int) -> None:
        with suppress(BlockingIOError):  # the guard has enough to read
            os.write(self._tell, bytes([word]))

    # The ends.

    def _finish(self) -> None:
        """The command has ended by itself: what Python still does takes a moment, which nothing may spoil."""
        if self._tell >= 0:
            for number in SIGNALS:  # Python itself would put back the default, which kills
                signal.signal(number, signal.SIG_IGN)

    def _end(self) -> NoReturn:
        """The command has been left in order."""
        clear()
        self._say("at once " if self._is_urgent else "")
        _flush()
        atexit._run_exitfuncs()  # noqa: SLF001  # of libraries, which remove what they made
        # Not SystemExit: that would wait for threads whose work nobody wants any more.
        os._exit(128 + self.number)

    def _end_at_once(self) -> NoReturn:
        clear()
        self._say("at once " if self._signals > 1 or self._is_urgent else "")
        os._exit(128 + self.number)

    def _say(self, how: str) -> None:
        if not self._saying.acquire(blocking=False):
            return  # the other thread is saying it
        words = f"afresh: stopped {how}by {signal.Signals(self.number).name}\n"
        with suppress(OSError):
            # A progress bar that could not be taken away has hidden the cursor, and left it in its line.
            os.write(2, (f"\r\x1b[K\x1b[?25h{words}" if os.isatty(2) else words).encode())

    # The guard, in a thread of its own.

    def _guard(self) -> None:
        clock = SystemClock()
        until_s: float | None = None
        of_python, of_handler, is_urgent = 0, 0, False
        while True:
            left_s = None if until_s is None else max(until_s - clock.elapsed_s(), 0.0)
            ready = select.select([self._told], [], [], left_s)[0]
            if not ready:
                until_s, is_urgent = self._run_out(clock, is_urgent=is_urgent), True
                continue
            for word in os.read(self._told, 64):
                of_python += word in SIGNALS
                of_handler += word & ~_HANDLED in SIGNALS and word > _HANDLED
                if word == _AGAIN:
                    select.select([], [], [], _PAUSE_S)
                    signal.pthread_kill(threading.main_thread().ident or 0, _RAISE_AGAIN)
                elif word in SIGNALS:
                    self.number = self.number or word
            signals = max(of_python, of_handler)
            if signals and until_s is None:
                until_s = clock.elapsed_s() + self._limit_s()
            if signals > 1 and not is_urgent:
                until_s, is_urgent = clock.elapsed_s() + (_AT_ONCE_S if self._stops else 0.1), True

    def _limit_s(self) -> float:
        stops = self._stops[-1:]
        return stops[0].limit_s if stops else IN_ORDER_S

    def _run_out(self, clock: SystemClock, *, is_urgent: bool) -> float:
        """The limit has passed: ask once more where the command can be asked, and then end. Until when."""
        stops = self._stops[-1:]
        if is_urgent or not stops:
            self._end_at_once()
        self._is_urgent = True
        stops[0].ask()
        return clock.elapsed_s() + _GIVING_UP_S


def _perform(check: Callable[[], None], work: Callable[[], None]) -> None:
    """Do ``work``. Signals raise exceptions in this call alone: elsewhere nothing would catch them."""
    check()  # of signals that came before
    try:
        work()
    finally:
        _flush()  # here, where a reader that does not read can still be left by a signal


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or nobody reads it any more
            stream.flush()


def clear() -> None:
    """End the child processes that are left and remove the temporary files."""
    for group in list(LEFTOVERS.process_groups):
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    for process in list(LEFTOVERS.processes):
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
    for process in [*LEFTOVERS.process_groups, *LEFTOVERS.processes]:
        with suppress(OSError):  # it has been waited for already
            os.waitpid(process, 0)
    for name in list(LEFTOVERS.paths):
        _remove(name)


def _remove(name: str) -> None:
    with suppress(OSError):
        if os.path.isdir(name):  # noqa: PTH112  # pathlib is slow to import, and this is the program's first import
            import shutil

            shutil.rmtree(name, ignore_errors=True)
        else:
            os.unlink(name)  # noqa: PTH108


INTERRUPTION = Interruption()
"""That of this process."""
