"""Reads the files of ``plan`` and ``budget`` (ITEMS, ``--caps``, ``--views``) as arguments of ``allocate``.

The names of items are the largest part of a file of ten million rows, so they are never all in memory. They
are read again when the plan is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from afresh.cli.planning.view_lags import ViewLags, read_view_lags
from afresh.model.decay import decay_from
from afresh.rates.views import ViewGraph
from afresh.tables.cells import first_failing
from afresh.tables.columns import Column
from afresh.tables.input_file import InputFile
from afresh.tables.reading import CheckedTable, read_table, scan_table
from afresh.tables.text_columns import Texts, as_texts, join_encoded
from afresh.values.arrays import Floats
from afresh.values.errors import AfreshError, InputError, UsageError, did_you_mean

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
VIEWS = (
    Column("view", "text", required=True),
    Column("base", "text", required=True),
    Column("target_lag", "text", what="longest lag of the view, such as 15m"),
)
# Column of the file → argument of ``allocate``.
_ARGUMENTS = {"weight": "weights", "cost": "costs", "update_cost": "update_costs"}
_ARGUMENTS |= {"min_frequency": "lower", "max_frequency": "upper"}


@dataclass(frozen=True, slots=True)
class PlannedItems:
    """The items of a plan: their rates, the other arguments of ``allocate`` from the file (``options``), and
    a function that reads their names again, in batches (``names``)."""

    rates: Floats
    options: Mapping[str, Any]
    names: Callable[[], Iterator[Texts]]
    rows: int  # of ITEMS, for budgets per item; with views it differs from the number of planned items
    shape: Floats | None = None  # of the gamma distribution of each rate, if the rates were estimated
    polls: Floats | float = np.inf  # how many polls each estimated rate comes from
    lags: ViewLags | None = None  # the target lags of the views, which are the first items

    @property
    def count(self) -> int:
        return len(self.rates)

    def at_budget(self, budget: float) -> PlannedItems:
        """Return the items with every estimated rate replaced by the rate with which to plan.

        That rate depends on how uncertain the estimate is and on the mean polling interval, which follows
        from ``budget``; see ``uncertain_rate``."""
        if self.shape is None or not budget > 0:
            return self
        from afresh.rates.estimator import uncertain_rate

        costs = self.options.get("costs")
        interval = float(self.count if costs is None else np.sum(costs, dtype=np.float64)) / budget
        return replace(self, rates=uncertain_rate(self.rates, self.shape, self.polls, interval))


def slice_options(options: Mapping[str, Any], part: slice) -> dict[str, Any]:
    """Return the arguments of ``allocate`` for a part of the items: arrays are sliced, other values stay."""
    return {name: value if isinstance(value, str | dict) else value[part] for name, value in options.items()}


def read_items(
    source: InputFile,
    *,
    caps: str | None = None,
    views: str | None = None,
    on_read: Callable[[float], None] | None = None,
) -> PlannedItems:
    """Read and check the items of a file, and the files ``caps`` and ``views`` if given. ``on_read`` is
    called with the share (0 to 1) of the file that has been read."""
    if views is not None:
        return _read_views(source, views, caps)
    columns = [ITEM, *NUMBERS, *UNCERTAIN, POLLS, DECAY, *([GROUP] if caps else [])]
    parts: dict[str, list[Any]] = {}
    given: frozenset[str] = frozenset()
    for batch in scan_table(source, columns, unique="item"):
        given |= batch.given
        _check_items(batch, parts.get("level"))
        for column in columns[1:]:
            parts.setdefault(column.name, []).append(_values(batch, column))
        if on_read:
            on_read(batch.share)
    rates = np.concatenate(parts["rate"])
    items = PlannedItems(
        rates=rates,
        rows=len(rates),
        options=_without_zero_update_costs(
            {argument: np.concatenate(parts[name]) for name, argument in _ARGUMENTS.items() if name in given}
        ),
        names=lambda: (batch.text("item") for batch in scan_table(source, [ITEM])),
    )
    if "decay" in given:
        items = _with_options(items, decay=join_encoded(parts["decay"]).decode().tolist())
    if "low" in given:
        told = (np.concatenate(parts[column.name]) for column in UNCERTAIN)
        items = replace(items, shape=_shape(rates, *told), polls=np.concatenate(parts["polls"]))
    return items if caps is None else _with_caps(items, source.name, given, parts, caps)


def _without_zero_update_costs(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options without update costs that are all 0: they cost nothing, and most objectives and
    decays refuse update costs."""
    if "update_costs" in options and not np.any(options["update_costs"]):
        options = {name: value for name, value in options.items() if name != "update_costs"}
    return options


def _check_items(table: CheckedTable, levels_before: list[Any] | None = None) -> None:
    """Raise ``InputError`` if a decay function is unknown, if min_frequency is above max_frequency, or if the
    column ``level`` has two values. ``levels_before`` are the levels of earlier batches of the file."""
    check_decays(table)
    low, high = table.numbers("min_frequency"), table.numbers("max_frequency")
    if (low > high).any():
        row = int((low > high).argmax())
        raise table.fault(row, "min_frequency", f"is {low[row]:g}, above the max_frequency of {high[row]:g}")
    levels = table.numbers("level")
    wrong = np.flatnonzero(levels != (levels_before[0] if levels_before else levels)[:1])
    if wrong.size:
        row = int(wrong[0])
        raise table.fault(row, "level", f"is {levels[row]:g}, another than above: one file has one level")


def _shape(rates: Floats, low: Floats, level: Floats, for_interval: Floats) -> Floats:
    """Return the shape of each rate's gamma distribution. It is infinite, for an exact rate, if ``low`` is
    missing or ``for_interval`` is given, because such a rate is planned with as it is."""
    from afresh.rates.estimator import posterior_shape

    certain = np.isnan(low) | ~np.isnan(for_interval)
    return posterior_shape(rates, np.where(certain, rates, low), float(level[0]) if level.size else 0.9)


def _with_options(items: PlannedItems, **more: Any) -> PlannedItems:
    return replace(items, options={**items.options, **more})


def _values(batch: CheckedTable, column: Column) -> Any:
    if column.kind == "text":
        return batch.text(column.name).encode()
    # A column that is not in the file uses no memory this way, which matters with 1e8 items.
    if column.name in batch:
        return batch.numbers(column.name)
    return np.broadcast_to(column.empty_value, batch.rows)


def _with_caps(
    items: PlannedItems, path: str, given: frozenset[str], parts: Mapping[str, list[Any]], caps: str
) -> PlannedItems:
    if "group" not in given:
        raise UsageError(f"--caps needs a column 'group' in {path}")
    encoded = join_encoded(parts["group"])
    labels = encoded.labels.tolist()
    groups = np.array(labels, dtype=object)[encoded.code]
    return _with_options(items, groups=groups, caps=read_caps(caps, labels, path))


def read_caps(caps: str, labels: list[str], path: str) -> dict[str, float]:
    """Return the caps of groups in the file ``caps``. ``labels`` are all groups of the items in ``path``."""
    table = read_table(caps, CAPS, unique="group")
    names = table.text("group").tolist()
    known = set(labels)
    wrong = next((index for index, name in enumerate(names) if name not in known), None)
    if wrong is not None:
        hint = did_you_mean(names[wrong], labels)
        raise table.fault(wrong, "group", f"{names[wrong]!r} is the group of no item in {path}{hint}")
    return dict(zip(names, table.numbers("cap").tolist(), strict=True))


def _read_views(source: InputFile, views: str, caps: str | None) -> PlannedItems:
    """Read ITEMS with the views of the file ``views``. A view is refreshed instead of its bases.

    The rate of a view is the sum of the rates of its distinct bases. Its weight, costs and bounds come from
    its row in ITEMS, if there is one, where the rate must be empty. Bases are not refreshed and have no row
    in the plan. Other items are planned as usual."""
    rate = replace(NUMBERS[0], required=False, default=np.nan)
    table = read_table(source, [ITEM, rate, *NUMBERS[1:], *UNCERTAIN, POLLS, DECAY, GROUP], unique="item")
    if "rate" not in table:
        raise InputError("has no column 'rate': the base items need one", path=source.name)
    _check_items(table)
    names = table.text("item").tolist()
    rates = table.numbers("rate")
    pairs = ViewPairs.read(views)
    is_view = set(pairs.graph.views)
    for index, name in enumerate(names):
        if name in is_view and not np.isnan(rates[index]):
            raise table.fault(index, "rate", f"{name!r} is a view: leave its rate empty, its bases give it")
        if name not in is_view and np.isnan(rates[index]):
            raise table.fault(index, "rate", f"is empty: must be {NUMBERS[0].requirement}")
    known = {name: float(value) for name, value in zip(names, rates, strict=True) if name not in is_view}
    pairs.refuse_unknown_bases(known)
    of_view = dict(zip(pairs.graph.views, pairs.graph.rates(known), strict=True))
    items = _views_and_others(table, names, known, of_view, set(pairs.graph.bases), caps)
    items = replace(items, lags=read_view_lags(pairs.table, pairs.graph))
    if "low" not in table:
        return items
    shape = _shape(np.nan_to_num(rates), *(table.numbers(column.name) for column in UNCERTAIN))
    variance = _sum_over_bases(names, np.nan_to_num(rates**2 / shape), pairs.graph)
    view_shape = np.full(variance.shape, np.inf)
    np.divide(items.rates**2, variance, out=view_shape, where=variance > 0)
    return replace(items, shape=view_shape, polls=_sum_over_bases(names, table.numbers("polls"), pairs.graph))


def _sum_over_bases(names: list[str], values: Floats, graph: ViewGraph) -> Floats:
    """Return one array: for each view the sum of ``values`` over its distinct bases, then the values of the
    items that are neither view nor base. ``values`` belong to ``names`` one by one."""
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
) -> PlannedItems:
    row = {name: index for index, name in enumerate(names)}
    chosen = [*of_view, *(name for name in known if name not in is_base)]
    rows = np.array([row.get(name, -1) for name in chosen], dtype=np.int64)
    options: dict[str, Any] = {}
    for column in NUMBERS[1:]:
        if column.name in table:
            options[_ARGUMENTS[column.name]] = np.append(table.numbers(column.name), column.empty_value)[rows]
    if "decay" in table:
        options["decay"] = [([*table.text("decay").tolist(), DECAY.empty_value])[index] for index in rows]
    rates = np.array([of_view.get(name, known.get(name, 0.0)) for name in chosen])
    items = PlannedItems(rates, options, lambda: iter([as_texts(chosen)]), table.rows)
    if caps is None:
        return items
    groups = as_texts([*table.text("group").tolist(), ""]).take(rows % (len(names) + 1))
    return _with_caps(items, table.path, table.given, {"group": [groups.encode()]}, caps)


def check_decays(table: CheckedTable) -> None:
    """Raise ``InputError`` for the first cell of the column ``decay`` that names no known decay function."""
    encoded = table.text("decay").encode()
    for code, spec in enumerate(encoded.labels):
        try:
            if spec:
                decay_from(spec, np.ones(1))
        except AfreshError as error:
            row = int(np.argmax(encoded.code == code))
            raise table.fault(row, "decay", str(error)) from None


@dataclass(frozen=True, slots=True)
class ViewPairs:
    """The rows (view, base) of the ``--views`` file, and their graph, in which no view depends on itself."""

    table: CheckedTable
    view: list[str]
    base: list[str]
    graph: ViewGraph

    @classmethod
    def read(cls, path: str) -> ViewPairs:
        """Read the rows of a file; raise ``InputError`` for a row that closes a circle of views."""
        table = read_table(path, VIEWS)
        view, base = table.text("view").tolist(), table.text("base").tolist()
        try:
            return cls(table, view, base, ViewGraph.of(view, base))
        except InputError as error:
            # The first row that closes a circle of views with the rows before it.
            row = first_failing(len(view), lambda _, end: ViewGraph.of(view[:end], base[:end]), InputError)
            raise table.fault(row, "base", error.problem) from None

    def refuse_unknown_bases(self, items: Collection[str]) -> None:
        """Raise ``InputError`` if a base is neither one of the ``items`` nor a view."""
        known = {*items, *self.graph.views}
        for row, name in enumerate(self.base):
            if name not in known:
                hint = did_you_mean(name, known)
                raise self.table.fault(row, "base", f"is {name!r}, which is neither an item nor a view{hint}")

    def refuse_polled_views(self, items: Collection[str]) -> None:
        """Raise ``InputError`` if a view has the same name as one of the polled ``items``."""
        polled = set(items)
        for row, name in enumerate(self.view):
            if name in polled:
                problem = f"{name!r} is a view and was polled itself: give the view another name"
                raise self.table.fault(row, "view", problem)
