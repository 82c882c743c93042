"""Messages that could not be sent: which addresses fail, and what they were never told."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import NOTIFY_FAILURES
from afresh.stores.store import Store


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
