"""An engine that runs in a thread beside a test."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from afresh.engine.engine import Engine

PATIENCE_S = 120.0  # the limit only says when to give up


class Running:
    """An engine that runs while its ``with`` lasts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Self:
        self._engine.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.stop()
