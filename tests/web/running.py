"""An engine that runs in a thread beside a test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from afresh.engine.engine import Engine

PATIENCE_S = 120.0  # the limit only says when to give up


class Running:
    """An engine that runs while its ``with`` lasts; it is asked to stop as a program would ask it."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._before = engine, engine.on_stop
        self._drain: Callable[[], None] | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._engine.run()
        finally:
            self._started.set()  # a run that failed at once must not be waited for

    @contextmanager
    def _keep_drain(self, drain: Callable[[], None], _limit_s: float) -> Iterator[None]:
        self._drain = drain
        self._started.set()
        yield
        self._drain = None

    def __enter__(self) -> Self:
        self._engine.on_stop = self._keep_drain
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._started.wait(PATIENCE_S)
        if self._drain is not None:
            self._drain()
        self._thread.join(PATIENCE_S)
        self._engine.on_stop = self._before
        assert not self._thread.is_alive()
