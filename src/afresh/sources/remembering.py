"""What a source would be rude to forget when its process ends: an optional part of the contract.

``rests`` are kept within a second of their making, ``notes`` now and then and at the end. A source that is
built anew is told both before its first request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Rest:
    """A group that may not be asked until ``until_s`` (Unix seconds), after ``failures`` in a row.

    ``why`` is in words, one line, nothing secret.
    """

    group: str
    until_s: float
    failures: int = 0
    why: str = ""


@runtime_checkable
class RememberingSource(Protocol):
    """A source with manners worth keeping; ``isinstance`` tells."""

    def rests(self) -> tuple[Rest, ...]:
        """The groups that rest longer than their usual delay, and those that failed last; bounded."""

    def notes(self) -> bytes:
        """What else was learned of its groups (robots.txt, honesty), for ``recall`` alone; bounded."""

    def recall(self, rests: Sequence[Rest], notes: bytes) -> None:
        """What an earlier source of this name knew, or now and then that of another worker.

        What is known already stays, unless the notes are newer; those of another version are passed over.
        """
