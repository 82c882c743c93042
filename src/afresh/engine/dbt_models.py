"""The models of a dbt project, for programs that run dbt themselves: which to build now, and what a run did.

They are the items of a source of kind ``view`` with the setting ``dbt``. What a run of the engine would learn
of them is kept in the same place of the store, so that ``status`` and ``why`` show it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from afresh.allocation.build_selection import StaleItem, select_builds
from afresh.engine.external_scheduler import ExternalScheduler
from afresh.engine.lending import Lending
from afresh.engine.ratelimit.request_slots import budget_limits
from afresh.engine.scheduler.observed_staleness import pack_reports
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import STALENESS_REPORTS, STALENESS_STATE
from afresh.sources.capabilities import StalenessReport
from afresh.sources.context import SourceContext
from afresh.sources.secrets import Resolver
from afresh.sources.views.dbt_artifacts import DbtProject, DbtRun, read_freshness, read_project, read_run
from afresh.sources.views.dbt_catalogue import contain_loads, project_catalogue, record_run, unbuilt_parts
from afresh.sources.views.settings import ViewSettings
from afresh.sources.views.source import ViewSource
from afresh.sources.views.tracker import ViewTracker
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import AfreshError, UsageError
from afresh.values.reported import Reported

_UNKNOWN_COST_S = 1.0  # of a model that was never built, in a project of which no build is known


@dataclass(frozen=True, slots=True)
class DueModels:
    """The models to build now, in the order of their dependencies, with the views and seeds that they need
    first. ``stale`` is the number of stale models, of which the others are not worth it or do not fit.
    ``cost_s`` is how many seconds the builds and dbt itself take, ``budget_s`` how many the budget allows."""

    models: tuple[str, ...]
    stale: int
    cost_s: float
    budget_s: float


@dataclass(frozen=True, slots=True)
class LearnedRun:
    """What was learned from a run of dbt: the keys of the models that were built, failed or skipped.
    ``is_new`` is False if the run was known already, or if there is none yet."""

    built: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    is_new: bool = False


class DbtModels:
    """The dbt part of an engine. ``settings`` returns the settings as they are now."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Callable[[], Settings],
        secrets: Resolver,
        external: ExternalScheduler,
        lending: Lending,
    ) -> None:
        self._store, self._clock, self._settings = store, clock, settings
        self._secrets, self._external, self._lending = secrets, external, lending

    def source(self, name: str | None = None) -> ViewSettings:
        """Return the settings of the source of dbt models, which must be the only one without a ``name``."""
        tables = [table.settings for table in self._settings().sources]
        found = [own for own in tables if isinstance(own, ViewSettings) and own.dbt]
        found = [own for own in found if name in (None, own.name)]
        if not found:
            raise UsageError(
                "the settings have no source of dbt models: make one with 'afresh add --dbt target'"
            )
        if len(found) > 1:
            names = " or ".join(own.name for own in found)
            wrong = UsageError(f"the settings have several sources of dbt models: name {names}")
            wrong.option_hint = " (--source)"
            raise wrong
        return found[0]

    async def find_due(self, period_s: float, source: str | None = None) -> DueModels:
        """Return the models worth building now, if the next chance comes after ``period_s`` seconds. The
        tables below them are read first."""
        own, now_s = self.source(source), self._clock.now_s()
        tracker, reports = await self._read(own)
        budget_s, owes_nothing = self._budget(period_s, now_s)
        items = self._stale_items(own.name, tracker, reports, now_s)
        overhead_s = tracker.overhead.mean
        found = select_builds(
            items,
            period_s,
            budget_s,
            objective=self._settings().objective_of(own.name),
            overhead_s=overhead_s,
            owes_nothing=owes_nothing,
        )
        project = read_project(Path(own.dbt))
        seen = project_catalogue(project, None, None, own.selects, now_s)
        first = unbuilt_parts(tracker, project, seen, found.keys)
        return DueModels((*sorted(first), *found.keys), len(items), found.cost_s, budget_s)

    def learn(
        self, source: str | None = None, target: Path | None = None, seconds: float | None = None
    ) -> LearnedRun:
        """Learn from the last run of dbt and the freshness of its sources, as the files in ``target`` say, by
        default in the folder of the settings. ``seconds`` is how long the whole run took, if it is known
        better than to dbt, which does not count the start of Python."""
        own, now_s = self.source(source), self._clock.now_s()
        folder = target or Path(own.dbt)
        project = read_project(folder)
        run, freshness = read_run(folder, project), read_freshness(folder, project)
        if run is not None and seconds is not None:
            run = replace(run, seconds=seconds)
        tracker = self._tracker(own.name)
        is_new = run is not None and not tracker.has_run(run.invocation)
        loaded_s = {} if freshness is None or own.url else freshness.loaded_s
        seen = project_catalogue(project, None, None if own.url else freshness, own.selects, now_s)
        if own.url:
            seen = seen.with_stamps({**{n: r.stamp for n, r in seen.relations.items()}, **tracker.stamps})
        renewed = set() if run is None else record_run(tracker, seen, run, loaded_s)
        if not own.url:
            time_s = now_s if freshness is None else freshness.time_s
            reading = project_catalogue(project, None, freshness, own.selects, time_s)
            contain_loads(tracker, reading, loaded_s)
            tracker.record_reading(reading, keeps_old=True)
            self._save(own.name, tracker, tracker.reports())
        else:
            self._save(own.name, tracker, None)
        if run is None or not is_new:
            return LearnedRun()
        self._lending.record(_reports_of(own.name, run, project, renewed), skip_invalid=True)
        return LearnedRun(_keys(run, "built"), _keys(run, "failed"), _keys(run, "skipped"), is_new=True)

    async def _read(self, own: ViewSettings) -> tuple[ViewTracker, Mapping[str, StalenessReport]]:
        """Read what the models depend on, register new models, and save what was read."""
        context = SourceContext(clock=self._clock, resolver=self._secrets)
        source = ViewSource(own, context)
        try:
            source.tracker = self._tracker(own.name)
            problems = [listing.problem async for listing in source.listings() if not listing.entries]
        finally:
            await source.close()
        if problems:
            raise AfreshError(f"source {own.name!r}: {problems[0]}")
        reports = source.staleness_reports()
        self._save(own.name, source.tracker, reports)
        return source.tracker, reports

    def _tracker(self, name: str) -> ViewTracker:
        kept = self._store.state.get(STALENESS_STATE + name)
        return ViewTracker() if kept is None else ViewTracker.unpack(kept)

    def _save(self, name: str, tracker: ViewTracker, reports: Mapping[str, StalenessReport] | None) -> None:
        values: dict[str, bytes | None] = {STALENESS_STATE + name: tracker.pack()}
        if reports is not None:
            values[STALENESS_REPORTS + name] = pack_reports(reports)
        self._store.state.set(values)

    def _budget(self, period_s: float, now_s: float) -> tuple[float, bool]:
        """Return a tuple (seconds that the budget allows in the period, whether nothing is owed now)."""
        settings = self._settings()
        limits = budget_limits(settings.budget)
        if math.isinf(limits.seconds):
            return math.inf, True
        with self._external.lock:
            paid_s = self._external.next_slot_s(settings, now_s)
        return limits.seconds * max(now_s + period_s - max(paid_s, now_s), 0.0), paid_s <= now_s

    def _stale_items(
        self, source: str, tracker: ViewTracker, reports: Mapping[str, StalenessReport], now_s: float
    ) -> dict[str, StaleItem]:
        ids = self._store.items.ids(list(reports), source)
        known = {item.key: item for item in self._store.items.by_id(sorted(ids.values()))}
        costs = [report.cost_s for report in reports.values() if report.cost_s is not None]
        usual_s = sum(costs) / len(costs) if costs else _UNKNOWN_COST_S
        found = {}
        for key, report in reports.items():
            item = known.get(key)
            if report.fresh or (item is not None and item.status == "paused"):
                continue
            rate = report.rate_per_s or report.high_per_s or 0.0
            found[key] = StaleItem(
                key,
                _stale_s(report, tracker.built_s(key), now_s),
                rate,
                max(usual_s if report.cost_s is None else report.cost_s, 1e-3),
                weight=1.0 if item is None else item.weight,
                below=report.below,
                failures=tracker.failures.get(key, 0),
            )
        return found


def _stale_s(report: StalenessReport, built_s: float, now_s: float) -> float:
    """Return for how many seconds a model has been stale. If nothing shows its changes, it is assumed to have
    changed in the middle of the time since its last build."""
    if report.stale_since_s is not None:
        return max(now_s - report.stale_since_s, 0.0)
    return max(now_s - built_s, 0.0) / 2


def _reports_of(source: str, run: DbtRun, project: DbtProject, renewed: Iterable[str]) -> list[Reported]:
    """Return the builds of models as polls. They share the time that dbt needed for all else, which the
    budget pays, too."""
    models, changed = set(project.models), set(renewed)
    builds = [build for build in run.builds if build.key in models and build.result != "skipped"]
    each_s = max(run.seconds - sum(build.seconds for build in builds), 0.0) / max(len(builds), 1)
    return [
        Reported(
            build.key,
            source=source,
            time_s=build.started_s + build.seconds,
            changed=build.key in changed if build.result == "built" else None,
            failure=build.problem,
            seconds=build.seconds + each_s,
        )
        for build in builds
    ]


def _keys(run: DbtRun, result: str) -> tuple[str, ...]:
    return tuple(build.key for build in run.builds if build.result == result)
