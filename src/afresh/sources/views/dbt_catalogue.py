"""The models of a dbt project as a catalogue of views, and what one run of dbt changed. Pure.

A model whose build writes rows is a view. Views and ephemeral models of dbt hold no rows: they are parts,
like seeds, and their definition is their stamp. The definition of a model is one more part of it, so that a
model is stale after an edit. Of a source, either the database shows changes, or ``dbt source freshness`` says
when it was loaded last: that time is its stamp. A build contains all rows loaded before it began."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from afresh.sources.views.catalogue import (
    FOREIGN,
    MATERIALISED,
    PLAIN,
    TABLE,
    Catalogue,
    CatalogueRelation,
    Stamp,
)
from afresh.sources.views.dbt_artifacts import DbtProject, DbtRun, SourceFreshness
from afresh.sources.views.named_views import UNCOUNTED, short_hash
from afresh.sources.views.tracker import ViewTracker


def definition_part(model: str) -> str:
    """Return the name of the part of a model that stands for its definition."""
    return f"definition({model})"


def load_stamp(loaded_s: float) -> Stamp:
    """Return the stamp of a source that was loaded last at a time. Milliseconds identify it.

    >>> load_stamp(12.5)
    Stamp(changes=0, version=12500)
    """
    return Stamp(0, round(loaded_s * 1000))


def project_catalogue(
    project: DbtProject,
    seen: Catalogue | None,
    freshness: SourceFreshness | None,
    selects: Callable[[str], bool],
    time_s: float,
) -> Catalogue:
    """Return the catalogue of a project at ``time_s``. ``seen`` has the tables as the database knows them,
    by ``schema.table``, if it is known; otherwise ``freshness`` gives the stamps of sources. ``selects``
    returns whether a model is an item."""
    loaded = freshness.loaded_s if freshness is not None and seen is None else {}
    relations: dict[str, CatalogueRelation] = {}
    below = {}
    for key, node in project.nodes.items():
        table = None if seen is None else seen.relations.get(node.relation)
        definition = Stamp(0, short_hash(node.checksum))
        below[key] = node.below
        if node.resource == "source":
            stamp = table.stamp if table is not None and table.has_counters else None
            stamp = load_stamp(loaded[key]) if key in loaded else stamp
            relations[key] = CatalogueRelation(key, FOREIGN if stamp is None else TABLE, stamp or UNCOUNTED)
        elif node.is_stored:
            part = definition_part(key)
            own = Stamp(0, short_hash(table.stamp.changes, table.stamp.version)) if table else UNCOUNTED
            is_there = table is None or table.populated
            relations[key] = CatalogueRelation(key, MATERIALISED, own, populated=is_there, indexed=True)
            relations[part] = CatalogueRelation(part, PLAIN, definition)
            below[key] = (*node.below, part)
        else:
            relations[key] = CatalogueRelation(key, PLAIN, definition)
    models = frozenset(project.models)
    reset = seen.reset if seen else ""
    return Catalogue(relations, below, lambda name: name in models and selects(name), reset, time_s)


def contain_loads(tracker: ViewTracker, seen: Catalogue, loaded_s: Mapping[str, float]) -> None:
    """Let the states of models contain what was loaded before they were built, as ``loaded_s`` says."""
    for view in seen.views:
        built_s = min((tracker.built_s(each) for each in (view, *seen.upstream(view))), default=0.0)
        for source in seen.parts(view) & loaded_s.keys():
            if loaded_s[source] < built_s:
                tracker.contain(view, source, seen.relations[source].stamp)


def record_run(tracker: ViewTracker, seen: Catalogue, run: DbtRun, loaded_s: Mapping[str, float]) -> set[str]:
    """Record what a run of dbt built, given the catalogue ``seen`` and when sources were loaded. Return the
    models that were stale before; nothing is recorded if the run is known already."""
    if tracker.knows_run(run.invocation, run.overhead_s):
        return set()
    renewed = set()
    for build in run.builds:
        if build.result == "failed":
            tracker.record_failure(build.key)
        if build.result != "built" or build.key not in seen.relations:
            continue
        at_start = _as_of(seen, tracker.stamps, loaded_s, build.started_s)
        if build.key in seen.views:
            before = tracker.states.get(build.key)
            tracker.record_refresh(build.key, at_start, None, build.seconds)
            if tracker.states[build.key] != before:
                renewed.add(build.key)
        else:  # a view or seed holds its definition
            tracker.states[build.key] = {build.key: seen.relations[build.key].stamp}
    return renewed


def unbuilt_parts(
    tracker: ViewTracker, project: DbtProject, seen: Catalogue, models: Iterable[str]
) -> set[str]:
    """Return the views and seeds below ``models`` that were not built yet as they are defined now."""
    parts = {part for model in models for part in seen.parts(model) if part in project.nodes}
    return {
        part
        for part in parts
        if project.nodes[part].is_selectable
        and tracker.states.get(part) != {part: seen.relations[part].stamp}
    }


def _as_of(
    seen: Catalogue, before: Mapping[str, Stamp], loaded_s: Mapping[str, float], time_s: float
) -> Catalogue:
    """Return the catalogue with the stamps of what a build that began at ``time_s`` has surely read."""

    def stamp(name: str, relation: CatalogueRelation) -> Stamp:
        if relation.kind not in (TABLE, FOREIGN) or loaded_s.get(name, time_s) < time_s:
            return relation.stamp  # a definition, or loaded before the build
        return before.get(name, Stamp(-1, -1))

    then = {name: replace(one, stamp=stamp(name, one)) for name, one in seen.relations.items()}
    return Catalogue(then, seen.below, seen.selects, seen.reset, time_s)
