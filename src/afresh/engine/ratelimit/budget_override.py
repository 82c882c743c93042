"""A budget override: a budget that is set while engines run. It is stored, and engines apply it in seconds.

The last override counts. It replaces the budget of the settings file and of the command lines of running
engines. It ends when an engine starts with a budget on its command line, or when the file's budget changes.
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
    """A budget of ``requests`` per second. When it was set, the settings file stated ``instead_of``."""

    requests: float
    instead_of: float


def read_override(store: Store) -> BudgetOverride | None:
    packed = store.state.get(BUDGET_OVERRIDE)
    return BudgetOverride(**json.loads(packed)) if packed else None


def set_override(store: Store, settings: Settings, requests: float) -> None:
    """Store an override with this number of requests per second."""
    if not 0 < requests < float("inf"):
        raise UsageError(f"a budget of {requests:g} requests per second: must be more than 0, and finite")
    value = {"requests": requests, "instead_of": _file_budget(settings)}
    store.state.set({BUDGET_OVERRIDE: json.dumps(value).encode()})


def drop_superseded_override(store: Store, settings: Settings) -> None:
    """Remove the override if the engine that starts has a newer budget, on its command line."""
    if settings.written_requests is not None and read_override(store) is not None:
        store.state.set({BUDGET_OVERRIDE: None})


def current_override(store: Store, settings: Settings) -> BudgetOverride | None:
    """Return the override; None if there is none, or if the budget in the settings file was changed."""
    found = read_override(store)
    return found if found is not None and found.instead_of == _file_budget(settings) else None


def apply_override(store: Store, settings: Settings) -> Settings:
    found = current_override(store, settings)
    if found is None:
        return settings
    budget = settings.budget.model_copy(update={"requests": found.requests, "each_item": False})
    return replace(settings, budget=budget)


def _file_budget(settings: Settings) -> float:
    return settings.budget.requests if settings.written_requests is None else settings.written_requests
