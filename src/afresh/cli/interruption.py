"""Handles SIGINT and SIGTERM: the first signal ends the program in order, a second signal ends it at once.

The handlers are set once and never replaced. What the first signal does depends on the command:

- A command can register a function that stops it (``stopping_by``). This function is called, and the command
  has a time limit to end: ``run`` finishes the polls in flight, ``serve`` closes its connections.
- Any other command is ended by the exception ``Interrupted``, which runs every ``finally`` and ends every
  ``with`` block that it passes.
- Inside a section that must not be interrupted (``held_back``), the exception is raised at the section's end.

An exception can be lost: Python drops it if it is raised in ``__del__`` or in a callback from C, some
libraries written in C print it and go on, others convert every exception to one of their own, and nothing is
raised while the main thread is inside a long call of a C library. So a second thread, the guard, is notified
of each signal too. It makes the main thread raise a lost exception again. When the time limit has passed or a
second signal has arrived, the guard removes the files and child processes that ``LEFTOVERS`` lists and ends
the process.

SIGINT ends the program even if its parent process ignored SIGINT, as a shell does for the background jobs of
a script. Such a signal was sent to this process on purpose.
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
    from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
IN_ORDER_S = 1.5
"""How long a command may take to end in order, in seconds, unless it sets its own limit."""
_AT_ONCE_S = 1.0  # how long a command with ``stopping_by`` may take after a second signal
_GIVING_UP_S = 0.4  # how long such a command may take after it was asked once more at its time limit
_PAUSE_S = 0.01  # between a dropped exception and the next attempt to raise it
# The guard reads bytes from a pipe. Python itself writes a signal's number (``set_wakeup_fd``), even while no
# Python code can run. Our handler writes the number with the bit _HANDLED too, because a running event loop
# redirects what Python writes. _AGAIN asks the guard to have a dropped exception raised again.
_HANDLED, _AGAIN = 0x80, 0x7F
_RAISE_AGAIN = signal.SIGURG  # nothing else uses it, and by default it does nothing


class Interrupted(KeyboardInterrupt):  # because asyncio propagates KeyboardInterrupt out of callbacks
    """Raised when a signal asks the program to end."""


class _Stop:
    """A function that asks the running command to stop, and how many seconds the command may then take."""

    def __init__(self, ask: Callable[[], None], limit_s: float) -> None:
        self._ask, self.limit_s, self.asked = ask, limit_s, False

    def ask(self) -> None:
        self.asked = True
        with suppress(RuntimeError):  # the event loop is closed already, because the command has ended
            self._ask()


class Interruption:
    """Receives the signals of the process and ends the command; ``INTERRUPTION`` is the only instance."""

    def __init__(self) -> None:
        self.number = 0  # of the first signal
        self.was_raised = False
        self._signals = 0
        self._is_urgent = self._is_pending = self._was_asked = False
        self._held = 0
        self._stops: list[_Stop] = []
        self._print_lock = threading.Lock()
        self._print_exception = sys.excepthook
        self._pipe_read, self._pipe_write = -1, -1

    def install(self) -> None:
        """Set the handlers of both signals. Only the main thread can do this; other threads do nothing."""
        if self._pipe_write >= 0 or threading.current_thread() is not threading.main_thread():
            return
        self._pipe_read, self._pipe_write = os.pipe()
        os.set_blocking(self._pipe_write, False)
        for number in SIGNALS:
            signal.signal(number, self._receive)
        signal.signal(_RAISE_AGAIN, self._receive_again)
        signal.set_wakeup_fd(self._pipe_write, warn_on_full_buffer=False)
        sys.unraisablehook = self._on_dropped_exception
        self._print_exception, sys.excepthook = sys.excepthook, self._on_printed_exception
        threading.Thread(target=self._guard, daemon=True, name="afresh-signals").start()

    # What commands use.

    @contextmanager
    def stopping_by(self, ask: Callable[[], None], limit_s: float = IN_ORDER_S) -> Iterator[None]:
        """Return a context in which the first signal calls ``ask``, and a second signal calls it again.

        The command has ``limit_s`` seconds to end. The signal handler may call ``ask`` between any two
        instructions, so ``ask`` must only forward the request, as an event loop's ``call_soon_threadsafe``
        does. If a signal arrived before the context began, ``ask`` is called at once."""
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
        """Return a context in which a signal raises no exception. The exception is raised when the context
        ends, so the context should take a few milliseconds only."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        if self._is_pending and not self._held:
            self._is_pending = False
            self._raise()

    def check(self) -> None:
        """Raise ``Interrupted`` if a signal has arrived. A command calls this after it was asked to stop."""
        if self.number:
            self._raise()

    def program(self, work: Callable[[], None]) -> None:
        """Set the signal handlers and run ``work``, which performs the whole command.

        If a signal ended the command, print one line and exit with 128 + the signal's number. Any error that
        ``work`` raises after a signal is treated as a consequence of the signal."""
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
        """Return whether a signal is the reason why the command ended with ``error`` (None: no error)."""
        if isinstance(error, KeyboardInterrupt) and not self.number:  # it came before the handlers were set
            self.number = signal.SIGINT
        if error is None or (isinstance(error, SystemExit) and not error.code):
            # The command returned normally, perhaps because it was asked to stop. If it was not asked, but
            # ``Interrupted`` was raised, a library swallowed the exception, and work may be missing.
            return (self.was_raised and not self._was_asked) or self._is_urgent
        if isinstance(error, SystemExit):
            # If ``Interrupted`` was raised, a library has converted it to SystemExit.
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
            self._raise_or_postpone(frame)

    def _receive_again(self, _number: int, frame: FrameType | None) -> None:
        if self.number and not self._stops:
            self._raise_or_postpone(frame)

    def _raise_or_postpone(self, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code is not _perform.__code__:
            frame = frame.f_back
        if frame is None:  # the work has ended, or has not begun and will first check for signals
            return
        self.was_raised = True
        if self._held:
            self._is_pending = True
        else:
            self._raise()

    def _raise(self) -> NoReturn:
        self.was_raised = True
        raise Interrupted(signal.Signals(self.number).name)

    def _on_dropped_exception(self, dropped: sys.UnraisableHookArgs) -> None:
        """If Python dropped ``Interrupted`` (as in ``__del__``), ask the guard to have it raised again."""
        if isinstance(dropped.exc_value, Interrupted):
            self._notify(_AGAIN)
        else:
            sys.__unraisablehook__(dropped)

    def _on_printed_exception(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        """If a library written in C has ``Interrupted`` printed and goes on (as after an import that failed),
        print nothing and ask the guard to have it raised again."""
        if isinstance(error, Interrupted):
            self._notify(_AGAIN)
        else:
            self._print_exception(kind, error, traceback)

    def _notify(self, word: int) -> None:
        with suppress(BlockingIOError):  # the pipe is full, so the guard will wake up anyway
            os.write(self._pipe_write, bytes([word]))

    # How the program ends.

    def _finish(self) -> None:
        """Ignore signals while Python shuts down, after a command that no signal ended."""
        if self._pipe_write >= 0:
            for number in SIGNALS:  # Python would restore the default handler, which kills the process
                signal.signal(number, signal.SIG_IGN)

    def _end(self) -> NoReturn:
        """Exit after a signal, when the command has ended in order."""
        clear()
        self._print_end("at once " if self._is_urgent else "")
        _flush()
        atexit._run_exitfuncs()  # noqa: SLF001  # libraries remove their temporary files there
        # SystemExit would wait for threads whose work is no longer needed.
        os._exit(128 + self.number)

    def _end_at_once(self) -> NoReturn:
        clear()
        self._print_end("at once " if self._signals > 1 or self._is_urgent else "")
        os._exit(128 + self.number)

    def _print_end(self, how: str) -> None:
        if not self._print_lock.acquire(blocking=False):
            return  # the other thread prints it
        words = f"afresh: stopped {how}by {signal.Signals(self.number).name}\n"
        with suppress(OSError):
            # A progress bar may still be drawn: clear its line and show the cursor, which the bar hides.
            os.write(2, (f"\r\x1b[K\x1b[?25h{words}" if os.isatty(2) else words).encode())

    # The guard, in a thread of its own.

    def _guard(self) -> None:
        clock = SystemClock()
        until_s: float | None = None
        of_python, of_handler, is_urgent = 0, 0, False
        while True:
            left_s = None if until_s is None else max(until_s - clock.elapsed_s(), 0.0)
            ready = select.select([self._pipe_read], [], [], left_s)[0]
            if not ready:
                until_s, is_urgent = self._on_time_limit(clock, is_urgent=is_urgent), True
                continue
            for word in os.read(self._pipe_read, 64):
                of_python += word in SIGNALS
                of_handler += word & ~_HANDLED in SIGNALS and word > _HANDLED
                if word == _AGAIN:
                    select.select([], [], [], _PAUSE_S)
                    signal.pthread_kill(threading.main_thread().ident or 0, _RAISE_AGAIN)
                elif word in SIGNALS:
                    self.number = self.number or word
            # Python and the handler both report each signal, but either report may be missing.
            signals = max(of_python, of_handler)
            if signals and until_s is None:
                until_s = clock.elapsed_s() + self._limit_s()
            if signals > 1 and not is_urgent:
                until_s, is_urgent = clock.elapsed_s() + (_AT_ONCE_S if self._stops else 0.1), True
                self._is_urgent = True  # the handler cannot set it while the main thread runs no Python code

    def _limit_s(self) -> float:
        stops = self._stops[-1:]
        return stops[0].limit_s if stops else IN_ORDER_S

    def _on_time_limit(self, clock: SystemClock, *, is_urgent: bool) -> float:
        """Ask the command once more to stop, because its time limit has passed.

        Return the new limit, in elapsed seconds of ``clock``. End the process if the command was already
        asked once more, or has no function that asks it."""
        stops = self._stops[-1:]
        if is_urgent or not stops:
            self._end_at_once()
        self._is_urgent = True
        stops[0].ask()
        return clock.elapsed_s() + _GIVING_UP_S


def _perform(check: Callable[[], None], work: Callable[[], None]) -> None:
    """Run ``work``. Signals raise exceptions only inside this call, because nothing else catches them."""
    check()  # for signals that arrived before this call
    try:
        work()
    finally:
        _flush()  # here, so that a signal can interrupt a flush that blocks on a reader that does not read


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # the stream is closed, or its reader is gone
            stream.flush()


def clear() -> None:
    """Kill the child processes and remove the temporary files that ``LEFTOVERS`` lists."""
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
"""The only instance, which handles the signals of this process."""
