"""Answers that are costly to find, kept for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from afresh.values.clock import Clock

T = TypeVar("T")
_MOST = 32


class Kept(Generic[T]):
    """One answer per question for ``keep_s`` seconds; found by one thread at a time."""

    def __init__(self, clock: Clock, keep_s: float) -> None:
        self._clock, self._keep_s = clock, keep_s
        self._lock = threading.Lock()
        self._answers: dict[Hashable, tuple[float, T]] = {}

    def get(self, question: Hashable, find: Callable[[], T]) -> T:
        """The answer of before if it is young enough, else a new one."""
        with self._lock:
            found = self._answers.get(question)
            if found is not None and self._clock.elapsed_s() - found[0] < self._keep_s:
                return found[1]
            answer = find()
            self._answers.pop(question, None)
            while len(self._answers) >= _MOST:
                del self._answers[next(iter(self._answers))]
            self._answers[question] = (self._clock.elapsed_s(), answer)
            return answer

    def forget(self) -> None:
        """What was known is no longer so."""
        with self._lock:
            self._answers.clear()
