"""``afresh estimate POLLS``: from a log of polls to rates, and what the log says of season and drift."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from afresh.cli.polls import PollLog, read_polls
from afresh.cli.progress import Progress
from afresh.cli.summary import number, print_json, print_summary
from afresh.rates.estimator import (
    DEFAULT_METHOD,
    ESTIMATORS,
    POSTERIOR_METHODS,
    Estimator,
    Regime,
    estimate_polls,
    find_regime,
    with_planning_rates,
)
from afresh.rates.poisson_check import changes_to_judge, check_items
from afresh.rates.poll_table import PollTable, polls_from_times
from afresh.rates.priors.gamma_prior import WEAK_SHAPE, GammaPrior
from afresh.rates.season import HOURS
from afresh.tables.atomic_output import write_bytes
from afresh.tables.columns import NUMBER, TEXT, Kind
from afresh.tables.input_file import InputFile
from afresh.tables.writing import write_table
from afresh.values.arrays import Float64s
from afresh.values.clock import SystemClock
from afresh.values.errors import one_of
from afresh.values.results import RateEstimates
from afresh.values.units import UNIT_NAMES, unit_seconds

if TYPE_CHECKING:
    from afresh.cli.estimate_question import Answer, Question

_HOUR_S = 3600.0
_DAY_S = 86400.0  # where no interval is known yet an item may change once a day, in whatever unit
_WEEK_S = HOURS * _HOUR_S
_DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")  # as Unix weeks go


def estimate_log(path: str, asked: Question, answer: Answer) -> None:
    """Read, estimate, write and tell."""
    unit_s = unit_seconds(answer.unit)
    with InputFile(path) as source, Progress(f"reading {source.name}", 1.0) as progress:
        log = read_polls(source, now_s=SystemClock().now_s(), group=asked.group, on_read=progress.reach)
    estimator = _estimator(asked.method or DEFAULT_METHOD)
    names, groups = log.names, log.groups
    polls = _intervals(log, unit_s)
    del log  # as large as the polls themselves
    regime = _regime(polls, estimator.name, asked, unit_s)
    found = estimate_polls(
        regime.season.apply_to(polls) if regime.season.is_supported else polls,
        method=estimator,
        level=asked.level,
        prior=None if polls.size else GammaPrior.of(WEAK_SHAPE, WEAK_SHAPE * _DAY_S / unit_s),
        groups=groups,
        horizon=regime.horizon,
    )
    items = len(names)
    if asked.views is not None:
        names, found = _with_views(names, found, asked.views, asked.level)
    if asked.every_s is not None:
        found = with_planning_rates(found, asked.every_s / unit_s, asked.level)
    judged = changes_to_judge(polls) if asked.check_poisson else None
    # Drawn before anything is written: what cannot be drawn leaves nothing half done.
    drawing = None if answer.plot is None else _drawing(answer.plot, found, judged, answer.unit)
    if answer.target is not None:
        _write(answer.target, names, found, _for_plan(asked, unit_s))
    if drawing is not None:
        write_bytes(str(answer.plot), drawing)
    _tell(items, found, regime, None if judged is None else check_items(*judged).sentence, answer)


def _estimator(name: str) -> Estimator[Any]:
    """One of ours, or of another installed package, which are looked for only then."""
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    from afresh.engine.plugins import estimators

    everyone = estimators()
    return everyone[one_of("method", name, everyone)]


def _intervals(log: PollLog, unit_s: float) -> PollTable:
    """The log as polls, in units of time from the start of the week of the first one on.

    Seconds since 1970 would eat the digits of short intervals; whole weeks keep the hours of the week.
    """
    start_s = math.floor(float(log.time_s.min()) / _WEEK_S) * _WEEK_S if log.time_s.size else 0.0
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


def _regime(polls: PollTable, method: str, asked: Question, unit_s: float) -> Regime:
    """Season and drift as asked for, or as the log has them; a method that cannot forget does not."""
    horizon = None if asked.horizon_s is None else asked.horizon_s / unit_s
    if horizon is None and method not in POSTERIOR_METHODS:
        horizon = math.inf
    return find_regime(polls, hour=_HOUR_S / unit_s, horizon=horizon, season=asked.season)


def _with_views(
    names: pa.Array, found: RateEstimates, views: str, level: float
) -> tuple[pa.Array, RateEstimates]:
    """Every view as a further row: a view changes when any of its distinct bases does."""
    from afresh.cli.view_pairs import ViewPairs
    from afresh.rates.views import with_views

    pairs, polled = ViewPairs.read(views), names.to_pylist()
    pairs.refuse_unknown(polled)
    pairs.refuse_polled(polled)
    added, together = with_views(polled, found, pairs.view, pairs.base, level)
    return pa.concat_arrays([names, pa.array(added, names.type)]), together


def _for_plan(asked: Question, unit_s: float) -> dict[str, float]:
    """What ``plan`` must know of rates that are not means with a 90 % interval: further columns."""
    level = {} if asked.level == 0.9 else {"level": asked.level}
    return level if asked.every_s is None else level | {"for_interval": asked.every_s / unit_s}


def _write(target: str, names: pa.Array, found: RateEstimates, more: dict[str, float]) -> None:
    method = pa.DictionaryArray.from_arrays(np.zeros(len(names), dtype=np.int32), [found.method])
    kinds: dict[str, Kind] = {"item": TEXT}
    kinds |= dict.fromkeys(("rate", "low", "high"), NUMBER) | dict.fromkeys(("polls", "changes"), "count")
    kinds["method"] = TEXT
    columns = {name: getattr(found, name) for name in kinds if name != "item"}
    columns |= {name: np.full(len(names), value) for name, value in more.items()}
    kinds |= dict.fromkeys(more, NUMBER)
    write_table(target, kinds, {**columns, "item": names, "method": method})


def _tell(items: int, found: RateEstimates, regime: Regime, poisson: str | None, answer: Answer) -> None:
    seen = found.rate[:items]
    summary: dict[str, Any] = {
        "items": items,
        "polls": int(found.polls[:items].sum()),
        "changes": int(found.changes[:items].sum()),
        "unchanged_items": int((found.changes[:items] == 0).sum()),
        "mean_rate": float(seen.mean()) if seen.size else 0.0,
        "drift": None if math.isinf(regime.horizon) else regime.horizon,
        "season": regime.season.strength if regime.season.is_supported else None,
        "method": found.method,
        "unit": answer.unit,
    }
    if poisson is not None:
        summary["poisson"] = poisson
    if answer.as_json:
        print_json(summary)
        return
    unit = UNIT_NAMES[answer.unit]
    never = f"{summary['unchanged_items']:,} of them never seen to change"
    mean = f"{number(summary['mean_rate'])} per {unit} on average"
    rows = [
        ("items", f"{items:,}, {never}"),
        ("polls", f"{summary['polls']:,} intervals, {summary['changes']:,} changes"),
        ("rate", f"{mean}, median {number(float(np.median(seen)))}" if seen.size else "no items"),
        *_in_words(regime, unit),
    ]
    if poisson is not None:
        rows.append(("Poisson?", poisson))
    print_summary(f"rates by method {found.method}", rows)


def _in_words(regime: Regime, unit: str) -> list[tuple[str, str]]:
    """What was found of season and drift, where there is anything."""
    rows = []
    if not math.isinf(regime.horizon):
        over = f"{number(regime.horizon)} {unit}s"
        rows.append(("drift", f"rates change with time: old polls fade, to 1/e in {over}; rates are of now"))
    if regime.season.is_supported:
        profile = regime.season.profile
        quiet, busy = (_hour_name(profile, int(at)) for at in (profile.argmin(), profile.argmax()))
        rows.append(("season", f"the hours of the week differ, from {quiet} to {busy}"))
    return rows


def _hour_name(profile: Float64s, hour: int) -> str:
    day, clock = divmod(hour, 24)
    return f"{number(float(profile[hour]))} × the mean ({_DAYS[day]} {clock:02d}:00 UTC)"


def _drawing(plot: str, found: RateEstimates, judged: tuple[Any, Any] | None, unit: str) -> bytes:
    from afresh.cli.estimate_picture import gaps_picture, rates_picture
    from afresh.plots.style import picture_format, render

    figure = rates_picture(found, unit) if judged is None else gaps_picture(*judged, unit)
    return render(figure, picture_format(plot))
