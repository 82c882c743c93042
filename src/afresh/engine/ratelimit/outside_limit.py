"""A limit from outside the project, which every request of a run keeps besides its budget.

A shard of a cluster has one: its share of the budget of all shards, which other processes change.
"""

from __future__ import annotations

from typing import Protocol


class OutsideLimit(Protocol):
    """Says when the next request may start. All times are elapsed seconds of the run's clock."""

    def ready_s(self, now_s: float) -> float:
        """Return when the next request may start, at least ``now_s``; infinite if that is not known yet."""

    def record_start(self, now_s: float) -> None:
        """Record that a request starts; ``ready_s`` must have allowed it."""


class Unlimited:
    """The limit of an engine that runs by itself: none.

    >>> Unlimited().ready_s(7.0)
    7.0
    """

    def ready_s(self, now_s: float) -> float:
        return now_s

    def record_start(self, now_s: float) -> None:
        """Do nothing, because nothing is limited."""
