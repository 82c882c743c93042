"""A budget asked for while an engine runs, kept in the store: every engine on it follows within seconds.

What was said last counts. A budget asked for goes over the settings' file and over the options that engines
were started with; it is forgotten when an engine is started with a budget on its command line, and when the
file says another budget than it did when it was asked for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import BUDGET_OVERRIDE
from afresh.stores.store import Store
from afresh.values.errors import UsageError


@dataclass(frozen=True, slots=True)
class BudgetOverride:
    """``requests`` per second, instead of those that stood in the settings' file then."""

    requests: float
    instead_of: float


def read_override(store: Store) -> BudgetOverride | None:
    """What was asked for last."""
    packed = store.state.get(BUDGET_OVERRIDE)
    return BudgetOverride(**json.loads(packed)) if packed else None


def set_override(store: Store, settings: Settings, requests: float) -> None:
    """Ask for so many requests per second."""
    if not 0 < requests < float("inf"):
        raise UsageError(f"a budget of {requests:g} requests per second: must be more than 0, and finite")
    value = {"requests": requests, "instead_of": _written(settings)}
    store.state.set({BUDGET_OVERRIDE: json.dumps(value).encode()})


def drop_superseded_override(store: Store, settings: Settings) -> None:
    """An engine starts: a budget on its command line was said after whatever was asked for."""
    if settings.written_requests is not None and read_override(store) is not None:
        store.state.set({BUDGET_OVERRIDE: None})


def current_override(store: Store, settings: Settings) -> BudgetOverride | None:
    """What was asked for, if it still counts."""
    found = read_override(store)
    return found if found is not None and found.instead_of == _written(settings) else None


def apply_override(store: Store, settings: Settings) -> Settings:
    """The settings with the budget that was asked for instead of theirs, if any was."""
    found = current_override(store, settings)
    if found is None:
        return settings
    budget = settings.budget.model_copy(update={"requests": found.requests, "each_item": False})
    return replace(settings, budget=budget)


def _written(settings: Settings) -> float:
    return settings.budget.requests if settings.written_requests is None else settings.written_requests
