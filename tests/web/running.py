"""An engine that runs in a thread beside a test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests.engine.living import CLOCK

from afresh.engine.engine import Engine
from afresh.engine.run.loop import Loop

PATIENCE_S = 120.0  # every wait is for a condition; the limit only says when to give up
_BETWEEN_S = 0.1


class Running:
    """An engine that runs from ``start`` (or entering) until ``stop`` (or leaving)."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._make = engine, engine._loop
        self._loops: list[Loop] = []
        self._thread = threading.Thread(target=self._run)
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._engine._loop = self._kept  # type: ignore[method-assign,assignment]
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for loop in self._loops:
            loop.stop()
        self._thread.join(PATIENCE_S)
        self._engine._loop = self._make  # type: ignore[method-assign]
        assert not self._thread.is_alive()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to become true while the engine runs."""
        ends_s = CLOCK.elapsed_s() + PATIENCE_S
        while not condition():
            assert CLOCK.elapsed_s() < ends_s, "waited in vain"
            assert not self._ended.wait(_BETWEEN_S), "the engine ended"

    def _run(self) -> None:
        try:
            self._engine.run()
        finally:
            self._ended.set()

    def _kept(self, *given: Any) -> Loop:
        self._loops.append(self._make(*given))
        return self._loops[-1]
