"""What the catalogue of a database says about its views: their dependencies and their staleness; pure.

A materialised view depends on parts: tables, and the plain views between it and them. A dependency that is
itself a materialised view and an item is followed further down, because its content is that of the tables
below it. One that is not an item is refreshed by somebody else, and counts like a table.

The state of a view is a stamp for each of its parts. For parts reached directly it is their stamp just before
the last refresh. For parts reached through another materialised view it is the stamp in the state of that
view, because that content was copied. If a part is reached on several ways that disagree, the older stamp
counts, because some of the view's content is that old. A view is stale if the stamps of its parts differ from
its state. Rows written while a refresh runs make it stale: that may cause a refresh too many, but never hides
a change.
"""

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
    """The state of a part: two readings with the same stamp have seen the same content.

    ``changes`` counts rows inserted, updated and deleted, by committed and aborted transactions alike.
    ``version`` identifies the file of the table, which TRUNCATE and rewriting ALTERs replace; for a plain
    view it identifies the definition.
    """

    changes: int
    version: int


@dataclass(frozen=True, slots=True)
class CatalogueRelation:
    """A table or view. ``indexed``: it has a unique index that allows a refresh while others read."""

    name: str
    kind: str
    stamp: Stamp
    populated: bool = True
    indexed: bool = False

    @property
    def watched(self) -> bool:
        """Whether its stamp shows changes; that of a foreign table does not."""
        return self.kind != FOREIGN


@dataclass(frozen=True)
class Catalogue:
    """Relations by name, what each depends on directly, and ``reset``: when the counters were last reset."""

    relations: Mapping[str, CatalogueRelation]
    below: Mapping[str, tuple[str, ...]]
    selects: Callable[[str], bool]
    reset: str = ""
    time_s: float = 0.0
    _reachable: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """The names of the items, every view after those that it depends on."""
        chosen = [name for name, one in self.relations.items() if self._is_item(one)]
        order: dict[str, None] = {}
        for name in sorted(chosen):
            for each in (*sorted(self.upstream(name), key=lambda up: (len(self.upstream(up)), up)), name):
                order[each] = None
        return tuple(order)

    def upstream(self, view: str) -> frozenset[str]:
        """Return the items that a view depends on, at any depth."""
        return frozenset(name for name in self._reach(view) if self._is_item(self.relations[name]))

    def parts(self, view: str) -> frozenset[str]:
        """Return what determines the content: tables and the plain views in between, at any depth."""
        return self._reach(view) - self.upstream(view)

    def direct(self, view: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the parts reached without passing another item, and the items met on the way."""
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
        """Return the parts that have changes of their own: all but plain views and partitioned tables."""
        found = (name for name in self.parts(view) if self.relations[name].kind not in (PLAIN, PARTITIONED))
        return tuple(sorted(found))

    def pairs(self) -> list[tuple[str, str]]:
        return [(view, base) for view in self.views for base in self.bases(view)]

    def with_stamps(self, stamps: Mapping[str, Stamp]) -> Catalogue:
        """Return the catalogue with the stamps of an earlier reading; newer relations get none of these."""
        then = {
            name: replace(one, stamp=stamps.get(name, Stamp(-1, -1))) for name, one in self.relations.items()
        }
        return Catalogue(then, self.below, self.selects, self.reset, self.time_s)

    def _is_item(self, relation: CatalogueRelation) -> bool:
        return relation.kind == MATERIALISED and self.selects(relation.name)

    def _followed(self, name: str) -> tuple[str, ...]:
        """Return what to follow further: nothing below a materialised view that is not an item."""
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


def state_after(view: str, seen: Catalogue, states: Mapping[str, State]) -> State:
    """Return the state of a view refreshed just after ``seen``, from the states of the views below it. A view
    below that was never refreshed by us has no state; its parts then have no stamp here."""
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
    """Tell whether anything below the view changed or is new since its state; without a state it did."""
    if state is None or not seen.relations[view].populated:
        return True
    parts = seen.parts(view)
    return state.keys() != parts or any(seen.relations[name].stamp != state[name] for name in parts)


def is_known(view: str, seen: Catalogue, state: State | None) -> bool:
    """Tell whether staleness can be observed: the view has a state, and all its parts are watched."""
    return state is not None and all(seen.relations[name].watched for name in seen.parts(view))


def rows_written(before: Stamp, now: Stamp) -> int | None:
    """Return how many rows were written between two readings, None if the counter was reset in between.

    A table whose file was replaced (TRUNCATE) counts as at least one row.

    >>> [rows_written(Stamp(5, 1), now) for now in (Stamp(9, 1), Stamp(5, 2), Stamp(2, 1))]
    [4, 1, None]
    """
    if now.changes < before.changes:
        return None
    return max(now.changes - before.changes, int(now.version != before.version))
