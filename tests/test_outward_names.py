"""What people outside rely on: import paths, entry points, exported names, stored keys and JSON fields.

These names may gain company, but none may change or go: a rename inside the package keeps the old path.
Commands, options, settings and metrics are compared with their documentation in ``test_docs.py``.
"""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module

import pytest

import afresh
from afresh.engine import state_names
from afresh.engine.plugins import ESTIMATORS_GROUP, SOURCES_GROUP
from afresh.engine.reporting.status import Status
from afresh.engine.reporting.why import Why

PRINTED_IN_DOCS = {
    "afresh.engine.app": ("init_folder", "open_engine"),
    "afresh.model.decay": ("Exponential",),
    "afresh.model.index": ("poisson_due",),
    "afresh.model.time_course": ("database_course",),
    "afresh.money.inverse": ("implied_benefit", "implied_cost", "implied_rates"),
    "afresh.money.limited": ("with_refreshes",),
    "afresh.money.total_refreshes": ("best_total_refreshes",),
    "afresh.probes.query_order": ("round_length",),
    "afresh.probes.update_models": ("deterministic_change",),
    "afresh.rates.change_points": ("change_points",),
    "afresh.rates.saa": ("SelfAdaptive",),
    "afresh.sources.kinds": ("SourceKind",),
    "afresh.sources.settings": ("SourceSettings",),
    "afresh.sources.source": ("Source",),
    "afresh.values.items": ("ItemChange",),
}
EXPORTED = {
    "AfreshError", "Allocation", "Change", "CursorError", "Engine", "Income", "InfeasibleError", "InputError",
    "Lease", "ListingError", "OutputError", "RateEstimate", "RateEstimates", "Reported", "Status",
    "StoreError", "UsageError", "__version__", "age", "allocate", "best_interval", "budget_curve",
    "budget_for", "changes", "estimate", "estimate_many", "freshness", "open_engine",
}  # fmt: skip
STORED_NAMES = {
    "engine.capped:", "engine.left", "engine.threshold", "engine.hooks", "engine.listing:", "engine.listed:",
    "engine.listed_at:", "engine.pulse", "engine.course", "engine.asked", "engine.began", "engine.learned",
    "engine.picked", "engine.external", "engine.round",
    "engine.reach:", "engine.rests:", "engine.notes:", "engine.evidence:", "engine.witness:",
    "engine.trouble:", "engine.uses", "engine.content:",
}  # fmt: skip
WHY_FIELDS = {
    "item", "time_s", "rate_per_s", "rate_low", "rate_high", "interval_s", "fresh_now", "marginal",
    "threshold", "next_s", "polls", "reasons", "seen", "jumped_s", "period_s",
}  # fmt: skip

STATUS_FIELDS = {
    "absorbed_per_s", "age_s", "audited", "budget_per_s", "by_status", "closed", "copies", "dropped",
    "due", "events", "failing", "file_bytes", "freshness", "groups", "items", "leases", "limits",
    "looked_at", "money", "noise", "notices", "problems", "run", "searches", "spent_last_hour", "target",
    "time_s", "troubles", "views", "workers",
}  # fmt: skip


@pytest.mark.parametrize("module", PRINTED_IN_DOCS)
def test_import_paths_printed_in_the_docs_work(module: str) -> None:
    found = import_module(module)
    assert [name for name in PRINTED_IN_DOCS[module] if not hasattr(found, name)] == []


def test_the_package_exports_what_people_catch_and_annotate() -> None:
    assert set(afresh.__all__) >= EXPORTED
    assert [name for name in afresh.__all__ if not hasattr(afresh, name)] == []


def test_entry_point_groups_keep_their_names() -> None:
    assert (SOURCES_GROUP, ESTIMATORS_GROUP) == ("afresh.sources", "afresh.estimators")


def test_stored_names_stay() -> None:
    values = {value for name, value in vars(state_names).items() if name.isupper()}
    assert values >= STORED_NAMES


def test_fields_of_why_and_status_stay() -> None:
    assert {field.name for field in fields(Why)} >= WHY_FIELDS
    assert {field.name for field in fields(Status)} >= STATUS_FIELDS
