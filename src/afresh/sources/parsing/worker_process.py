"""A parser process, as the process that sends it requests sees it."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from afresh.sources.parsing.parse_budget import ParseBudget, ParseBudgetError
from afresh.sources.parsing.worker_main import read_message, write_message
from afresh.values.leftovers import LEFTOVERS


class WorkerGoneError(Exception):
    """The process had ended before it got the request."""


class WorkerProcess:
    """One parser process. It serves one request at a time, and ends when this object is ended or deleted."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "afresh.sources.parsing.worker_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # No other variables: a parser that is taken over should not find secrets there.
            env={"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
            process_group=0,  # so that Ctrl-C reaches only this process, which ends the child
        )
        self._listed = ExitStack()
        self._listed.enter_context(LEFTOVERS.process(self._process.pid))
        self._late = False

    def call(self, budget: ParseBudget, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Return what the function returns. Raise ``ParseBudgetError`` if it exceeds its budget or raises,
        and ``WorkerGoneError`` if the process had ended before. After an error the process is ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        request = pickle.dumps(
            (budget.processor_s, budget.memory_bytes, function, arguments), pickle.HIGHEST_PROTOCOL
        )
        timer = threading.Timer(budget.longest_s, self._end_late)
        timer.start()
        try:
            try:
                write_message(stdin.fileno(), request)
            except OSError:
                raise WorkerGoneError from None
            answer = read_message(stdout.fileno())
        finally:
            timer.cancel()
        if answer is None:
            if self._process.wait() == 0:
                raise WorkerGoneError
            raise ParseBudgetError(self._reason(budget))
        kind, result = pickle.loads(answer)
        if kind == "done":
            return result
        self.end()
        if kind == "memory":
            raise ParseBudgetError(_memory_words(budget))
        raise ParseBudgetError(f"its parser failed with {result}")

    def kill(self) -> None:
        """Tell the process to end, and wait for nothing. A call that waits for it raises an error."""
        self._process.kill()

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._listed.close()

    def _end_late(self) -> None:
        self._late = True
        self._process.kill()

    def _reason(self, budget: ParseBudget) -> str:
        """Return why the process has ended without an answer."""
        status = self._process.wait()
        self.end()
        if self._late or status == -signal.SIGPROF:
            return f"parsing it takes more than {budget.processor_s:g} s"
        # A library that gets no memory and does not expect that ends the process in many ways.
        return f"{_memory_words(budget)}, or it breaks its parser"


def _memory_words(budget: ParseBudget) -> str:
    return f"parsing it needs more than {budget.memory_bytes / 1e6:.0f} MB of memory"
