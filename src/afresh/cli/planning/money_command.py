"""``afresh money`` finds the interval at which each item earns the most, and the items that never pay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from typer import Option

from afresh.cli.files import check_files, choose_output
from afresh.cli.options import AsJson, ItemsFile, Output, Plot, Unit, with_option_groups
from afresh.cli.summary import format_number, print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Column
from afresh.values.errors import InputError, UsageError
from afresh.values.units import UNIT_NAMES, parse_duration, parse_rate, unit_seconds

if TYPE_CHECKING:
    from afresh.money.best_interval import Incomes
    from afresh.tables.reading import CheckedTable

COLUMNS = (
    Column("item", "text", what="the item's name; the group's name if only the column group is given"),
    Column("rate", "number", required=True, minimum=0, what="changes per unit of time"),
    Column("decay", "text", what="decay function"),
    Column("benefit", "number", minimum=0, what="earned per record and unit of time while right"),
    Column("cost", "number", minimum=0, what="cost of one refresh"),
    Column("update_cost", "number", minimum=0, what="further cost per record found changed"),
    Column("stale_cost", "number", minimum=0, what="cost per record and unit of time while wrong"),
    Column("size", "number", above=0, what="records refreshed together"),
    Column("bulk", "text", what="bulk with one interval"),
    Column("group", "text", what="group whose curve in --decays applies"),
    Column("count", "number", minimum=0, what="how many items the row stands for"),
    Column("today", "number", above=0, what="units of time between refreshes today, for --compare"),
)
Rows: TypeAlias = list[tuple[str, str]]
_DEFAULTS = {"update_cost": 0.0, "stale_cost": 0.0, "size": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyOptions:
    """The options of ``afresh money``."""

    items: ItemsFile
    benefit: Annotated[float | None, Option(help="Benefit per record and unit of time while right.")] = None
    cost: Annotated[float | None, Option(help="Cost of one refresh.")] = None
    update_cost: Annotated[float | None, Option(help="Further cost per record found changed.")] = None
    stale_cost: Annotated[float | None, Option(help="Cost per record and unit of time while wrong.")] = None
    decay: Annotated[
        str, Option(metavar="NAME", help="exponential, linear, geometric, weibull:K, gamma:K or lomax:A.")
    ] = "exponential"
    decays: Annotated[
        str | None, Option(metavar="FILE", help="Decay curves: columns group, elapsed, right.")
    ] = None
    size: Annotated[float | None, Option(help="Records refreshed together.")] = None
    cost_of_size: Annotated[
        str, Option(metavar="NAME", help="Cost grows with size: constant, sqrt or linear.")
    ] = "constant"
    interval: Annotated[
        str | None, Option(metavar="6h", help="Ask which benefit makes this interval the best.")
    ] = None
    compare: Annotated[
        bool, Option("--compare", help="Compare with today's intervals, and with one interval for all.")
    ] = False
    today: Annotated[
        str | None, Option(metavar="7d", help="Today's interval, where the column today is empty.")
    ] = None
    refreshes: Annotated[
        str | None, Option(metavar="270/d", help="Compare with at most so many refreshes of all items.")
    ] = None
    sweep: Annotated[
        str | None,
        Option(metavar="FILE", help="Write the comparison for a hundredth to 100 times the benefit."),
    ] = None
    unit: Unit = "d"
    output: Output = None
    as_json: AsJson = False
    plot: Plot = None

    def check(self) -> None:
        """Raise ``UsageError`` if options do not go together. This is called before any file is read."""
        check_files([self.items, self.decays], self.output, self.plot, as_json=self.as_json)
        check_files([self.items, self.decays, self.output], self.sweep)
        if self.today is not None and not parse_duration(self.today) > 0:
            raise UsageError(f"--today is {self.today}: must be above 0")
        if self.interval is not None and self.benefit is not None:
            raise UsageError("--interval asks for the benefit: leave out --benefit")
        if self.interval is not None and self.compare:
            raise UsageError("--interval asks for the benefit, --compare needs it: leave out one of them")
        for name in ("today", "refreshes", "sweep", "plot"):
            if getattr(self, name) is not None and not self.compare:
                raise UsageError(f"--{name} goes with --compare")


@with_option_groups
def money(options: MoneyOptions) -> None:
    """Find the interval at which refreshing each item earns the most, and the items that are futile.

    ITEMS has the columns item, rate and optionally decay, benefit, cost, update_cost, stale_cost, size, bulk,
    group, count, today. The options of the same names are used for missing columns and empty cells. The
    output has the columns item, interval, frequency, freshness, net_income, status, break_even.
    """
    unit_s = unit_seconds(options.unit)
    from afresh.tables.reading import read_table

    options.check()
    table = read_table(options.items, COLUMNS)
    names = item_names(table)
    flags = {name: getattr(options, name) for name in ("cost", "update_cost", "stale_cost", "size")}
    if options.interval is None:
        flags["benefit"] = options.benefit
    given = {name: _fill_column(table, name, flag) for name, flag in flags.items()}
    given |= {"decay": _read_decays(table, options), "cost_of_size": options.cost_of_size}
    target = choose_output(options.output, as_json=options.as_json)
    if options.interval is None:
        summary, rows = _find_intervals(table, names, given, target, options)
        title = "intervals of the highest net income"
    elif (seconds := parse_duration(options.interval)) > 0:
        summary, rows = _find_benefits(table, names, given, target, seconds / unit_s, options.unit)
        title = "benefit that makes the interval the best"
    else:
        raise UsageError(f"--interval is {options.interval}: must be above 0")
    if options.as_json:
        print_json(summary | {"unit": options.unit})
    else:
        print_summary(title, rows)


def item_names(table: CheckedTable) -> list[str]:
    """Return the name of each row: its item, or its group if the table has no column 'item', as the output of
    ``afresh estimate --cohorts`` has none. Raise ``InputError`` for a name that is empty or repeated."""
    column = "item" if "item" in table else "group"
    if column not in table:
        raise InputError("has no column 'item': name the rows", path=table.path)
    names = [str(name or "") for name in table.text(column).tolist()]
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if not name:
            raise table.fault(row, column, "is empty: give every row a name")
        if (before := first.setdefault(name, row)) != row:
            raise table.fault(row, column, f"is {name!r}, as in row {before + 1}: give each name once")
    return names


def _fill_column(table: CheckedTable, name: str, flag: float | None) -> Any:
    """Return a column of the table, with ``flag`` (the option's value) in empty cells. If the table has no
    such column, all cells have the option's value or its default."""
    import numpy as np

    default = _DEFAULTS.get(name) if flag is None else flag
    option = f"--{name.replace('_', '-')}"
    if flag is not None and (not flag >= 0 or np.isinf(flag) or (name == "size" and flag == 0)):
        least = "above 0" if name == "size" else "of 0 or more"
        raise UsageError(f"{option} is {flag:g}: must be a finite number {least}")
    if name not in table:
        if default is None:
            raise UsageError(f"no {name}: give {table.path} a column '{name}', or {option}")
        return np.full(table.rows, default)
    column = table.numbers(name)
    is_empty = np.isnan(column)
    if default is None and is_empty.any():
        raise table.fault(int(is_empty.argmax()), name, f"is empty: fill it, or give {option}")
    return column if default is None else np.where(is_empty, default, column)


def _read_decays(table: CheckedTable, options: MoneyOptions) -> Any:
    """Return the decay of each row: that of its cell, else the curve of its group, else the option's."""
    from afresh.cli.planning.decay_files import read_decay_curves
    from afresh.cli.planning.planned_items import check_decays

    named: list[str | None] = [None] * table.rows
    if "decay" in table:
        check_decays(table)
        named = [*table.text("decay")]
    if options.decays is None:
        return [spec or options.decay for spec in named]
    curves = read_decay_curves(options.decays)
    groups = table.text("group").tolist() if "group" in table else [""] * table.rows
    for row, (spec, group) in enumerate(zip(named, groups, strict=True)):
        if not spec and (group or "") not in curves and "" not in curves:
            raise table.fault(row, "group", f"is {group!r}, which {options.decays} has no curve for")
    return [
        spec or curves.get(group or "", curves.get("")) for spec, group in zip(named, groups, strict=True)
    ]


def _find_intervals(
    table: CheckedTable, names: list[str], given: dict[str, Any], target: str | None, options: MoneyOptions
) -> tuple[dict[str, Any], Rows]:
    """Write the best refresh interval of each item; return a tuple (summary for JSON, lines for people)."""
    import numpy as np

    from afresh.money.best_interval import best_intervals
    from afresh.money.record_bulks import bulk_members
    from afresh.tables.writing import write_table

    counts = _fill_column(table, "count", 1.0)

    bulk = table.text("bulk").tolist() if "bulk" in table else None
    if bulk is not None:
        _check_bulks(table, bulk, given["cost"])
    found = best_intervals(table.numbers("rate"), bulk=bulk, **given)
    summary, lines, compared = _compare(table, given, counts, options)
    if target is not None:
        numbers = ("interval", "frequency", "freshness", "net_income")
        columns = {name: getattr(found, name) for name in numbers}
        columns |= {"status": np.where(found.futile, "futile", "kept"), "break_even": found.break_even}
        kinds = {"item": TEXT, **dict.fromkeys(numbers, NUMBER), "status": TEXT, "break_even": NUMBER}
        write_table(target, kinds | dict.fromkeys(compared, NUMBER), {"item": names, **columns, **compared})
    income, futile = float(counts @ found.net_income), int(counts @ found.futile)
    # All rows of a bulk are refreshed together, so only its first row is counted.
    first = slice(None) if bulk is None else np.unique(bulk_members(bulk), return_index=True)[1]
    refreshes = float(counts[first] @ found.frequency[first])
    per, items = f"per {UNIT_NAMES[options.unit]}", int(counts.sum())
    rows = [
        ("items", f"{items:,}, of which {futile:,} are futile"),
        ("net income", f"{format_number(income)} {per}"),
        ("refreshes", f"{format_number(refreshes)} {per}"),
        *lines,
        *_futile_rows(names, found, per),
    ]
    totals = {"net_income": income, "refreshes": refreshes, "items": items, "futile": futile}
    return totals | summary, rows


def _compare(
    table: CheckedTable, given: dict[str, Any], counts: Any, options: MoneyOptions
) -> tuple[dict[str, Any], Rows, dict[str, Any]]:
    """Return a tuple (summary for JSON, lines for people, further columns) of ``--compare``, empty without
    it; write the sweep and draw the plot."""
    if not options.compare:
        return {}, [], {}
    import numpy as np

    from afresh.cli.planning import money_comparison as texts
    from afresh.money.compared_incomes import ComparedItems, compare_ways
    from afresh.money.priced_items import build_items

    if "bulk" in table:
        raise UsageError(f"--compare looks at items one by one: leave out the column 'bulk' of {table.path}")
    unit_s = unit_seconds(options.unit)
    today = None
    if options.today is not None or "today" in table:
        default = None if options.today is None else parse_duration(options.today) / unit_s
        today = _fill_column(table, "today", default)
    most = None if options.refreshes is None else parse_rate(options.refreshes) * unit_s
    items = build_items(table.numbers("rate"), **given)
    compared = ComparedItems(items, np.asarray(counts, dtype=np.float64), today, most)
    ways = compare_ways(compared)
    texts.write_sweep(compared, options.sweep, options.plot, UNIT_NAMES[options.unit])
    columns = {f"{name}_income": way.net_income for name, way in ways.items() if name != "best"}
    return {"compare": texts.comparison_summary(ways)}, texts.comparison_lines(ways, options.unit), columns


def _check_bulks(table: CheckedTable, bulk: list[str], cost: Any) -> None:
    """Raise an error if the rows of a bulk have different costs, because a refresh of a bulk has one cost."""
    first: dict[str, int] = {}
    for row, label in enumerate(bulk):
        before = first.setdefault(label, row) if label else row
        if cost[row] != cost[before]:
            problem = f"is {cost[row]:g}, but {cost[before]:g} in row {before + 1} of the same bulk {label!r}"
            raise table.fault(row, "cost", f"{problem}: one refresh of a bulk has one cost")


def _futile_rows(names: list[str], found: Incomes, per: str) -> Rows:
    """Return a line for each of the three futile items that need the lowest benefit to pay: why the item is
    futile, and from which benefit on its refreshes pay."""
    import numpy as np

    from afresh.money.terms import VERDICT_TEXTS, RefreshVerdict

    rows = []
    futile = np.flatnonzero(found.futile)
    for index in futile[np.argsort(found.break_even[futile], kind="stable")][:3]:
        why = VERDICT_TEXTS[RefreshVerdict(int(found.verdict[index]))]
        need = float(found.break_even[index])
        pays = f"; pays from a benefit of {format_number(need)} {per} on"
        if need == 0:
            pays = "; pays from any benefit above 0 on"
        rows.append(("futile", f"{names[index]} {why}{'' if np.isinf(need) else pays}"))
    return rows


def _find_benefits(
    table: CheckedTable,
    names: list[str],
    given: dict[str, Any],
    target: str | None,
    interval: float,
    unit: str,
) -> tuple[dict[str, Any], Rows]:
    """Write for each item the benefit at which ``interval`` is its best refresh interval; return a tuple
    (summary for JSON, lines for people)."""
    import numpy as np

    from afresh.money.inverse import implied_benefit
    from afresh.tables.writing import write_table

    if "bulk" in table:
        raise UsageError(f"--interval asks for items one by one: leave out the column 'bulk' of {table.path}")
    times = np.full(table.rows, interval)
    benefit = implied_benefit(times, table.numbers("rate"), **given)
    if target is not None:
        values = {"item": names, "interval": times, "benefit": benefit}
        write_table(target, {"item": TEXT, "interval": NUMBER, "benefit": NUMBER}, values)
    known = benefit[np.isfinite(benefit)]
    middle = float(np.median(known)) if known.size else float("nan")
    text = f"{format_number(middle)} per {UNIT_NAMES[unit]} at the median"
    rows = [("benefit", text if known.size else "none makes it the best")]
    return {"interval": interval, "items": table.rows, "median_benefit": middle}, rows
