"""The ITEMS file of ``plan`` and ``budget``: numbers held in arrays, names read again when they are written.

Names are the bulk of a file of ten million rows, so they are never all in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from afresh.cli.decay_column import check_decays
from afresh.cli.view_pairs import ViewPairs
from afresh.rates.views import ViewGraph
from afresh.tables.columns import Column
from afresh.tables.input_file import InputFile
from afresh.tables.reading import CheckedTable, read_table, scan_table
from afresh.values.arrays import Floats, Ints
from afresh.values.errors import InputError, UsageError, did_you_mean

ITEM = Column("item", "text", required=True, what="the item's name")
NUMBERS = (
    Column("rate", "number", required=True, minimum=0, what="changes per unit of time"),
    Column("weight", "number", default=1.0, minimum=0, what="importance"),
    Column("cost", "number", default=1.0, above=0, what="cost of one refresh"),
    Column("update_cost", "number", default=0.0, minimum=0, what="further cost when a change is found"),
    Column("min_frequency", "number", default=0.0, minimum=0, what="refreshes per unit of time"),
    Column("max_frequency", "number", default=np.inf, minimum=0, finite=False, what="refreshes per unit"),
)
UNCERTAIN = (
    Column("low", "number", default=np.nan, minimum=0, what="lower end of what the rate may be"),
    Column("level", "number", default=0.9, above=0, maximum=0.999999, what="probability of low to high"),
    Column("for_interval", "number", default=np.nan, above=0, what="mean interval that the rate is made for"),
)
POLLS = Column("polls", "number", default=np.inf, minimum=0, finite=False, what="how many told the rate")
DECAY = Column("decay", "text", default="exponential", what="decay function")
GROUP = Column("group", "text", what="group that a cap limits")
CAPS = (Column("group", "text", required=True), Column("cap", "number", required=True, minimum=0))

# Column of the file → argument of ``allocate``.
_ARGUMENTS = {
    "weight": "weights",
    "cost": "costs",
    "update_cost": "update_costs",
    "min_frequency": "lower",
    "max_frequency": "upper",
}


@dataclass(frozen=True, slots=True)
class Items:
    """What a plan is made for: rates, and the other arguments of ``allocate`` that the file gives."""

    rates: Floats
    options: Mapping[str, Any]
    names: Callable[[], Iterator[pa.Array]]
    rows: int  # of ITEMS, which "per item" multiplies by; with views more or less than what is planned
    shape: Floats | None = None  # of the Gamma that says how uncertain each rate is, where it was estimated
    polls: Floats | float = np.inf  # how many told each rate

    @property
    def count(self) -> int:
        """How many are planned."""
        return len(self.rates)

    def at_budget(self, budget: float) -> Items:
        """The items with the rates to plan with where rates are uncertain, at the plan's mean interval."""
        if self.shape is None or not budget > 0:
            return self
        from afresh.rates.planning_rate import uncertain_rate

        costs = self.options.get("costs")
        every = float(self.count if costs is None else np.sum(costs, dtype=np.float64)) / budget
        return replace(self, rates=uncertain_rate(self.rates, self.shape, self.polls, every))


def options_of(options: Mapping[str, Any], part: slice) -> dict[str, Any]:
    """Arguments of ``allocate`` for some of the items: what has a value for each is cut, the rest kept."""
    return {name: value if isinstance(value, str | dict) else value[part] for name, value in options.items()}


def read_items(
    source: InputFile,
    *,
    caps: str | None = None,
    views: str | None = None,
    on_read: Callable[[float], None] | None = None,
) -> Items:
    """The items of a file, checked. ``on_read`` hears which share of the file has been read."""
    if views is not None:
        return _read_views(source, views, caps)
    columns = [ITEM, *NUMBERS, *UNCERTAIN, POLLS, DECAY, *([GROUP] if caps else [])]
    parts: dict[str, list[Any]] = {}
    given: frozenset[str] = frozenset()
    for batch in scan_table(source, columns, unique="item"):
        given |= batch.given
        check_decays(batch)
        _check_bounds(batch)
        _check_level(batch, parts.get("level"))
        for column in columns[1:]:
            parts.setdefault(column.name, []).append(_values(batch, column))
        if on_read:
            on_read(batch.share)
    rates = np.concatenate(parts["rate"])
    items = Items(
        rates=rates,
        rows=len(rates),
        options={
            argument: np.concatenate(parts[name]) for name, argument in _ARGUMENTS.items() if name in given
        },
        names=lambda: (batch.text("item") for batch in scan_table(source, [ITEM])),
    )
    if "decay" in given:
        items = _with(items, decay=_joined(parts["decay"]).to_pylist())
    if "low" in given:
        told = (np.concatenate(parts[column.name]) for column in UNCERTAIN)
        items = replace(items, shape=_shape(rates, *told), polls=np.concatenate(parts["polls"]))
    return items if caps is None else _with_caps(items, source.name, given, parts, caps)


def _check_bounds(table: CheckedTable) -> None:
    low, high = table.numbers("min_frequency"), table.numbers("max_frequency")
    if (low > high).any():
        row = int((low > high).argmax())
        raise table.fault(row, "min_frequency", f"is {low[row]:g}, above the max_frequency of {high[row]:g}")


def _check_level(table: CheckedTable, before: list[Any] | None) -> None:
    """One file has one level, which ``low`` is read by."""
    levels = table.numbers("level")
    wrong = np.flatnonzero(levels != (before[0] if before else levels)[:1])
    if wrong.size:
        row = int(wrong[0])
        raise table.fault(row, "level", f"is {levels[row]:g}, another than above: one file has one level")


def _shape(rates: Floats, low: Floats, level: Floats, for_interval: Floats) -> Floats:
    """How uncertain rates are; those without ``low``, or made for a plan's interval, are taken as told."""
    from afresh.rates.planning_rate import posterior_shape

    said = np.isnan(low) | ~np.isnan(for_interval)
    return posterior_shape(rates, np.where(said, rates, low), float(level[0]) if level.size else 0.9)


def _with(items: Items, **more: Any) -> Items:
    return replace(items, options={**items.options, **more})


def _values(batch: CheckedTable, column: Column) -> Any:
    if column.kind == "text":
        return _codes(batch.text(column.name))
    # What the file does not have takes no memory: with 1e8 items it would be most of it.
    return (
        batch.numbers(column.name)
        if column.name in batch
        else np.broadcast_to(column.empty_value, batch.rows)
    )


def _codes(texts: pa.Array) -> pa.Array:
    return texts.dictionary_encode()


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return pa.chunked_array(parts).unify_dictionaries().combine_chunks()


def _with_caps(
    items: Items, path: str, given: frozenset[str], parts: Mapping[str, list[Any]], caps: str
) -> Items:
    if "group" not in given:
        raise UsageError(f"--caps needs a column 'group' in {path}")
    encoded = _joined(parts["group"])
    labels = encoded.dictionary.to_pylist()
    codes: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return _with(items, groups=np.array(labels, dtype=object)[codes], caps=read_caps(caps, labels, path))


def read_caps(caps: str, labels: list[str], path: str) -> dict[str, float]:
    """The caps in a file by group; each must be one of the ``labels`` that items in ``path`` have."""
    table = read_table(caps, CAPS, unique="group")
    names = table.text("group").to_pylist()
    known = set(labels)
    wrong = next((index for index, name in enumerate(names) if name not in known), None)
    if wrong is not None:
        hint = did_you_mean(names[wrong], labels)
        raise table.fault(wrong, "group", f"{names[wrong]!r} is the group of no item in {path}{hint}")
    return dict(zip(names, table.numbers("cap").tolist(), strict=True))


def _read_views(source: InputFile, views: str, caps: str | None) -> Items:
    """Views instead of items: what is refreshed is the view, at the rate of its distinct bases together.

    A view's own weight, costs and bounds come from its row in ITEMS, if it has one, where the rate is
    left empty. Bases are read, not refreshed, and get no row; other items are planned as ever.
    """
    rate = replace(NUMBERS[0], required=False, default=np.nan)
    table = read_table(source, [ITEM, rate, *NUMBERS[1:], *UNCERTAIN, POLLS, DECAY, GROUP], unique="item")
    if "rate" not in table:
        raise InputError("has no column 'rate': the base items need one", path=source.name)
    check_decays(table)
    _check_bounds(table)
    _check_level(table, None)
    names = table.text("item").to_pylist()
    rates = table.numbers("rate")
    pairs = ViewPairs.read(views)
    is_view = set(pairs.graph.views)
    for index, name in enumerate(names):
        if name in is_view and not np.isnan(rates[index]):
            raise table.fault(index, "rate", f"{name!r} is a view: leave its rate empty, its bases give it")
        if name not in is_view and np.isnan(rates[index]):
            raise table.fault(index, "rate", f"is empty: must be {NUMBERS[0].requirement}")
    known = {name: float(value) for name, value in zip(names, rates, strict=True) if name not in is_view}
    pairs.refuse_unknown(known)
    of_view = dict(zip(pairs.graph.views, pairs.graph.rates(known), strict=True))
    items = _views_and_others(table, names, known, of_view, set(pairs.graph.bases), caps)
    if "low" not in table:
        return items
    shape = _shape(np.nan_to_num(rates), *(table.numbers(column.name) for column in UNCERTAIN))
    variance = _summed(names, np.nan_to_num(rates**2 / shape), pairs.graph)
    unsure = np.full(variance.shape, np.inf)
    np.divide(items.rates**2, variance, out=unsure, where=variance > 0)
    return replace(items, shape=unsure, polls=_summed(names, table.numbers("polls"), pairs.graph))


def _summed(names: list[str], values: Floats, graph: ViewGraph) -> Floats:
    """The sum over the distinct bases of each view; other items follow the views as they are.

    Of variances rate²/shape that is a view's own; of polls, how many there were.
    """
    of_item = dict(zip(names, values.tolist(), strict=True))
    below = set(graph.views) | set(graph.bases)
    return np.append(graph.rates(of_item), [value for name, value in of_item.items() if name not in below])


def _views_and_others(
    table: CheckedTable,
    names: list[str],
    known: Mapping[str, float],
    of_view: Mapping[str, float],
    is_base: set[str],
    caps: str | None,
) -> Items:
    row = {name: index for index, name in enumerate(names)}
    chosen = [*of_view, *(name for name in known if name not in is_base)]
    rows = np.array([row.get(name, -1) for name in chosen], dtype=np.int64)
    options: dict[str, Any] = {}
    for column in NUMBERS[1:]:
        if column.name in table:
            options[_ARGUMENTS[column.name]] = np.append(table.numbers(column.name), column.empty_value)[rows]
    if "decay" in table:
        options["decay"] = [([*table.text("decay").to_pylist(), DECAY.empty_value])[index] for index in rows]
    rates = np.array([of_view.get(name, known.get(name, 0.0)) for name in chosen])
    items = Items(rates, options, lambda: iter([pa.array(chosen, pa.large_string())]), table.rows)
    if caps is None:
        return items
    groups = pa.array([*table.text("group").to_pylist(), ""], pa.large_string()).take(
        pa.array(rows % (len(names) + 1))
    )
    return _with_caps(items, table.path, table.given, {"group": [_codes(groups)]}, caps)
