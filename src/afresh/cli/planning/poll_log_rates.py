"""Estimates rates from a log of polls for ``afresh estimate POLLS``, with season, drift and pictures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.cli.planning.poll_log import PollLog, read_polls
from afresh.cli.progress import ProgressBar
from afresh.cli.summary import format_number, print_json, print_summary
from afresh.rates.common_belief import PollTotals, learn_common
from afresh.rates.estimator import (
    DEFAULT_METHOD,
    ESTIMATORS,
    POSTERIOR_METHODS,
    Estimator,
    Regime,
    with_planning_rates,
)
from afresh.rates.estimators.tally_estimators import LogFamily
from afresh.rates.item_sample import polls_of_sample, sample_keys
from afresh.rates.poisson_check import ObservedGaps, check_gaps, gap_histogram, gap_width, observed_gaps
from afresh.rates.poll_table import PollTable, polls_from_times
from afresh.rates.season import HOURS
from afresh.rates.sharp_changes import SharpChanges, no_sharp_changes
from afresh.tables.atomic_output import write_bytes
from afresh.tables.columns import NUMBER, TEXT, Kind
from afresh.tables.input_file import InputFile
from afresh.tables.text_columns import Texts, as_texts, join_texts, repeat_text
from afresh.tables.writing import write_table
from afresh.values.arrays import Float64s, Floats
from afresh.values.clock import SystemClock
from afresh.values.errors import InputError, UsageError, one_of
from afresh.values.results import RateEstimates
from afresh.values.units import UNIT_NAMES, unit_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from afresh.cli.planning.estimate_command import EstimateOptions
    from afresh.plots.panels import Series

HOUR_S = 3600.0
_WEEK_S = HOURS * HOUR_S
_MOST_BARS = 12
_MOST_DRAWN = 2000  # items; more dots would merge into one line
_NEAR = 0.3  # items are drawn together if their mean gap differs by less than this share from the median
_DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")  # Unix time began on a Thursday


def estimate_log(path: str, options: EstimateOptions) -> None:
    """Read the log of polls at ``path``, estimate the rates, write them, and print a summary."""
    unit_s = unit_seconds(options.unit)
    with InputFile(path) as source, ProgressBar(f"reading {source.name}", 1.0) as progress:
        log = read_polls(source, now_s=SystemClock().now_s(), group=options.group, on_read=progress.reach)
    estimator, horizon = choose_estimator(options)
    names, groups = log.names, log.groups
    start_s = start_of_week(float(log.time_s.min(initial=math.inf)))
    polls = make_poll_table(log, unit_s, start_s)
    del log  # to free its memory, which is as large as that of ``polls``
    common = learn_common(
        polls_of_sample(polls, sample_keys(names.tolist())),
        lambda season: PollTotals.of(season.apply_to(polls) if season.is_supported else polls),
        estimator,
        hour=HOUR_S / unit_s,
        horizon=horizon,
        season=options.has_season,
        seeks_jumps=options.seeks_change_points,
    )
    regime, items = common.regime, len(names)
    found, sharp = common.estimate(polls, options.level, groups)
    if sharp is None and options.seeks_change_points:
        sharp = no_sharp_changes(items)
    if options.views is not None:
        names, found = _with_views(names, found, options.views, options.level)
    if options.plan_interval_s is not None:
        found = with_planning_rates(found, options.plan_interval_s / unit_s, options.level)
    judged = observed_gaps(polls) if options.check_poisson else None
    # The picture is drawn before any file is written, so that a failure leaves no partial output.
    picture = None
    if options.plot is not None:
        from afresh.plots.style import picture_format, render

        figure = _rates_figure(found, options.unit) if judged is None else _gaps_figure(judged, options.unit)
        picture = render(figure, picture_format(options.plot))
    if options.target is not None:
        more = _plan_columns(options, unit_s, len(names))
        if sharp is not None and sharp.item.size:
            more |= change_point_columns(sharp, polls, len(names))
        write_rates(options.target, names, found, more)
    if options.marks is not None:
        _write_marks(options.marks, names, sharp, polls, start_s, unit_s)
    if picture is not None:
        write_bytes(str(options.plot), picture)
    poisson = None if judged is None else check_gaps(judged).sentence
    _print_results(items, found, regime, sharp, poisson, options)


def choose_estimator(options: EstimateOptions) -> tuple[Estimator[Any], float | None]:
    """Return a tuple (estimator, horizon of forgetting in units of time; None if it is to be estimated)."""
    estimator = _find_estimator(options.method or DEFAULT_METHOD)
    if options.a is not None:
        estimator = LogFamily(estimator.name, options.a)
    horizon = None if options.fading_s is None else options.fading_s / unit_seconds(options.unit)
    if horizon is None and estimator.name not in POSTERIOR_METHODS:  # it cannot weight polls by their age
        horizon = math.inf
    return estimator, horizon


def _find_estimator(name: str) -> Estimator[Any]:
    """Return the estimator with this name, from afresh or from another installed package."""
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    from afresh.engine.plugins import estimators

    everyone = estimators()
    return everyone[one_of("method", name, everyone)]


def start_of_week(first_s: float) -> float:
    """Return the beginning of the week of a time in Unix seconds; 0 for a log without polls (infinity).

    Times since 1970 would leave few digits for short polling intervals. A shift by whole weeks preserves the
    hours of the week, which the season needs."""
    return math.floor(first_s / _WEEK_S) * _WEEK_S if math.isfinite(first_s) else 0.0


def make_poll_table(log: PollLog, unit_s: float, start_s: float) -> PollTable:
    """Return the polls of the log, with times in units of ``unit_s`` seconds since ``start_s``."""
    times = log.time_s - start_s
    times /= unit_s
    return polls_from_times(
        log.item,
        times,
        log.changed,
        items=len(log.names),
        modified=None if log.modified_s is None else (log.modified_s - start_s) / unit_s,
        count=log.count,
        reached=log.reached,
    )


def _with_views(names: Texts, found: RateEstimates, views: str, level: float) -> tuple[Texts, RateEstimates]:
    """Return ``names`` and ``found`` with a row added for every view in the file ``views``. A view changes
    when any of its distinct bases changes."""
    from afresh.cli.planning.planned_items import ViewPairs
    from afresh.rates.views import with_views

    pairs, polled = ViewPairs.read(views), names.tolist()
    pairs.refuse_unknown_bases(polled)
    pairs.refuse_polled_views(polled)
    added, together = with_views(polled, found, pairs.view, pairs.base, level)
    return join_texts([names, as_texts(added)]), together


def _plan_columns(options: EstimateOptions, unit_s: float, rows: int) -> dict[str, Any]:
    """Return the values of further columns that ``afresh plan`` needs if ``--level`` is not 0.9, or if
    ``--interval`` is given. All rows have the same value."""
    columns = level_column(options.level, rows)
    if options.plan_interval_s is not None:
        columns["for_interval"] = np.full(rows, options.plan_interval_s / unit_s)
    return columns


def level_column(level: float, rows: int) -> dict[str, Any]:
    return {} if level == 0.9 else {"level": np.full(rows, level)}


def change_point_columns(sharp: SharpChanges, polls: PollTable, rows: int) -> dict[str, Any]:
    """Return the columns about sharp changes, for logs that have some; views, the last rows, have none."""
    found, period = np.zeros(rows, dtype=np.int64), np.full(rows, np.nan)
    found[: polls.items] = np.bincount(sharp.item, minlength=polls.items)
    period[: polls.items] = sharp.periods(polls)
    return {"change_points": found, "period": np.ma.masked_invalid(period)}


def _write_marks(
    path: str, names: Texts, sharp: SharpChanges | None, polls: PollTable, start_s: float, unit_s: float
) -> None:
    """Write the sharp changes, each with the time of the first poll after it, in Unix seconds."""
    if sharp is None or polls.end is None:
        raise UsageError("--marks needs --change-points auto")
    columns = {"item": names.take(sharp.item), "time": start_s + polls.end[sharp.poll] * unit_s}
    write_table(path, {"item": TEXT, "time": NUMBER}, columns)


def write_rates(target: str, names: Texts, found: RateEstimates, more: dict[str, Any]) -> None:
    """Write one row for each item; ``more`` are further columns."""
    method = repeat_text(found.method, len(names))
    kinds: dict[str, Kind] = {"item": TEXT}
    kinds |= dict.fromkeys(("rate", "low", "high"), NUMBER) | dict.fromkeys(("polls", "changes"), "count")
    kinds["method"] = TEXT
    columns = {name: getattr(found, name) for name in kinds if name != "item"}
    kinds |= {name: "count" if name == "change_points" else NUMBER for name in more}
    write_table(target, kinds, {**columns, **more, "item": names, "method": method})


def _print_results(
    items: int,
    found: RateEstimates,
    regime: Regime,
    sharp: SharpChanges | None,
    poisson: str | None,
    options: EstimateOptions,
) -> None:
    seen = found.rate[:items]
    summary: dict[str, Any] = {
        "items": items,
        "polls": int(found.polls[:items].sum()),
        "changes": int(found.changes[:items].sum()),
        "unchanged_items": int((found.changes[:items] == 0).sum()),
        "mean_rate": float(seen.mean()) if seen.size else 0.0,
        "drift": None if math.isinf(regime.horizon) else regime.horizon,
        "season": regime.season.strength if regime.season.is_supported else None,
        "change_points": 0 if sharp is None else int(sharp.item.size),
        "changed_sharply": 0 if sharp is None else int(np.unique(sharp.item).size),
        "method": found.method,
        "unit": options.unit,
    }
    if poisson is not None:
        summary["poisson"] = poisson
    if options.as_json:
        print_json(summary)
        return
    unit = UNIT_NAMES[options.unit]
    never = f"{summary['unchanged_items']:,} of them never seen to change"
    mean = f"{format_number(summary['mean_rate'])} per {unit} on average"
    rows = [
        ("items", f"{items:,}, {never}"),
        ("polls", f"{summary['polls']:,} intervals, {summary['changes']:,} changes"),
        ("rate", f"{mean}, median {format_number(float(np.median(seen)))}" if seen.size else "no items"),
        *_regime_rows(regime, unit),
    ]
    if summary["change_points"]:
        jumps = f"{summary['changed_sharply']:,} items, {summary['change_points']:,} times"
        rows.append(
            ("sharp changes", f"of the rates of {jumps}: for these, polls before the last one are old")
        )
    if poisson is not None:
        rows.append(("Poisson?", poisson))
    print_summary(f"rates by method {found.method}", rows)


def _regime_rows(regime: Regime, unit: str) -> list[tuple[str, str]]:
    """Return the lines of the summary about season and drift; none if the rates are constant."""
    rows = []
    if not math.isinf(regime.horizon):
        over = f"{format_number(regime.horizon)} {unit}s"
        rows.append(("drift", f"rates change with time: old polls fade, to 1/e in {over}; rates are of now"))
    if regime.season.is_supported:
        profile = regime.season.profile
        quiet, busy = (_hour_name(profile, int(at)) for at in (profile.argmin(), profile.argmax()))
        rows.append(("season", f"the hours of the week differ, from {quiet} to {busy}"))
    return rows


def _hour_name(profile: Float64s, hour: int) -> str:
    day, clock = divmod(hour, 24)
    return f"{format_number(float(profile[hour]))} × the mean ({_DAYS[day]} {clock:02d}:00 UTC)"


def _rates_figure(found: RateEstimates, unit: str) -> Figure:
    """Draw the rates from the slowest to the fastest item, with the ends of their intervals, and how many
    items have which rate."""
    from afresh.plots.line_plot import line_figure
    from afresh.plots.panels import Panel, Series

    if not found.rate.size:
        raise InputError("no items, no picture")
    order = np.argsort(found.rate, kind="stable")[:: max(1, found.rate.size // _MOST_DRAWN)]
    share = np.arange(order.size) / max(1, order.size - 1)
    ends = [Series(name, share, getattr(found, name)[order], "dots") for name in ("low", "high")]
    series = (Series("estimated rate", share, found.rate[order]), *ends)
    label = f"changes per {UNIT_NAMES[unit]}"
    rates = Panel("How often items change", "share of items", label, series, log_y=True)
    bars, names = rate_histogram(found.rate)
    many = Panel("How many items change how often", f"{label}, from", "items", (bars,), x_names=names)
    return line_figure([rates, many] if names else [rates])


def rate_histogram(rates: Floats) -> tuple[Series, tuple[str, ...]]:
    """Return a histogram of the positive, finite rates: bars with the number of items, and the least rate of
    each bar as text. A bar spans a factor of 2, or a power of 2 that makes them ``_MOST_BARS`` at most.

    >>> bars, names = rate_histogram(np.array([0.0, 0.3, 0.4, 1.0, 1.5, np.inf]))
    >>> bars.y.tolist(), names
    ([2.0, 0.0, 2.0], ('0.25', '0.5', '1'))
    """
    from afresh.plots.panels import Series

    octave = np.floor(np.log2(rates[(rates > 0) & np.isfinite(rates)]) + 1e-9)
    if not octave.size:
        return Series("items", np.zeros(0), np.zeros(0), "bars"), ()
    width = 1
    while (octave.max() // width - octave.min() // width) >= _MOST_BARS:
        width *= 2
    bar = (octave // width - octave.min() // width).astype(np.int64)
    count = np.bincount(bar).astype(np.float64)
    least = np.exp2((np.arange(count.size) + octave.min() // width) * width)
    return Series("items", np.arange(count.size, dtype=float), count, "bars"), tuple(
        f"{value:.2g}" for value in least
    )


def _gaps_figure(gaps: ObservedGaps, unit: str) -> Figure:
    """Draw the distribution of the gaps between changes, with the exponential distribution for comparison
    (Cho & Garcia-Molina 2000, Fig. 11). Only items whose mean gap is near the median are drawn."""
    from afresh.plots.estimate_plots import poisson_panel
    from afresh.plots.line_plot import captioned_figure

    checks = check_gaps(gaps)
    if not checks.item.size:
        raise InputError(checks.sentence)
    near = checks.item[np.abs(checks.mean_gap / np.median(checks.mean_gap) - 1) <= _NEAR]
    drawn = gaps.middle()[np.isin(gaps.item, near)]
    panel = poisson_panel(gap_histogram(drawn, width=gap_width(gaps, drawn)), unit)
    return captioned_figure([panel], checks.sentence, 62)
