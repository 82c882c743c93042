"""``afresh money`` finds the interval at which each item earns the most, and the items that never pay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from typer import Option

from afresh.cli.files import check_files, choose_output
from afresh.cli.options import AsJson, ItemsFile, Output, Unit
from afresh.cli.summary import format_number, print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Column
from afresh.values.errors import UsageError
from afresh.values.units import UNIT_NAMES, parse_duration, unit_seconds

if TYPE_CHECKING:
    from afresh.money.best_interval import Incomes
    from afresh.tables.reading import CheckedTable

COLUMNS = (
    Column("item", "text", required=True, what="the item's name"),
    Column("rate", "number", required=True, minimum=0, what="changes per unit of time"),
    Column("decay", "text", what="decay function"),
    Column("benefit", "number", minimum=0, what="earned per record and unit of time while right"),
    Column("cost", "number", minimum=0, what="cost of one refresh"),
    Column("update_cost", "number", minimum=0, what="further cost per record found changed"),
    Column("stale_cost", "number", minimum=0, what="cost per record and unit of time while wrong"),
    Column("size", "number", above=0, what="records refreshed together"),
    Column("bulk", "text", what="bulk with one interval"),
)
Rows: TypeAlias = list[tuple[str, str]]
_DEFAULTS = {"update_cost": 0.0, "stale_cost": 0.0, "size": 1.0}


def money(
    items: ItemsFile,
    benefit: Annotated[float | None, Option(help="Benefit per record and unit of time while right.")] = None,
    cost: Annotated[float | None, Option(help="Cost of one refresh.")] = None,
    update_cost: Annotated[float | None, Option(help="Further cost per record found changed.")] = None,
    stale_cost: Annotated[float | None, Option(help="Cost per record and unit of time while wrong.")] = None,
    decay: Annotated[
        str, Option(metavar="NAME", help="exponential, linear, geometric, weibull:K or lomax:A.")
    ] = "exponential",
    size: Annotated[float | None, Option(help="Records refreshed together.")] = None,
    cost_of_size: Annotated[
        str, Option(metavar="NAME", help="Cost grows with size: constant, sqrt or linear.")
    ] = "constant",
    interval: Annotated[
        str | None, Option(metavar="6h", help="Ask which benefit makes this interval the best.")
    ] = None,
    unit: Unit = "d",
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Find the interval at which refreshing each item earns the most, and the items that are futile.

    ITEMS has the columns item, rate and optionally decay, benefit, cost, update_cost, stale_cost, size, bulk.
    The options of the same names are used for missing columns and empty cells. The output has the columns
    item, interval, frequency, freshness, net_income, status.
    """
    unit_s = unit_seconds(unit)
    from afresh.tables.reading import read_table

    check_files([items], output, as_json=as_json)
    table = read_table(items, COLUMNS, unique="item")
    flags = {"cost": cost, "update_cost": update_cost, "stale_cost": stale_cost, "size": size}
    if interval is None:
        flags["benefit"] = benefit
    elif benefit is not None:
        raise UsageError("--interval asks for the benefit: leave out --benefit")
    given = {name: _fill_column(table, name, flag) for name, flag in flags.items()}
    given |= {"decay": _read_decays(table, decay), "cost_of_size": cost_of_size}
    target = choose_output(output, as_json=as_json)
    if interval is None:
        summary, rows = _find_intervals(table, given, target, unit)
        title = "intervals of the highest net income"
    elif (seconds := parse_duration(interval)) > 0:
        summary, rows = _find_benefits(table, given, target, seconds / unit_s, unit)
        title = "benefit that makes the interval the best"
    else:
        raise UsageError(f"--interval is {interval}: must be above 0")
    if as_json:
        print_json(summary | {"unit": unit})
    else:
        print_summary(title, rows)


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


def _read_decays(table: CheckedTable, default: str) -> Any:
    from afresh.cli.planning.planned_items import check_decays

    if "decay" not in table:
        return default
    check_decays(table)
    return [spec or default for spec in table.text("decay").to_pylist()]


def _find_intervals(
    table: CheckedTable, given: dict[str, Any], target: str | None, unit: str
) -> tuple[dict[str, Any], Rows]:
    """Write the best refresh interval of each item; return a tuple (summary for JSON, lines for people)."""
    import numpy as np

    from afresh.money.best_interval import best_intervals
    from afresh.money.record_bulks import bulk_members
    from afresh.tables.writing import write_table

    bulk = table.text("bulk").to_pylist() if "bulk" in table else None
    if bulk is not None:
        _check_bulks(table, bulk, given["cost"])
    found = best_intervals(table.numbers("rate"), bulk=bulk, **given)
    if target is not None:
        numbers = ("interval", "frequency", "freshness", "net_income")
        columns = {name: getattr(found, name) for name in numbers}
        status = np.where(found.futile, "futile", "kept")
        kinds = {"item": TEXT, **dict.fromkeys(numbers, NUMBER), "status": TEXT}
        write_table(target, kinds, {"item": table.text("item"), **columns, "status": status})
    income, futile = float(found.net_income.sum()), int(found.futile.sum())
    # All rows of a bulk are refreshed together, so only its first row is counted.
    first = slice(None) if bulk is None else np.unique(bulk_members(bulk), return_index=True)[1]
    refreshes = float(found.frequency[first].sum())
    per = f"per {UNIT_NAMES[unit]}"
    rows = [
        ("items", f"{table.rows:,}, of which {futile:,} are futile"),
        ("net income", f"{format_number(income)} {per}"),
        ("refreshes", f"{format_number(refreshes)} {per}"),
        *_futile_rows(table, found, per),
    ]
    return {"net_income": income, "refreshes": refreshes, "items": table.rows, "futile": futile}, rows


def _check_bulks(table: CheckedTable, bulk: list[str], cost: Any) -> None:
    """Raise an error if the rows of a bulk have different costs, because a refresh of a bulk has one cost."""
    first: dict[str, int] = {}
    for row, label in enumerate(bulk):
        before = first.setdefault(label, row) if label else row
        if cost[row] != cost[before]:
            problem = f"is {cost[row]:g}, but {cost[before]:g} in row {before + 1} of the same bulk {label!r}"
            raise table.fault(row, "cost", f"{problem}: one refresh of a bulk has one cost")


def _futile_rows(table: CheckedTable, found: Incomes, per: str) -> Rows:
    """Return a line for each of the three futile items that need the lowest benefit to pay: why the item is
    futile, and from which benefit on its refreshes pay."""
    import numpy as np

    from afresh.money.terms import VERDICT_TEXTS, RefreshVerdict

    rows = []
    futile = np.flatnonzero(found.futile)
    for index in futile[np.argsort(found.break_even[futile], kind="stable")][:3]:
        name = table.text("item")[int(index)].as_py()
        why = VERDICT_TEXTS[RefreshVerdict(int(found.verdict[index]))]
        need = float(found.break_even[index])
        pays = "" if np.isinf(need) else f"; pays from a benefit of {format_number(need)} {per} on"
        rows.append(("futile", f"{name} {why}{pays}"))
    return rows


def _find_benefits(
    table: CheckedTable, given: dict[str, Any], target: str | None, interval: float, unit: str
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
        values = {"item": table.text("item"), "interval": times, "benefit": benefit}
        write_table(target, {"item": TEXT, "interval": NUMBER, "benefit": NUMBER}, values)
    known = benefit[np.isfinite(benefit)]
    middle = float(np.median(known)) if known.size else float("nan")
    text = f"{format_number(middle)} per {UNIT_NAMES[unit]} at the median"
    rows = [("benefit", text if known.size else "none makes it the best")]
    return {"interval": interval, "items": table.rows, "median_benefit": middle}, rows
