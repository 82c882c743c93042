"""Changes that could not be delivered to hooks: which fail, and which were given up."""

from __future__ import annotations

from dataclasses import dataclass

from afresh.stores.store import Store
from afresh.values.stored import FailedEvent

SHOWN = 20


@dataclass(frozen=True, slots=True)
class HookFailure:
    """A change that hooks could not be told. ``id`` is its number in the queue of hooks; ``attempts`` is how
    often it was tried; ``next_s`` when it is tried again, None if it was given up."""

    id: int
    item: str
    source: str
    kind: str
    time_s: float
    attempts: int
    problem: str
    next_s: float | None


def hook_failures(store: Store, limit: int = SHOWN) -> tuple[HookFailure, ...]:
    """Return at most ``limit`` changes whose last delivery failed, those that were given up first."""
    return tuple(map(_describe, store.events.failed(limit)))


def _describe(failed: FailedEvent) -> HookFailure:
    event = failed.event
    next_s = None if failed.is_given_up else failed.next_s
    place = (event.id, event.key, event.source, event.kind, event.time_s)
    return HookFailure(*place, event.attempts, failed.problem, next_s)
