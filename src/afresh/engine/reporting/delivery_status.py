"""What could not be delivered: changes to hooks, and messages to the addresses of notifications."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import NOTIFY_FAILURES
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


@dataclass(frozen=True, slots=True)
class NotifyFailure:
    """An address whose messages fail. ``name`` is that of its consumer, ``address`` what logs call it. Its
    message was tried ``attempts`` times (0: the last one was sent); ``problem`` says why it failed last, and
    ``next_s`` when it is tried again, None if it is not. ``given_up`` changes were never told; the first of
    them comes after the cursor ``since``."""

    name: str
    source: str
    address: str
    attempts: int
    problem: str
    next_s: float | None
    given_up: int = 0
    since: str = ""

    def save(self, store: Store) -> None:
        store.state.set({NOTIFY_FAILURES + self.name: json.dumps(asdict(self)).encode()})


def read_notify_failure(store: Store, name: str) -> NotifyFailure | None:
    """Return the failure of an address, by the name of its consumer."""
    packed = store.state.get(NOTIFY_FAILURES + name)
    return None if packed is None else NotifyFailure(**json.loads(packed))


def notify_failures(store: Store, settings: Settings) -> tuple[NotifyFailure, ...]:
    """Return the addresses of the settings whose last message was not sent, or that were not told all."""
    numbers = [
        (table.settings.name, at) for table in settings.sources for at, _ in enumerate(table.notify, 1)
    ]
    found = (read_notify_failure(store, outlet_name(*one)) for one in numbers)
    return tuple(one for one in found if one is not None)


def outlet_name(source: str, number: int) -> str:
    """Return the name of the consumer of an address, by its place in the setting ``notify``.

    >>> outlet_name("web", 1)
    'notify:web:1'
    """
    return f"notify:{source}:{number}"
