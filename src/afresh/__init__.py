"""afresh keeps a local copy of remote data as fresh as a budget allows, and says what budget is worth paying.

The names below are the Python interface. Each is imported at its first use, so that ``import afresh`` and the
command line start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from afresh.values.errors import (
    AfreshError,
    CursorError,
    InfeasibleError,
    InputError,
    ListingError,
    OutputError,
    StoreError,
    UsageError,
)
from afresh.version import __version__

if TYPE_CHECKING:
    from afresh.allocation.allocate import allocate
    from afresh.allocation.budget_curve import budget_curve, budget_for
    from afresh.engine.app import changes, open_engine
    from afresh.engine.engine import Engine
    from afresh.engine.reporting.status import Status
    from afresh.model.freshness import age, freshness
    from afresh.money.best_interval import best_interval
    from afresh.rates.estimator import estimate, estimate_many
    from afresh.values.changes import Change
    from afresh.values.lease import Lease
    from afresh.values.reported import Reported
    from afresh.values.results import Allocation, Income, RateEstimate, RateEstimates

_HOME = {
    "Allocation": "afresh.values.results",
    "Change": "afresh.values.changes",
    "Engine": "afresh.engine.engine",
    "Income": "afresh.values.results",
    "Lease": "afresh.values.lease",
    "RateEstimate": "afresh.values.results",
    "RateEstimates": "afresh.values.results",
    "Reported": "afresh.values.reported",
    "Status": "afresh.engine.reporting.status",
    "age": "afresh.model.freshness",
    "allocate": "afresh.allocation.allocate",
    "best_interval": "afresh.money.best_interval",
    "budget_curve": "afresh.allocation.budget_curve",
    "budget_for": "afresh.allocation.budget_curve",
    "changes": "afresh.engine.app",
    "estimate": "afresh.rates.estimator",
    "estimate_many": "afresh.rates.estimator",
    "freshness": "afresh.model.freshness",
    "open_engine": "afresh.engine.app",
}

__all__ = [
    "AfreshError",
    "Allocation",
    "Change",
    "CursorError",
    "Engine",
    "Income",
    "InfeasibleError",
    "InputError",
    "Lease",
    "ListingError",
    "OutputError",
    "RateEstimate",
    "RateEstimates",
    "Reported",
    "Status",
    "StoreError",
    "UsageError",
    "__version__",
    "age",
    "allocate",
    "best_interval",
    "budget_curve",
    "budget_for",
    "changes",
    "estimate",
    "estimate_many",
    "freshness",
    "open_engine",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'afresh' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
