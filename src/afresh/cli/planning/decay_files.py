"""Reads decay curves from a file: for each group, the share of copies that are right after some time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from afresh.tables.columns import Column
from afresh.values.errors import InputError

if TYPE_CHECKING:
    from afresh.model.decay import Decay
    from afresh.tables.reading import CheckedTable

COLUMNS = (
    Column("group", "text", what="group of items; one curve for all items without this column"),
    Column("elapsed", "number", required=True, minimum=0, what="units of time since the refresh"),
    Column("right", "number", required=True, minimum=0, maximum=1, what="share of copies still right"),
)


def read_decay_curves(path: str) -> dict[str, Decay]:
    """Return the curve of each group, linear between its points; "" is the group of a file without groups."""
    import numpy as np

    from afresh.model.decay import Empirical
    from afresh.tables.reading import read_table

    table = read_table(path, COLUMNS)
    groups = table.text("group").tolist() if "group" in table else [""] * table.rows
    elapsed, right = table.numbers("elapsed"), table.numbers("right")
    rows: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group or "", []).append(row)
    curves: dict[str, Decay] = {}
    for group, own in rows.items():
        order = np.array(own)[np.argsort(elapsed[own], kind="stable")]
        try:
            curves[group] = Empirical(elapsed[order], right[order], linear=True)
        except InputError:
            raise _fault(table, order.tolist()) from None
    return curves


def _fault(table: CheckedTable, order: list[int]) -> Exception:
    """Return the error for the first point of a curve that repeats a time or lies above an earlier point.
    ``order`` has the rows of the curve, by time."""
    elapsed, right = table.numbers("elapsed"), table.numbers("right")
    for before, row in pairwise(order):
        if elapsed[row] == elapsed[before]:
            return table.fault(row, "elapsed", f"is {elapsed[row]:g} twice for a group: give one row for it")
        if right[row] > right[before]:
            problem = f"is {right[row]:g}, more than {right[before]:g} at an earlier time: it must not rise"
            return table.fault(row, "right", problem)
    return InputError("has a curve that cannot be read", path=table.path)
