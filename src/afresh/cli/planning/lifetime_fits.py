"""What ``afresh estimate --lifetimes`` does: fits decay functions to lifetimes, for each group of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afresh.cli.files import write_picture
from afresh.cli.summary import print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Column
from afresh.values.errors import InputError, UsageError

if TYPE_CHECKING:
    from afresh.cli.planning.estimate_command import EstimateOptions
    from afresh.rates.decay_fit import DecayFits
    from afresh.tables.reading import CheckedTable

LONGEST = 1e150  # in units of time; the square of a longer lifetime could overflow
LIFETIMES = (
    Column("group", "text", what="group that the lifetime belongs to"),
    Column("lifetime", "number", required=True, above=0, maximum=LONGEST, what="units of time"),
    Column("ended", "flag", default=True, what="0 where it was still going when last seen"),
)
_FROM_CHANGE_TO_CHANGE = (
    "this is how long a state lasts from change to change; a copy taken in the middle decays the same way "
    "only if that is exponential. Give it to plan or money where a refresh starts the lifetime again."
)


def fit_lifetimes(path: str, options: EstimateOptions) -> None:
    """Fit every class of decay functions to the lifetimes of each group, and write the fits, best first."""
    from afresh.tables.reading import read_table
    from afresh.tables.writing import write_table

    table = read_table(path, LIFETIMES)
    found = _fits_by_group(table)
    if options.plot is not None and len(found) > 1:
        raise UsageError(
            f"--plot draws one group of lifetimes, not {len(found)}: leave out the column 'group'"
        )
    if options.target is not None:
        rows = [(group, fit) for group, fits in found.items() for fit in fits.fits]
        numbers = ("rate", "aic", "log_likelihood", "relative_error")
        kinds: dict[str, Any] = {"decay": TEXT, **dict.fromkeys(numbers, NUMBER), "note": TEXT}
        columns: dict[str, Any] = {
            "decay": [fit.spec for _, fit in rows],
            "note": [fit.why for _, fit in rows],
        }
        columns |= {name: [getattr(fit, name) for _, fit in rows] for name in numbers}
        if "group" in table:
            kinds, columns = {"group": TEXT} | kinds, columns | {"group": [group for group, _ in rows]}
        write_table(options.target, kinds, columns)
    if options.curves is not None:
        _write_curves(options.curves, found, grouped="group" in table)
    if options.plot is not None:
        _draw(options.plot, found, options.unit)
    if options.as_json:
        print_json(_summary(found, options.unit, grouped="group" in table))
    else:
        lines = [(f"best{f' of {group}' if group else ''}", fits.sentence) for group, fits in found.items()]
        print_summary("decay functions fitted to lifetimes", [*lines, ("mind", _FROM_CHANGE_TO_CHANGE)])


def _fits_by_group(table: CheckedTable) -> dict[str, DecayFits]:
    """Return the fits of each group, by its name; "" is the group of lifetimes without one."""
    import numpy as np

    from afresh.rates.decay_fit import fit_decays

    groups = table.text("group").tolist() if "group" in table else [""] * table.rows
    rows: dict[str, list[int]] = {} if table.rows else {"": []}  # a file without rows has no ends either
    for row, group in enumerate(groups):
        rows.setdefault(group or "", []).append(row)
    lifetimes, ended = table.numbers("lifetime"), table.flags("ended")
    found = {}
    for group, own in rows.items():
        if not ended[own].any():
            of_group = f" of the group {group!r}" if group else ""
            problem = f"says of no lifetime{of_group} that it ended: at least one must have"
            raise InputError(problem, path=table.path, column="ended")
        found[group] = fit_decays(np.asarray(lifetimes[own]), np.asarray(ended[own]))
    return found


def _write_curves(path: str, found: dict[str, DecayFits], *, grouped: bool) -> None:
    """Write the decay of a copy refreshed at any time, as observed: what ``afresh money --decays`` reads."""
    import numpy as np

    from afresh.tables.writing import write_table

    curves = {group: fits.since_refresh for group, fits in found.items()}
    elapsed = np.concatenate([np.asarray(curve.times) for curve in curves.values()])
    right = np.concatenate([np.asarray(curve.values) for curve in curves.values()])
    kinds: dict[str, Any] = {"elapsed": NUMBER, "right": NUMBER}
    columns: dict[str, Any] = {"elapsed": elapsed, "right": right}
    if grouped:
        names = [group for group, curve in curves.items() for _ in np.asarray(curve.times)]
        kinds, columns = {"group": TEXT} | kinds, {"group": names} | columns
    write_table(path, kinds, columns)


def _draw(path: str, found: dict[str, DecayFits], unit: str) -> None:
    from afresh.plots.estimate_plots import decay_panels
    from afresh.plots.line_plot import captioned_figure

    fits = next(iter(found.values()))
    write_picture(path, captioned_figure(decay_panels(fits, unit), fits.sentence, 120))


def _summary(found: dict[str, DecayFits], unit: str, *, grouped: bool) -> dict[str, Any]:
    """Return the best fit for JSON: of all lifetimes, or of each group under ``groups``."""
    best = {
        group: {"decay": fits.best.spec, "rate": fits.best.rate, "relative_error": fits.best.relative_error}
        | {"lifetimes": fits.lifetimes, "ended": fits.ended}
        for group, fits in found.items()
    }
    return {"groups": best, "unit": unit} if grouped else {**next(iter(best.values())), "unit": unit}
