"""The dependencies of materialised views, read from the catalogue of a database, and their staleness. Pure.

The *parts* of a materialised view are the tables and plain views that it is computed from. If it depends on
another materialised view that is an item, the parts of that view are its parts too. A materialised view that
is not an item is refreshed by another program, and counts like a table.

The *state* of a view has one stamp for each part, which identifies the content that the view was computed
from. For direct parts it is the stamp just before the last refresh. For parts of another materialised view it
is the stamp in the state of that view, because the content of that view was used. If a part is reached on two
ways with different stamps, the older one counts, because some content of the view is that old. A view is
stale if the present stamps of its parts differ from its state. Database rows written during a refresh make
the view stale, so one refresh may be unnecessary, but no change is missed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from afresh.values.errors import InputError

TABLE, PARTITIONED, MATERIALISED, PLAIN, FOREIGN = "r", "p", "m", "v", "f"
"""The codes of ``pg_class.relkind``."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identifies the content of a part: if two readings have the same stamp, the content is the same.

    ``changes`` is the number of database rows ever inserted, updated and deleted, including aborted
    transactions. ``version`` identifies the file of a table, which TRUNCATE and some ALTERs replace, or the
    definition of a plain view."""

    changes: int
    version: int


@dataclass(frozen=True, slots=True)
class CatalogueRelation:
    """A table or view of the database. ``kind`` is its code in ``pg_class.relkind``. ``populated`` is False
    for a materialised view that was never filled. ``indexed`` is True if it has the unique index that REFRESH
    CONCURRENTLY requires."""

    name: str
    kind: str
    stamp: Stamp
    populated: bool = True
    indexed: bool = False

    @property
    def has_counters(self) -> bool:
        """Whether its stamp shows changes. A foreign table has no change counters."""
        return self.kind != FOREIGN


@dataclass(frozen=True)
class Catalogue:
    """One reading of the database catalogue, at ``time_s`` (Unix seconds). ``relations`` are the tables and
    views by name. ``below`` holds the direct dependencies of each. ``selects`` returns whether a view with a
    given name is an item. ``reset`` identifies the last reset of the change counters."""

    relations: Mapping[str, CatalogueRelation]
    below: Mapping[str, tuple[str, ...]]
    selects: Callable[[str], bool]
    reset: str = ""
    time_s: float = 0.0
    _reachable: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """The names of the items, in a sequence in which each view follows the views that it depends on."""
        chosen = [name for name, one in self.relations.items() if self._is_item(one)]
        order: dict[str, None] = {}
        for name in sorted(chosen):
            for each in (*sorted(self.upstream(name), key=lambda up: (len(self.upstream(up)), up)), name):
                order[each] = None
        return tuple(order)

    def upstream(self, view: str) -> frozenset[str]:
        """Return the names of the items that a view depends on, directly or through other views."""
        return frozenset(name for name in self._reach(view) if self._is_item(self.relations[name]))

    def parts(self, view: str) -> frozenset[str]:
        """Return the parts of a view: all tables and plain views that it depends on, at any depth."""
        return self._reach(view) - self.upstream(view)

    def direct(self, view: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return a tuple (parts, items): what the view depends on directly, not through another item. The
        parts may be reached through plain views. The items are the first ones on each way."""
        parts, items, waiting = set(), set(), list(self.below.get(view, ()))
        while waiting:
            name = waiting.pop()
            if name in parts or name in items or name not in self.relations:
                continue
            if self._is_item(self.relations[name]):
                items.add(name)
            else:
                parts.add(name)
                waiting += self._followed(name)
        return frozenset(parts), frozenset(items)

    def bases(self, view: str) -> tuple[str, ...]:
        """Return the parts of a view that contain rows: all except plain views and partitioned tables."""
        found = (name for name in self.parts(view) if self.relations[name].kind not in (PLAIN, PARTITIONED))
        return tuple(sorted(found))

    def pairs(self) -> list[tuple[str, str]]:
        return [(view, base) for view in self.views for base in self.bases(view)]

    def with_stamps(self, stamps: Mapping[str, Stamp]) -> Catalogue:
        """Return this catalogue with the stamps of an earlier reading. New relations get an invalid stamp."""
        then = {
            name: replace(one, stamp=stamps.get(name, Stamp(-1, -1))) for name, one in self.relations.items()
        }
        return Catalogue(then, self.below, self.selects, self.reset, self.time_s)

    def _is_item(self, relation: CatalogueRelation) -> bool:
        return relation.kind == MATERIALISED and self.selects(relation.name)

    def _followed(self, name: str) -> tuple[str, ...]:
        """Return the dependencies of a relation; none for a materialised view that is not an item."""
        relation = self.relations[name]
        if relation.kind == MATERIALISED and not self._is_item(relation):
            return ()
        return self.below.get(name, ())

    def _reach(self, view: str) -> frozenset[str]:
        if view not in self.relations:
            raise InputError(f"no view is called {view!r}")
        if view not in self._reachable:
            found: set[str] = set()
            waiting = list(self.below.get(view, ()))
            while waiting:
                name = waiting.pop()
                if name not in found and name in self.relations:
                    found.add(name)
                    waiting += self._followed(name)
            self._reachable[view] = frozenset(found)
        return self._reachable[view]


State: TypeAlias = Mapping[str, Stamp]
"""The stamp of each part of a view, by name. It identifies the content that the view was computed from."""


def state_after(view: str, seen: Catalogue, states: Mapping[str, State]) -> State:
    """Return the state of a view that was refreshed just after the reading ``seen``. ``states`` are those of
    the views that it depends on. If this source never refreshed one of them, its parts get no stamp."""
    parts, items = seen.direct(view)
    state = {name: seen.relations[name].stamp for name in parts}
    unknown: set[str] = set()
    for item in items:
        for name in seen.parts(item):
            now, then = seen.relations[name].stamp, states.get(item, {}).get(name)
            if then is None:
                unknown.add(name)
            elif then != now:
                state[name] = then
            else:
                state.setdefault(name, now)
    return {name: stamp for name, stamp in state.items() if name not in unknown}


def is_stale(view: str, seen: Catalogue, state: State | None) -> bool:
    """Return whether the tables and views below a view changed since its ``state``; True without a state."""
    if state is None or not seen.relations[view].populated:
        return True
    parts = seen.parts(view)
    return state.keys() != parts or any(seen.relations[name].stamp != state[name] for name in parts)


def is_known(view: str, seen: Catalogue, state: State | None) -> bool:
    """Return whether staleness can be observed: the view has a state, and all its parts have counters."""
    return state is not None and all(seen.relations[name].has_counters for name in seen.parts(view))


def rows_written(before: Stamp, now: Stamp) -> int | None:
    """Return how many database rows were written between two readings, or None if the counter was reset. The
    result is at least 1 if the file of the table was replaced (TRUNCATE).

    >>> [rows_written(Stamp(5, 1), now) for now in (Stamp(9, 1), Stamp(5, 2), Stamp(2, 1))]
    [4, 1, None]
    """
    if now.changes < before.changes:
        return None
    return max(now.changes - before.changes, int(now.version != before.version))
