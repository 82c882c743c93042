"""An engine that runs in a thread beside a test."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Self

from afresh.engine.engine import Engine
from afresh.engine.runner.run import Run

PATIENCE_S = 120.0  # the limit only says when to give up


class Running:
    """An engine that runs while its ``with`` lasts."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._make = engine, engine._loop
        self._loops: list[Run] = []
        self._thread = threading.Thread(target=engine.run)

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

    def _kept(self, *given: Any) -> Run:
        self._loops.append(self._make(*given))
        return self._loops[-1]
