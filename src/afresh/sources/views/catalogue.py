"""What the catalogue of a database says about its views: what each depends on, and the order of refreshes.

A materialised view depends on parts: tables, and the plain views between it and them. A dependency that is
itself a materialised view and an item is followed further down, because its content is that of the tables
below it. One that is not an item is refreshed by somebody else, and counts like a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

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
        """Return all pairs of a view and one of its bases."""
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
