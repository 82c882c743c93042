"""``afresh estimate``: how often things change, from polls, cohorts or lifetimes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.files import check_files
from afresh.cli.options import AsJson, Output, Plot, Unit
from afresh.cli.summary import print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Column
from afresh.values.errors import UsageError, one_of
from afresh.values.units import parse_duration, unit_seconds

if TYPE_CHECKING:
    from afresh.rates.decay_fit import DecayFits

COHORTS = (
    Column("group", "text", required=True),
    Column("elapsed", "number", required=True, above=0, what="units of time until looked at again"),
    Column("n", "count", required=True, minimum=1, what="how many were looked at"),
    Column("changed", "count", required=True, minimum=0, what="how many had changed"),
)
_FROM_CHANGE_TO_CHANGE = (
    "this is how long a state lasts from change to change; a copy taken in the middle decays the same way "
    "only if that is exponential. Give it to plan or money where a refresh starts the lifetime anew."
)
LIFETIMES = (
    Column("lifetime", "number", required=True, above=0, what="units of time"),
    Column("ended", "flag", default=True, what="0 where it was still going when last seen"),
)


_SEASON = {"auto": None, "off": False, "on": True}


@dataclass(frozen=True, slots=True)
class Answer:
    """How the answer is wanted: in which unit, written where, in which form."""

    unit: str
    target: str | None
    as_json: bool
    plot: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a log of polls; None is left to the log.

    ``every_s`` is the mean interval of the plan to come, ``horizon_s`` the time over which evidence fades.
    """

    method: str | None
    level: float
    every_s: float | None
    horizon_s: float | None
    season: bool | None
    group: str | None
    views: str | None
    check_poisson: bool


def estimate(
    polls: Annotated[
        str | None,
        typer.Argument(metavar="[POLLS]", help="Columns item, time, changed; - is standard input."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", metavar="NAME", help="Which estimator; by default the one that fits the file."
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="Probability that low and high hold the rate.")
    ] = 0.9,
    interval: Annotated[
        str | None,
        typer.Option("--interval", metavar="20d", help="Give rates to plan with, at this mean interval."),
    ] = None,
    drift: Annotated[
        str,
        typer.Option(
            "--drift",
            metavar="auto|off|30d",
            help="Whether old polls fade, and over which time.",
        ),
    ] = "auto",
    season: Annotated[
        str,
        typer.Option("--season", metavar="auto|off|on", help="Whether the hours of the week differ."),
    ] = "auto",
    group: Annotated[
        str | None,
        typer.Option(
            "--group", metavar="COLUMN", help="Learn a prior for each value of this column of POLLS."
        ),
    ] = None,
    views: Annotated[
        str | None, typer.Option("--views", metavar="FILE", help="Add rates of views: columns view, base.")
    ] = None,
    check_poisson: Annotated[
        bool, typer.Option("--check-poisson", help="Say whether the changes look Poisson.")
    ] = False,
    cohorts: Annotated[
        str | None,
        typer.Option(
            "--cohorts", metavar="FILE", help="Rates of groups: columns group, elapsed, n, changed."
        ),
    ] = None,
    lifetimes: Annotated[
        str | None,
        typer.Option("--lifetimes", metavar="FILE", help="Fit decay functions: columns lifetime, ended."),
    ] = None,
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
    if not 0 < level < 1:
        raise UsageError(f"--level is {level:g}: must be between 0 and 1, such as 0.9")
    check_files([polls, cohorts, lifetimes, views], output, plot, as_json=as_json)
    if polls is None:
        asked = {"--method": method, "--interval": interval, "--group": group, "--views": views}
        asked |= {"--drift": drift if drift != "auto" else None}
        asked |= {"--season": season if season != "auto" else None}
        wrong = [flag for flag, value in asked.items() if value is not None]
        wrong += ["--check-poisson"] if check_poisson else []
        if wrong:
            raise UsageError(f"{', '.join(wrong)}: goes with POLLS, not with --cohorts or --lifetimes")
    answer = Answer(unit, None if output is None and as_json else output or "-", as_json, plot)
    if cohorts is not None:
        _cohorts(cohorts, level, answer)
    elif lifetimes is not None:
        _lifetimes(lifetimes, answer)
    else:
        from afresh.cli.estimate_polls import estimate_log

        question = Question(
            method,
            level,
            None if interval is None else _time_s("--interval", interval),
            {"auto": None, "off": inf}[drift] if drift in ("auto", "off") else _time_s("--drift", drift),
            _SEASON[one_of("--season", season, _SEASON)],
            group,
            views,
            check_poisson,
        )
        estimate_log(str(polls), question, answer)


def _time_s(flag: str, text: str) -> float:
    seconds = parse_duration(text)
    if seconds == 0:
        raise UsageError(f"{flag} is 0: must be above 0")
    return seconds


def _cohorts(path: str, level: float, answer: Answer) -> None:
    from afresh.rates.cohorts import cohort_rates
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
    from afresh.plots.decay import decay_figure
    from afresh.plots.style import picture_format, render
    from afresh.rates.decay_fit import fit_decays
    from afresh.tables.aside import write_bytes
    from afresh.tables.reading import read_table

    table = read_table(path, LIFETIMES)
    found = fit_decays(table.numbers("lifetime"), table.flags("ended"))
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
