"""Views that the settings name, and staleness that a query or function states, as parts of a catalogue. Pure.

A view that the settings name may be any table that something can rebuild. Here it gets the kind of a
materialised view, and its dependencies.

If ``stale_when`` states whether a view is stale, the view gets one more part, whose stamp counts how often
the view became stale. So a view that depends on it becomes stale too, and rates are learned as from the
counters of tables. The number grows when the view is stated to be stale although the state of its last
refresh has the present number. Tables without a change counter no longer matter for such a view."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from hashlib import blake2b

from afresh.sources.views.catalogue import (
    FOREIGN,
    MATERIALISED,
    TABLE,
    Catalogue,
    CatalogueRelation,
    Stamp,
    State,
)

UNCOUNTED = Stamp(0, 0)


def short_hash(*values: object) -> int:
    """Return a hash of texts and numbers that is the same in every process, as a positive integer."""
    return int.from_bytes(blake2b(repr(values).encode(), digest_size=7).digest())


def catalogue_of(
    stamps: Mapping[str, Stamp | None], missing: Collection[str], reset: str, time_s: float
) -> Catalogue:
    """Return a catalogue of tables by their stamps. A table whose stamp is None has no change counter."""
    relations = {
        name: CatalogueRelation(
            name, FOREIGN if stamp is None else TABLE, stamp or UNCOUNTED, populated=name not in missing
        )
        for name, stamp in stamps.items()
    }
    return Catalogue(relations, {}, lambda _: False, reset, time_s)


def add_named_views(
    seen: Catalogue, named: Mapping[str, tuple[str, ...]], selects: Callable[[str], bool]
) -> Catalogue:
    """Return a catalogue in which the ``named`` views are items, with their dependencies. Dependencies that
    the catalogue does not know become tables without a change counter. ``selects`` returns whether a
    materialised view of the catalogue is an item, too.

    >>> seen = catalogue_of({"sales": Stamp(5, 1)}, (), "", 0.0)
    >>> seen = add_named_views(seen, {"daily": ("sales",), "weekly": ("daily", "days")}, lambda _: False)
    >>> seen.views, sorted(seen.parts("weekly")), seen.relations["days"].has_counters
    (('daily', 'weekly'), ['days', 'sales'], False)
    """
    relations, below = dict(seen.relations), dict(seen.below)
    for view, bases in named.items():
        known = relations.get(view, CatalogueRelation(view, MATERIALISED, UNCOUNTED))
        stamp = known.stamp
        if known.kind != MATERIALISED:
            # A rebuilt table has other rows or another file: both show that it was rebuilt.
            stamp = Stamp(0, short_hash(stamp.changes, stamp.version))
        # An index for REFRESH CONCURRENTLY matters only for views that PostgreSQL itself refreshes.
        relations[view] = replace(known, kind=MATERIALISED, stamp=stamp, indexed=True)
        below[view] = tuple(dict.fromkeys((*below.get(view, ()), *bases)))
    for base in {base for bases in named.values() for base in bases} - relations.keys():
        relations[base] = CatalogueRelation(base, FOREIGN, UNCOUNTED)
    return Catalogue(relations, below, lambda name: name in named or selects(name), seen.reset, seen.time_s)


def statement_part(view: str) -> str:
    """Return the name of the part of a view that stands for what ``stale_when`` states."""
    return f"stale_when({view})"


def add_statements(
    seen: Catalogue, stated: Mapping[str, bool], stamps: Mapping[str, Stamp], states: Mapping[str, State]
) -> Catalogue:
    """Return a catalogue with what was ``stated`` of views: True for stale. ``stamps`` are those of the last
    reading, ``states`` those of the last refreshes.

    >>> seen = add_named_views(catalogue_of({}, (), "", 0.0), {"daily": ()}, lambda _: False)
    >>> part, states = statement_part("daily"), {"daily": {statement_part("daily"): Stamp(4, 0)}}
    >>> add_statements(seen, {"daily": True}, {part: Stamp(4, 0)}, states).relations[part].stamp
    Stamp(changes=5, version=0)
    """
    relations, below = dict(seen.relations), dict(seen.below)
    for view, is_stale in stated.items():
        part = statement_part(view)
        last = stamps.get(part, UNCOUNTED)
        was_stale = states.get(view, {}).get(part) != last
        relations[part] = CatalogueRelation(
            part, TABLE, Stamp(last.changes + (is_stale and not was_stale), 0)
        )
        counted = (base for base in below.get(view, ()) if relations[base].has_counters)
        below[view] = (*counted, part)
    return Catalogue(relations, below, seen.selects, seen.reset, seen.time_s)
