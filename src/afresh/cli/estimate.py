"""``afresh estimate``: how often things change, from polls, cohorts or lifetimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from afresh.cli import estimate_options as options
from afresh.cli.estimate_question import (
    Answer,
    Question,
    check_level_flag,
    fading_s,
    refuse_without_polls,
    season_flag,
    time_s,
)
from afresh.cli.files import check_files
from afresh.cli.options import AsJson, Output, Plot, Unit
from afresh.cli.summary import print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Column
from afresh.values.errors import InputError, UsageError
from afresh.values.units import unit_seconds

if TYPE_CHECKING:
    from afresh.rates.decay_fit import DecayFits

COHORTS = (
    Column("group", "text", required=True),
    Column("elapsed", "number", required=True, above=0, what="units of time until looked at again"),
    Column("n", "count", required=True, minimum=1, what="how many were looked at"),
    Column("changed", "count", required=True, minimum=0, what="how many had changed"),
)
LONGEST = 1e150  # units of time: its square is still a number
_FROM_CHANGE_TO_CHANGE = (
    "this is how long a state lasts from change to change; a copy taken in the middle decays the same way "
    "only if that is exponential. Give it to plan or money where a refresh starts the lifetime anew."
)
LIFETIMES = (
    Column("lifetime", "number", required=True, above=0, maximum=LONGEST, what="units of time"),
    Column("ended", "flag", default=True, what="0 where it was still going when last seen"),
)


def estimate(
    polls: options.PollsFile = None,
    method: options.Method = None,
    level: options.Level = 0.9,
    interval: options.Interval = None,
    drift: options.Drift = "auto",
    season: options.Season = "auto",
    group: options.Group = None,
    views: options.Views = None,
    check_poisson: options.CheckPoisson = False,
    cohorts: options.Cohorts = None,
    lifetimes: options.Lifetimes = None,
    unit: Unit = "d",
    output: Output = None,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """How often each item changes, with an interval, from what polls found.

    POLLS may also have the columns modified, count (changes since the poll before) and reached (0 where a
    poll failed). An item's first poll only starts its clock. The rows that come out are item, rate, low,
    high, polls, changes, method. --cohorts and --lifetimes stand instead of POLLS.
    """
    unit_seconds(unit)
    if sum(source is not None for source in (polls, cohorts, lifetimes)) != 1:
        raise UsageError("give one of POLLS, --cohorts FILE and --lifetimes FILE")
    check_level_flag(level)
    check_files([polls, cohorts, lifetimes, views], output, plot, as_json=as_json)
    answer = Answer(unit, None if output is None and as_json else output or "-", as_json, plot)
    if polls is not None:
        from afresh.cli.estimate_polls import estimate_log

        every_s = None if interval is None else time_s("--interval", interval)
        fading, hours = fading_s(drift), season_flag(season)
        asked = Question(method, level, every_s, fading, hours, group, views, check_poisson)
        return estimate_log(polls, asked, answer)
    asked_of_polls = {"method": method, "interval": interval, "group": group, "views": views}
    refuse_without_polls(**asked_of_polls, drift=drift, season=season, check_poisson=check_poisson)
    return _cohorts(cohorts, level, answer) if cohorts is not None else _lifetimes(str(lifetimes), answer)


def _cohorts(path: str, level: float, answer: Answer) -> None:
    from afresh.rates.log_ratio import cohort_rates
    from afresh.tables.reading import read_table
    from afresh.tables.writing import write_table

    if answer.plot is not None:
        raise UsageError("--plot draws polls and lifetimes, not cohorts")
    table = read_table(path, COHORTS)
    n, changed = table.counts("n"), table.counts("changed")
    if (changed > n).any():
        row = int((changed > n).argmax())
        raise table.fault(row, "changed", f"is {changed[row]}, more than the {n[row]} that were looked at")
    found = cohort_rates(table.text("group").to_pylist(), table.numbers("elapsed"), n, changed, level)
    if answer.target is not None:
        kinds = {"group": TEXT, **dict.fromkeys(("rate", "low", "high"), NUMBER)}
        write_table(
            answer.target,
            {**kinds, "n": "count", "changed": "count"},
            {
                "group": [str(name) for name in found.groups],
                "rate": found.rate,
                "low": found.low,
                "high": found.high,
                "n": found.n,
                "changed": found.changed,
            },
        )
    if answer.as_json:
        print_json(
            {"groups": len(found.groups), "one_sided": int(found.one_sided.sum()), "unit": answer.unit}
        )
    elif found.one_sided.any():
        sided = ", ".join(str(name) for name, one in zip(found.groups, found.one_sided, strict=True) if one)
        print_summary("cohorts", [("all or none", f"{sided}: half an observation stands in")])


def _lifetimes(path: str, answer: Answer) -> None:
    from afresh.plots.estimate_plots import decay_figure
    from afresh.plots.style import picture_format, render
    from afresh.rates.decay_fit import fit_decays
    from afresh.tables.atomic_output import write_bytes
    from afresh.tables.reading import read_table

    table = read_table(path, LIFETIMES)
    ended = table.flags("ended")
    if not ended.any():
        raise InputError(
            "says of no lifetime that it ended: at least one must have", path=path, column="ended"
        )
    found = fit_decays(table.numbers("lifetime"), ended)
    if answer.target is not None:
        _write_fits(answer.target, found)
    if answer.plot is not None:
        picture = decay_figure(found, answer.unit)
        write_bytes(answer.plot, render(picture, picture_format(answer.plot)))
    best = found.best
    if answer.as_json:
        print_json(
            {
                "decay": best.spec,
                "rate": best.rate,
                "relative_error": best.relative_error,
                "lifetimes": found.lifetimes,
                "ended": found.ended,
                "unit": answer.unit,
            }
        )
    else:
        rows = [("best", found.sentence), ("mind", _FROM_CHANGE_TO_CHANGE)]
        print_summary("decay functions fitted to lifetimes", rows)


def _write_fits(target: str, found: DecayFits) -> None:
    from afresh.tables.writing import write_table

    numbers = ("rate", "aic", "log_likelihood", "relative_error")
    write_table(
        target,
        {"decay": TEXT, **dict.fromkeys(numbers, NUMBER), "note": TEXT},
        {"decay": [fit.spec for fit in found.fits], "note": [fit.why for fit in found.fits]}
        | {name: [getattr(fit, name) for fit in found.fits] for name in numbers},
    )
