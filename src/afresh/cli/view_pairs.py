"""The file of ``--views``: pairs (view, base), every wrong one named by its row."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from afresh.rates.views import ViewGraph
from afresh.tables.columns import Column
from afresh.tables.reading import CheckedTable, read_table
from afresh.values.errors import InputError, did_you_mean

VIEWS = (Column("view", "text", required=True), Column("base", "text", required=True))


@dataclass(frozen=True, slots=True)
class ViewPairs:
    """The pairs, row by row, and the graph they make, in which no view stands on itself."""

    table: CheckedTable
    view: list[str]
    base: list[str]
    graph: ViewGraph

    @classmethod
    def read(cls, path: str) -> ViewPairs:
        """The pairs of a file; the row that closes a circle is named."""
        table = read_table(path, VIEWS)
        view, base = table.text("view").to_pylist(), table.text("base").to_pylist()
        try:
            return cls(table, view, base, ViewGraph.of(view, base))
        except InputError as error:
            raise table.fault(_closing(view, base), "base", error.problem) from None

    def refuse_unknown(self, items: Collection[str]) -> None:
        """Refuse a base that is neither one of the ``items`` nor a view."""
        known = {*items, *self.graph.views}
        for row, name in enumerate(self.base):
            if name not in known:
                hint = did_you_mean(name, known)
                raise self.table.fault(row, "base", f"is {name!r}, which is neither an item nor a view{hint}")

    def refuse_polled(self, items: Collection[str]) -> None:
        """Refuse a view with the name of one of the ``items``, which has a rate of its own."""
        polled = set(items)
        for row, name in enumerate(self.view):
            if name in polled:
                problem = f"{name!r} is a view and was polled itself: give the view another name"
                raise self.table.fault(row, "view", problem)


def _closing(view: list[str], base: list[str]) -> int:
    """The first row with which the pairs so far make a circle, by halving."""
    low, high = 0, len(view)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            ViewGraph.of(view[:middle], base[:middle])
            low = middle
        except InputError:
            high = middle
    return low
