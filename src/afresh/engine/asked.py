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
    budget = settings.budget
    value = {"requests": requests, "instead_of": budget.requests}
    as_said = requests == budget.requests and not budget.each_item
    store.state.set({ASKED: None if as_said else json.dumps(value).encode()})


def with_asked(store: Store, settings: Settings) -> Settings:
    """The settings with the budget that was asked for instead of theirs, if any was."""
    found = asked(store)
    if found is None or found.instead_of != settings.budget.requests:
        return settings
    budget = settings.budget.model_copy(update={"requests": found.requests, "each_item": False})
    return replace(settings, budget=budget)
