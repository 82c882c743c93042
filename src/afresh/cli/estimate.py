"""``afresh estimate``: how often things change, from polls, cohorts or lifetimes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.files import check_files
from afresh.cli.options import AsJson, Output, Plot, Unit
from afresh.cli.progress import Progress
from afresh.cli.summary import number, print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Column
from afresh.values.clock import SystemClock
from afresh.values.errors import UsageError
from afresh.values.units import UNIT_NAMES, parse_duration, unit_seconds

if TYPE_CHECKING:
    import pyarrow as pa

    from afresh.cli.polls import PollLog
    from afresh.rates.decay_fit import DecayFits
    from afresh.rates.observations import Polls
    from afresh.values.results import RateEstimates

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


@dataclass(frozen=True, slots=True)
class Answer:
    """How the answer is wanted: in which unit, written where, in which form."""

    unit: str
    target: str | None
    as_json: bool
    plot: str | None


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
        every_s = None if interval is None else parse_duration(interval)
        if every_s == 0:
            raise UsageError("--interval is 0: must be above 0")
        _polls(str(polls), method, level, every_s, group, views, check_poisson, answer)


def _polls(
    path: str,
    method: str | None,
    level: float,
    every_s: float | None,
    group: str | None,
    views: str | None,
    check_poisson: bool,
    answer: Answer,
) -> None:
    from afresh.cli.polls import read_polls
    from afresh.rates.estimate import estimate_many
    from afresh.rates.poisson_check import changes_to_judge, check_items
    from afresh.tables.aside import write_bytes
    from afresh.tables.inputs import InputFile

    unit_s = unit_seconds(answer.unit)
    now_s = SystemClock().now_s()
    with InputFile(path) as source, Progress(f"reading {source.name}", 1.0) as progress:
        log = read_polls(source, now_s=now_s, group=group, on_read=progress.reach)
    # Times from the first poll on: seconds since 1970 would eat the digits of short intervals.
    start_s = float(log.time_s.min()) if log.time_s.size else 0.0
    times = log.time_s - start_s
    times /= unit_s
    found = estimate_many(
        log.item,
        times,
        log.changed,
        items=len(log.names),
        method=method or _fitting_method(log),
        level=level,
        modified=None if log.modified_s is None else (log.modified_s - start_s) / unit_s,
        count=log.count,
        reached=log.reached,
        groups=log.groups,
        interval=None if every_s is None else every_s / unit_s,
    )
    names = log.names
    if views is not None:
        names, found = _with_views(names, found, views, level)
    judged = changes_to_judge(_polls_of(log, unit_s)) if check_poisson else None
    # Drawn before anything is written: what cannot be drawn leaves nothing half done.
    drawing = None if answer.plot is None else _drawing(answer.plot, found, judged, answer.unit)
    if answer.target is not None:
        _write(answer.target, names, found)
    if drawing is not None:
        write_bytes(str(answer.plot), drawing)
    _tell(log, found, None if judged is None else check_items(*judged).sentence, answer)


def _fitting_method(log: PollLog) -> str:
    """Counts where the file counts, stamps where it has them, else what the bits alone tell best."""
    from afresh.rates.estimate import DEFAULT_METHOD

    if log.count is not None:
        return "counts"
    return DEFAULT_METHOD if log.modified_s is None else "last-modified"


def _with_views(
    names: pa.Array, found: RateEstimates, views: str, level: float
) -> tuple[pa.Array, RateEstimates]:
    """Every view as a further row: a view changes when any of its distinct bases does."""
    import pyarrow as pa

    from afresh.cli.items import VIEWS
    from afresh.rates.view_estimates import with_views
    from afresh.tables.reading import read_table

    pairs = read_table(views, VIEWS)
    added, together = with_views(
        names.to_pylist(), found, pairs.text("view").to_pylist(), pairs.text("base").to_pylist(), level
    )
    return pa.concat_arrays([names, pa.array(added, names.type)]), together


def _write(target: str, names: pa.Array, found: RateEstimates) -> None:
    import numpy as np
    import pyarrow as pa

    from afresh.tables.writing import write_table

    method = pa.DictionaryArray.from_arrays(np.zeros(len(names), dtype=np.int32), [found.method])
    write_table(
        target,
        {
            "item": TEXT,
            "rate": NUMBER,
            "low": NUMBER,
            "high": NUMBER,
            "polls": "count",
            "changes": "count",
            "method": TEXT,
        },
        {
            "item": names,
            "rate": found.rate,
            "low": found.low,
            "high": found.high,
            "polls": found.polls,
            "changes": found.changes,
            "method": method,
        },
    )


def _polls_of(log: PollLog, unit_s: float) -> Polls:
    from afresh.rates.observations import polls_from_times

    return polls_from_times(
        log.item,
        log.time_s / unit_s,
        log.changed,
        items=len(log.names),
        modified=None if log.modified_s is None else log.modified_s / unit_s,
        count=log.count,
        reached=log.reached,
    )


def _tell(log: PollLog, found: RateEstimates, poisson: str | None, answer: Answer) -> None:
    import numpy as np

    seen = found.rate[: len(log.names)]
    summary: dict[str, Any] = {
        "items": len(log.names),
        "polls": int(found.polls[: len(log.names)].sum()),
        "changes": int(found.changes[: len(log.names)].sum()),
        "unchanged_items": int((found.changes[: len(log.names)] == 0).sum()),
        "mean_rate": float(seen.mean()) if seen.size else 0.0,
        "method": found.method,
        "unit": answer.unit,
    }
    if poisson is not None:
        summary["poisson"] = poisson
    if answer.as_json:
        print_json(summary)
        return
    per = f"per {UNIT_NAMES[answer.unit]}"
    never = f"{summary['unchanged_items']:,} of them never seen to change"
    rows = [
        ("items", f"{summary['items']:,}, {never}"),
        ("polls", f"{summary['polls']:,} intervals, {summary['changes']:,} changes"),
        ("rate", f"{number(summary['mean_rate'])} {per} on average, median {number(float(np.median(seen)))}")
        if seen.size
        else ("rate", "no items"),
    ]
    if poisson is not None:
        rows.append(("Poisson?", poisson))
    print_summary(f"rates by method {found.method}", rows)


def _drawing(plot: str, found: RateEstimates, judged: tuple[Any, Any] | None, unit: str) -> bytes:
    from afresh.cli.estimate_picture import gaps_picture, rates_picture
    from afresh.plots.style import picture_format, render

    figure = rates_picture(found, unit) if judged is None else gaps_picture(*judged, unit)
    return render(figure, picture_format(plot))


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
