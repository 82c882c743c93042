"""Reads from a project what the pages and the API show: items, snapshots of the status, and plans."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from afresh.engine.engine import Engine
from afresh.engine.project_interface import ShardedProject, WatchedProject
from afresh.engine.ratelimit.budget_override import current_override
from afresh.engine.reporting.overview import EstimatedPage
from afresh.engine.settings.tables import BudgetTable
from afresh.values.errors import UnknownItemError, UsageError
from afresh.values.items import Item, ItemQuery
from afresh.values.stored import Copy
from afresh.web.error_responses import RequestError
from afresh.web.reports.copy_diff import CopyComparer
from afresh.web.reports.item_report import ItemReport, report_item
from afresh.web.reports.plan_report import (
    PlanModel,
    build_plan_model,
    compare_budgets,
    report_plan,
    report_present,
)
from afresh.web.reports.view_plan import plan_views
from afresh.web.schemas import OtherBudgetOut, PlanOut
from afresh.web.snapshot_cache import SnapshotCache, StatusSnapshot

_PLAN_KEPT_S = 60.0


@dataclass(frozen=True, slots=True)
class _Plans:
    """A sample of the items (``model``), and the plans computed from it, by (objective, requests per second).
    ``made_s`` is when the sample was taken, in elapsed seconds."""

    made_s: float
    model: PlanModel
    reports: dict[tuple[str, float], PlanOut] = field(default_factory=dict)


class ProjectData:
    """Reads what the pages of every project show. ``token`` is None if changes are refused."""

    def __init__(self, project: WatchedProject, token: str | None) -> None:
        self.project, self.token = project, token
        self.clock = project.clock  # so that pages and project agree about the time
        self.snapshots = SnapshotCache(project)
        self.comparer = CopyComparer(project)

    def page_items(self, query: ItemQuery, limit: int, cursor: str | None) -> EstimatedPage:
        """Return a page of items. A cursor begins with a hash of its query, so that the cursor of another
        query is refused."""
        mark = blake2b(repr(query).encode(), digest_size=6).hexdigest()
        if cursor is not None and not cursor.startswith(mark):
            raise UsageError("that cursor is of another query: start again without one")
        self.check_source(query.source)
        found = self.project.list_items(query, limit, cursor and cursor.removeprefix(mark))
        page = replace(found.page, cursor=found.page.cursor and mark + found.page.cursor)
        return replace(found, page=page)

    def report_item(self, key: str, source: str | None) -> ItemReport:
        """Return everything about one item. Raise ``RequestError`` (404) if there is no such item, and
        ``AmbiguousKeyError`` (409) if several sources have one."""
        with unknown_as_404(key, source):
            return report_item(self.project.detail(key, source=source))

    def read_copy(self, key: str, source: str | None, version: int | None) -> Copy | None:
        """Return a copy of an item, by default its newest one; raise what ``report_item`` raises."""
        with unknown_as_404(key, source):
            return self.project.get(key, source=source, version=version)

    def check_source(self, name: str | None) -> None:
        """Raise ``RequestError`` (404) if neither the settings nor any item have a source with this name."""
        if name is not None and name not in self.project.source_names():
            raise RequestError(404, f"there is no source {name[:200]!r}", "/api/v1/sources lists them")

    def current_snapshot(self) -> StatusSnapshot:
        """Return a snapshot for the API; raise ``RequestError`` (503) if the store cannot be read now."""
        self.project.check_store()  # the store may have been lost since the last snapshot
        snapshot = self.snapshots.get(wait=True)
        if snapshot.problem:
            raise RequestError(503, f"store lost: {snapshot.problem}", "it is looked for again by itself")
        return snapshot


@contextmanager
def unknown_as_404(key: str, source: str | None) -> Iterator[None]:
    """Answer with 404 if the item is unknown."""
    try:
        yield
    except UnknownItemError:
        of_source = "" if source is None else f" of the source {source[:200]!r}"
        raise RequestError(404, f"there is no item {key[:200]!r}{of_source}", "add it first") from None


class ClusterData(ProjectData):
    """Reads the data of the pages and the API from a cluster, which they do not change."""

    def __init__(self, cluster: ShardedProject) -> None:
        super().__init__(cluster, None)
        self.cluster = cluster


class DashboardData(ProjectData):
    """Reads the data of the pages and the API from one engine, with its plans."""

    def __init__(self, engine: Engine, token: str | None) -> None:
        super().__init__(engine, token)
        self.engine = engine
        self.comparer = CopyComparer(engine, engine.store)
        self._plans: _Plans | None = None
        self._lock = threading.Lock()

    def find_item(self, key: str, source: str | None) -> Item:
        """Return the item with this key, of ``source`` if it is given; raise what ``report_item`` raises."""
        with unknown_as_404(key, source):
            return self.engine.find_item(key, source)

    def report_plan(self, objective: str) -> PlanOut:
        """Return the plan for an objective, at most a minute old, together with the present state."""
        status, budget = self.snapshots.get(wait=True).status, self._today_budget()
        with self._lock:  # One request computes the plan, and the others wait for it.
            plans, key = self._current_plans(), (objective, budget.requests)
            if key not in plans.reports:
                plans.reports[key] = report_plan(self.engine, plans.model, objective, status, budget)
            plan = plans.reports[key]
        return plan.model_copy(update={"now": report_present(status), "views": plan_views(status)})

    def compare_budget(self, objective: str, requests: float) -> OtherBudgetOut:
        spent = self.snapshots.get().status.spent_last_hour
        with self._lock:
            model = self._current_plans().model
        return compare_budgets(self.engine, model, objective, requests, spent, self._today_budget())

    def forget(self) -> None:
        """Drop all cached values, because a request has changed items or the budget."""
        self.snapshots.expire()
        self._plans = None

    def _today_budget(self) -> BudgetTable:
        """Return the budget that ``Engine.ask_budget`` set, else that of the running engine or settings."""
        engine = self.engine
        if current_override(engine.store, engine.settings) is None:
            return engine.running_settings().budget
        return engine.current().budget

    def _current_plans(self) -> _Plans:
        """Return the cached plans. If they are a minute old, take a new sample of the items first."""
        plans, elapsed_s = self._plans, self.clock.elapsed_s()
        if plans is None or elapsed_s - plans.made_s >= _PLAN_KEPT_S:
            plans = _Plans(elapsed_s, build_plan_model(self.engine, self.clock.now_s()))
            self._plans = plans
        return plans
