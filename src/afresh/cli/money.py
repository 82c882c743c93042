"""``afresh money``: the interval at which each item earns the most, and which items no interval pays for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.files import check_files
from afresh.cli.options import AsJson, ItemsFile, Output, Unit
from afresh.cli.summary import number, print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Column
from afresh.values.errors import UsageError
from afresh.values.units import UNIT_NAMES, parse_duration, unit_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
_DEFAULTS = {"update_cost": 0.0, "stale_cost": 0.0, "size": 1.0}


def money(
    items: ItemsFile,
    benefit: Annotated[
        float | None, typer.Option("--benefit", help="Benefit per record and unit of time while right.")
    ] = None,
    cost: Annotated[float | None, typer.Option("--cost", help="Cost of one refresh.")] = None,
    update_cost: Annotated[
        float | None, typer.Option("--update-cost", help="Further cost per record found changed.")
    ] = None,
    stale_cost: Annotated[
        float | None, typer.Option("--stale-cost", help="Cost per record and unit of time while wrong.")
    ] = None,
    decay: Annotated[
        str,
        typer.Option("--decay", metavar="NAME", help="exponential, linear, geometric, weibull:K or lomax:A."),
    ] = "exponential",
    size: Annotated[float | None, typer.Option("--size", help="Records refreshed together.")] = None,
    cost_of_size: Annotated[
        str,
        typer.Option(
            "--cost-of-size", metavar="NAME", help="Cost grows with size: constant, sqrt or linear."
        ),
    ] = "constant",
    interval: Annotated[
        str | None,
        typer.Option("--interval", metavar="6h", help="Ask which benefit makes this interval the best."),
    ] = None,
    unit: Unit = "d",
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """The interval at which refreshing each item earns the most, and which items are futile.

    ITEMS has columns item, rate and, as you like, decay, benefit, cost, update_cost, stale_cost, size, bulk;
    the options of the same names stand in for columns and cells that are not given. The rows that come out
    are item, interval, frequency, freshness, net_income, status.
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
    given = {name: _filled(table, name, flag) for name, flag in flags.items()}
    given["decay"] = _decays(table, decay)
    target = None if output is None and as_json else output or "-"
    if interval is not None:
        if not (every := parse_duration(interval)) > 0:
            raise UsageError(f"--interval is {interval}: must be above 0")
        _implied(table, given, cost_of_size, every / unit_s, unit, target, as_json)
    else:
        _best(table, given, cost_of_size, unit, target, as_json)


def _filled(table: CheckedTable, name: str, flag: float | None) -> Any:
    """The column, its empty cells (or all of it) filled by the flag."""
    import numpy as np

    default = _DEFAULTS.get(name) if flag is None else flag
    wrong = flag is not None and (not flag >= 0 or np.isinf(flag) or (name == "size" and flag == 0))
    if wrong:
        least = "above 0" if name == "size" else "of 0 or more"
        raise UsageError(f"--{name.replace('_', '-')} is {flag:g}: must be a finite number {least}")
    if name not in table:
        if default is None:
            raise UsageError(f"no {name}: give {table.path} a column '{name}', or --{name.replace('_', '-')}")
        return np.full(table.rows, default)
    column = table.numbers(name)
    empty = np.isnan(column)
    if default is None:
        if empty.any():
            raise table.fault(
                int(empty.argmax()), name, f"is empty: fill it, or give --{name.replace('_', '-')}"
            )
        return column
    return np.where(empty, default, column)


def _decays(table: CheckedTable, default: str) -> Any:
    from afresh.cli.decay_column import check_decays

    if "decay" not in table:
        return default
    check_decays(table)
    return [spec or default for spec in table.text("decay").to_pylist()]


def _best(
    table: CheckedTable,
    given: Mapping[str, Any],
    cost_of_size: str,
    unit: str,
    target: str | None,
    as_json: bool,
) -> None:
    import numpy as np

    from afresh.money.best_interval import best_intervals

    columns = dict(given)
    bulk = table.text("bulk").to_pylist() if "bulk" in table else None
    if bulk is not None:
        _check_bulks(table, bulk, columns["cost"])
    found = best_intervals(
        table.numbers("rate"),
        columns.pop("benefit"),
        columns.pop("cost"),
        bulk=bulk,
        cost_of_size=cost_of_size,
        **columns,
    )
    if target is not None:
        _write(target, table, found)
    refreshes = float(np.sum(found.frequency)) if bulk is None else _bulk_refreshes(bulk, found)
    summary = {
        "net_income": float(found.net_income.sum()),
        "refreshes": refreshes,
        "items": table.rows,
        "futile": int(found.futile.sum()),
    }
    if as_json:
        print_json(summary | {"unit": unit})
        return
    per = f"per {UNIT_NAMES[unit]}"
    rows = [
        ("items", f"{table.rows:,}, of which {summary['futile']:,} are futile"),
        ("net income", f"{number(summary['net_income'])} {per}"),
        ("refreshes", f"{number(refreshes)} {per}"),
    ]
    print_summary("intervals of the highest net income", rows + _futile_rows(table, found, per))


def _check_bulks(table: CheckedTable, bulk: list[str], cost: Any) -> None:
    """One refresh of a bulk has one cost."""
    first: dict[str, int] = {}
    for row, label in enumerate(bulk):
        before = first.setdefault(label, row) if label else row
        if cost[row] != cost[before]:
            problem = f"is {cost[row]:g}, but {cost[before]:g} in row {before + 1} of the same bulk {label!r}"
            raise table.fault(row, "cost", f"{problem}: one refresh of a bulk has one cost")


def _bulk_refreshes(bulk: Iterable[str], found: Incomes) -> float:
    """Refreshes per time, a bulk counted once."""
    import numpy as np

    from afresh.money.record_bulks import bulk_members

    _, first = np.unique(bulk_members(bulk), return_index=True)
    return float(found.frequency[first].sum())


def _futile_rows(table: CheckedTable, found: Incomes, per: str) -> list[tuple[str, str]]:
    """The futile items nearest to paying: why, and the benefit at which each would."""
    import numpy as np

    from afresh.money.verdicts import VERDICT_TEXTS, RefreshVerdict

    rows = []
    futile = np.flatnonzero(found.futile)
    for index in futile[np.argsort(found.break_even[futile], kind="stable")][:3]:
        name = table.text("item")[int(index)].as_py()
        why = VERDICT_TEXTS[RefreshVerdict(int(found.verdict[index]))]
        need = float(found.break_even[index])
        pays = "" if np.isinf(need) else f"; pays from a benefit of {number(need)} {per} on"
        rows.append(("futile", f"{name} {why}{pays}"))
    return rows


def _write(target: str, table: CheckedTable, found: Incomes) -> None:
    import numpy as np

    from afresh.tables.writing import write_table

    numbers = ("interval", "frequency", "freshness", "net_income")
    write_table(
        target,
        {"item": TEXT, **dict.fromkeys(numbers, NUMBER), "status": TEXT},
        {"item": table.text("item")}
        | {name: getattr(found, name) for name in numbers}
        | {"status": np.where(found.futile, "futile", "kept")},
    )


def _implied(
    table: CheckedTable,
    given: Mapping[str, Any],
    cost_of_size: str,
    interval: float,
    unit: str,
    target: str | None,
    as_json: bool,
) -> None:
    """The benefit that would make ``interval`` optimal for each item."""
    import numpy as np

    from afresh.money.inverse import implied_benefit
    from afresh.tables.writing import write_table

    if "bulk" in table:
        raise UsageError(f"--interval asks for items one by one: leave out the column 'bulk' of {table.path}")
    columns = dict(given)
    times = np.full(table.rows, interval)
    rates, cost = table.numbers("rate"), columns.pop("cost")
    benefit = implied_benefit(times, rates, cost, cost_of_size=cost_of_size, **columns)
    if target is not None:
        values = {"item": table.text("item"), "interval": times, "benefit": benefit}
        write_table(target, {"item": TEXT, "interval": NUMBER, "benefit": NUMBER}, values)
    known = benefit[np.isfinite(benefit)]
    middle = float(np.median(known)) if known.size else float("nan")
    if as_json:
        print_json({"interval": interval, "items": table.rows, "median_benefit": middle, "unit": unit})
    else:
        says = (
            f"{number(middle)} per {UNIT_NAMES[unit]} at the median"
            if known.size
            else "none makes it the best"
        )
        print_summary("benefit that makes the interval the best", [("benefit", says)])
