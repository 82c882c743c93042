"""A budget that was set while an engine runs; the store keeps it, and every engine follows within seconds.

The last setting counts. The override replaces the budget of the settings file and of the options that engines
were started with. It ends when an engine is started with a budget on its command line, and when the file has
another budget than it had when the override was set.
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
    """``requests`` per second, instead of those of the settings file at that time."""

    requests: float
    instead_of: float


def read_override(store: Store) -> BudgetOverride | None:
    packed = store.state.get(BUDGET_OVERRIDE)
    return BudgetOverride(**json.loads(packed)) if packed else None


def set_override(store: Store, settings: Settings, requests: float) -> None:
    """Set another number of requests per second."""
    if not 0 < requests < float("inf"):
        raise UsageError(f"a budget of {requests:g} requests per second: must be more than 0, and finite")
    value = {"requests": requests, "instead_of": _written(settings)}
    store.state.set({BUDGET_OVERRIDE: json.dumps(value).encode()})


def drop_superseded_override(store: Store, settings: Settings) -> None:
    """Drop the override if the engine that starts has a budget on its command line, which is newer."""
    if settings.written_requests is not None and read_override(store) is not None:
        store.state.set({BUDGET_OVERRIDE: None})


def current_override(store: Store, settings: Settings) -> BudgetOverride | None:
    """Return the override if it still counts."""
    found = read_override(store)
    return found if found is not None and found.instead_of == _written(settings) else None


def apply_override(store: Store, settings: Settings) -> Settings:
    found = current_override(store, settings)
    if found is None:
        return settings
    budget = settings.budget.model_copy(update={"requests": found.requests, "each_item": False})
    return replace(settings, budget=budget)


def _written(settings: Settings) -> float:
    return settings.budget.requests if settings.written_requests is None else settings.written_requests
