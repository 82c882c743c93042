"""What ``afresh money --compare`` says: the income of today's intervals, of one for all, and of the best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afresh.cli.files import write_picture
from afresh.cli.summary import format_number
from afresh.tables.columns import NUMBER
from afresh.values.units import UNIT_NAMES

if TYPE_CHECKING:
    from afresh.money.compared_incomes import ComparedItems, WayOfRefreshing

WAYS = {
    "today": "today's intervals",
    "uniform": "one interval for all",
    "limited": "limited refreshes",
    "best": "best intervals",
}
"""The ways to choose intervals, in words."""

_FACTORS = 41  # two decades on either side of today's benefit, ten points each, and 1 itself


def comparison_summary(ways: dict[str, WayOfRefreshing]) -> dict[str, Any]:
    """Return the totals of each way, for JSON; ``interval`` only for one interval for all."""
    return {
        name: {"net_income": way.total, "refreshes": way.refreshes}
        | ({"interval": float(way.interval[0])} if name == "uniform" else {})
        for name, way in ways.items()
    }


def comparison_lines(ways: dict[str, WayOfRefreshing], unit: str) -> list[tuple[str, str]]:
    """Return a line for each way: its income, its refreshes, and what the best intervals earn more."""
    per, best = f"per {UNIT_NAMES[unit]}", ways["best"].total
    lines = []
    for name, way in ways.items():
        text = f"{format_number(way.total)} {per} with {format_number(way.refreshes)} refreshes {per}"
        if name == "uniform":
            text = f"{text}, every {format_number(float(way.interval[0]))} {UNIT_NAMES[unit]}s"
        if name != "best":
            more = best - way.total
            share = f" ({more / abs(way.total):.1%})" if way.total else ""
            text = f"{text}; the best intervals earn {format_number(more)} more{share}"
        lines.append((WAYS[name], text))
    return lines


def write_sweep(compared: ComparedItems, sweep: str | None, plot: str | None, unit: str) -> None:
    """Write the table of the sweep over the benefit, and draw it, as far as paths are given."""
    if sweep is None and plot is None:
        return
    import numpy as np

    from afresh.money.compared_incomes import sweep_benefit
    from afresh.tables.writing import write_table

    found = sweep_benefit(compared, np.geomspace(1e-2, 1e2, _FACTORS))
    if sweep is not None:
        incomes = {f"{name}_income": values for name, values in found.totals.items()}
        columns = {"factor": found.factor, **incomes, "refreshes": found.refreshes, "futile": found.futile}
        write_table(sweep, dict.fromkeys(columns, NUMBER), columns)
    if plot is not None:
        from afresh.plots.line_plot import line_figure
        from afresh.plots.money_plot import income_panels

        write_picture(plot, line_figure(income_panels(compared, found, WAYS, unit)))
