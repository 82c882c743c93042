"""What the catalogue of a database says of its views: what each stands on, in which order they are refreshed.

A materialised view stands on parts: tables, and plain views looked through on the way to them. A part that
is itself a materialised view among the items is looked through too, for its content is that of the tables
below it; one that is not among them is somebody else's to refresh, and counts like a table.
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
    """The state of a part: two looks that find the same stamp have seen the same content.

    ``changes`` counts rows inserted, updated and deleted, by committed and aborted transactions alike.
    ``version`` is that of the file that holds the table, which TRUNCATE and rewriting ALTERs replace; for a
    plain view that of its definition.
    """

    changes: int
    version: int


@dataclass(frozen=True, slots=True)
class CatalogueRelation:
    """A table or view. ``indexed``: has a unique index that allows a refresh beside its readers."""

    name: str
    kind: str
    stamp: Stamp
    populated: bool = True
    indexed: bool = False

    @property
    def watched(self) -> bool:
        """Whether its stamp tells of changes: a foreign table's does not."""
        return self.kind != FOREIGN


@dataclass(frozen=True)
class Catalogue:
    """Relations by name, and what each stands on directly; ``reset`` names the last reset of the counters."""

    relations: Mapping[str, CatalogueRelation]
    below: Mapping[str, tuple[str, ...]]
    selects: Callable[[str], bool]
    reset: str = ""
    time_s: float = 0.0
    _known: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """The names of the items, every view after those that it stands on."""
        chosen = [name for name, one in self.relations.items() if self._is_item(one)]
        order: dict[str, None] = {}
        for name in sorted(chosen):
            for each in (*sorted(self.upstream(name), key=lambda up: (len(self.upstream(up)), up)), name):
                order[each] = None
        return tuple(order)

    def upstream(self, view: str) -> frozenset[str]:
        """The items that a view stands on, at any depth."""
        return frozenset(name for name in self._reached(view) if self._is_item(self.relations[name]))

    def parts(self, view: str) -> frozenset[str]:
        """What decides the view's content: tables, and the plain views on the way, at any depth."""
        return self._reached(view) - self.upstream(view)

    def direct(self, view: str) -> tuple[frozenset[str], frozenset[str]]:
        """Parts reached without passing another item, and the items met on the way."""
        parts, items, waiting = set(), set(), list(self.below.get(view, ()))
        while waiting:
            name = waiting.pop()
            if name in parts or name in items or name not in self.relations:
                continue
            if self._is_item(self.relations[name]):
                items.add(name)
            else:
                parts.add(name)
                waiting += self._under(name)
        return frozenset(parts), frozenset(items)

    def bases(self, view: str) -> tuple[str, ...]:
        """The parts that change by themselves: all but plain views and partitioned tables."""
        found = (name for name in self.parts(view) if self.relations[name].kind not in (PLAIN, PARTITIONED))
        return tuple(sorted(found))

    def pairs(self) -> list[tuple[str, str]]:
        """The views and their bases, for rates."""
        return [(view, base) for view in self.views for base in self.bases(view)]

    def with_stamps(self, stamps: Mapping[str, Stamp]) -> Catalogue:
        """The same relations as an earlier look saw them; what is newer than it looks like no known state."""
        then = {
            name: replace(one, stamp=stamps.get(name, Stamp(-1, -1))) for name, one in self.relations.items()
        }
        return Catalogue(then, self.below, self.selects, self.reset, self.time_s)

    def _is_item(self, relation: CatalogueRelation) -> bool:
        return relation.kind == MATERIALISED and self.selects(relation.name)

    def _under(self, name: str) -> tuple[str, ...]:
        """What to look through: nothing below somebody else's materialised view."""
        relation = self.relations[name]
        if relation.kind == MATERIALISED and not self._is_item(relation):
            return ()
        return self.below.get(name, ())

    def _reached(self, view: str) -> frozenset[str]:
        if view not in self.relations:
            raise InputError(f"no view is called {view!r}")
        if view not in self._known:
            found: set[str] = set()
            waiting = list(self.below.get(view, ()))
            while waiting:
                name = waiting.pop()
                if name not in found and name in self.relations:
                    found.add(name)
                    waiting += self._under(name)
            self._known[view] = frozenset(found)
        return self._known[view]
