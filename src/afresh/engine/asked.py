"""A budget asked for while an engine runs, kept in the store: every engine on it follows within seconds.

It stands in for the one of the settings that it was asked instead of: once the settings say something else,
they count again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from afresh.engine.settings import Settings
from afresh.engine.state_names import ASKED
from afresh.stores.store import Store
from afresh.values.errors import UsageError


@dataclass(frozen=True, slots=True)
class Asked:
    """``requests`` per second, instead of those that the settings said then."""

    requests: float
    instead_of: float


def asked(store: Store) -> Asked | None:
    """What was asked for last."""
    packed = store.state.get(ASKED)
    return Asked(**json.loads(packed)) if packed else None


def ask(store: Store, settings: Settings, requests: float) -> None:
    """Ask for so many requests per second; ``settings`` as their file says."""
    if not 0 < requests < float("inf"):
        raise UsageError(f"a budget of {requests:g} requests per second: must be more than 0, and finite")
    said = settings.budget.requests
    value = None if requests == said else json.dumps({"requests": requests, "instead_of": said}).encode()
    store.state.set({ASKED: value})


def with_asked(store: Store, settings: Settings) -> Settings:
    """The settings with the budget that was asked for instead of theirs, if any was."""
    found = asked(store)
    if found is None or found.instead_of != settings.budget.requests:
        return settings
    return replace(settings, budget=settings.budget.model_copy(update={"requests": found.requests}))


def followed(before: Asked | None, found: Asked | None, requests: float) -> float | None:
    """The budget that a running engine at ``requests`` per second takes over, None to stay as it is.

    ``before`` is what it followed last. Settings read again meanwhile say neither the old nor the new:

    >>> followed(None, Asked(2.0, 1.0), 1.0), followed(Asked(2.0, 1.0), None, 2.0)
    (2.0, 1.0)
    >>> followed(None, Asked(2.0, 1.0), 5.0) is None
    True
    """
    if found is None:
        return before.instead_of if before is not None and requests == before.requests else None
    mine = (found.instead_of,) if before is None else (found.instead_of, before.requests)
    return found.requests if requests in mine and requests != found.requests else None
