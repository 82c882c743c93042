"""``afresh estimate`` estimates change rates from polls or cohorts, and decay functions from lifetimes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated

from typer import Argument, Option

from afresh.cli.files import check_files, choose_output
from afresh.cli.options import AsJson, On, Output, Plot, Unit, with_option_groups
from afresh.cli.summary import print_json, print_summary
from afresh.tables.columns import NUMBER, TEXT, Column
from afresh.tables.dataset import is_dataset
from afresh.values.errors import UsageError, one_of
from afresh.values.units import parse_duration, unit_seconds

COHORTS = (
    Column("group", "text", required=True),
    Column("elapsed", "number", required=True, above=0, what="units of time until looked at again"),
    Column("n", "count", required=True, minimum=1, what="how many were looked at"),
    Column("changed", "count", required=True, minimum=0, what="how many had changed"),
)
_SEASONS = {"auto": None, "off": False, "on": True}
_DRIFTS = {"auto": None, "off": inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions:
    """The options of ``afresh estimate``."""

    polls: Annotated[
        str | None, Argument(metavar="[POLLS]", help="Columns item, time, changed; - is standard input.")
    ] = None
    method: Annotated[str | None, Option(metavar="NAME", help="Which estimator; by default grid.")] = None
    a: Annotated[float | None, Option("--a", help="The constant of the log family, for --method saa.")] = None
    level: Annotated[float, Option(help="Probability that low and high hold the rate.")] = 0.9
    interval: Annotated[
        str | None, Option(metavar="20d", help="Give rates for a plan with this mean interval.")
    ] = None
    drift: Annotated[
        str, Option(metavar="auto|off|30d", help="Whether old polls count less, and how fast.")
    ] = "auto"
    season: Annotated[str, Option(metavar="auto|off|on", help="Whether the hours of the week differ.")] = (
        "auto"
    )
    change_points: Annotated[
        str, Option(metavar="auto|off|on", help="Whether to look for sharp changes of each item's rate.")
    ] = "auto"
    marks: Annotated[
        str | None, Option(metavar="FILE", help="Write the sharp changes found: columns item, time.")
    ] = None
    group: Annotated[
        str | None, Option(metavar="COLUMN", help="Learn a prior for each value of this column of POLLS.")
    ] = None
    views: Annotated[str | None, Option(metavar="FILE", help="Add rates of views: columns view, base.")] = (
        None
    )
    check_poisson: Annotated[
        bool, Option("--check-poisson", help="Say whether the changes look Poisson.")
    ] = False
    cohorts: Annotated[
        str | None, Option(metavar="FILE", help="Rates of groups: columns group, elapsed, n, changed.")
    ] = None
    lifetimes: Annotated[
        str | None, Option(metavar="FILE", help="Fit decay functions: columns lifetime, ended, group.")
    ] = None
    curves: Annotated[
        str | None, Option(metavar="FILE", help="Write the decay of copies that lifetimes show, for money.")
    ] = None
    unit: Unit = "d"
    on: On = None
    output: Output = None
    as_json: AsJson = False
    plot: Plot = None

    @property
    def target(self) -> str | None:
        """The path to which the rows are written, or None if no rows are written."""
        return choose_output(self.output, as_json=self.as_json)

    @property
    def plan_interval_s(self) -> float | None:
        """The mean polling interval in seconds of the plan that will use the rates; None if not given."""
        return None if self.interval is None else _parse_time("--interval", self.interval)

    @property
    def fading_s(self) -> float | None:
        """The time in which the weight of old polls falls to 1/e, in seconds; infinite: old polls keep their
        weight; None: the time is estimated.

        >>> [EstimateOptions(drift=text).fading_s for text in ("auto", "off", "1d")]
        [None, inf, 86400.0]
        """
        if self.drift in _DRIFTS:
            return _DRIFTS[self.drift]
        return _parse_time("--drift", self.drift, "auto, off or a time such as 30d")

    @property
    def has_season(self) -> bool | None:
        """Whether to estimate a factor for each hour of the week; None: only if the log shows differences."""
        return _SEASONS[one_of("--season", self.season, _SEASONS)]

    @property
    def seeks_change_points(self) -> bool:
        """Whether to look for sharp changes of rates; by default unless ``--drift`` says how polls fade."""
        chosen = one_of("--change-points", self.change_points, ("auto", "off", "on"))
        return chosen == "on" or (chosen == "auto" and self.drift == "auto")

    @property
    def is_of_dataset(self) -> bool:
        """Whether the polls are processed in parts, because they are in many files or ``--on`` is given."""
        return self.polls is not None and (self.on is not None or is_dataset(self.polls))

    def check(self) -> None:
        """Raise ``UsageError`` if an option is wrong. This is called before any file is read."""
        unit_seconds(self.unit)
        if sum(source is not None for source in (self.polls, self.cohorts, self.lifetimes)) != 1:
            raise UsageError("give one of POLLS, --cohorts FILE and --lifetimes FILE")
        if not 0 < self.level < 1:
            raise UsageError(f"--level is {self.level:g}: must be between 0 and 1, such as 0.9")
        inputs = [self.polls, self.cohorts, self.lifetimes, self.views]
        if self.on is not None and self.polls is None:
            raise UsageError("--on goes with POLLS")
        if not self.is_of_dataset:
            check_files(inputs, self.output, self.plot, as_json=self.as_json)
            check_files([*inputs, self.output], self.curves)
        if self.curves is not None and self.lifetimes is None:
            raise UsageError("--curves goes with --lifetimes")
        if self.a is not None and not (self.method == "saa" and 0 < self.a <= 1):
            raise UsageError(f"--a is {self.a:g}: give a number above 0, at most 1, with --method saa")
        if self.polls is not None:
            _ = self.plan_interval_s, self.fading_s, self.has_season, self.seeks_change_points
            return
        of_polls = ["method", "interval", "group", "views", "drift", "season", "check_poisson"]
        of_polls += ["change_points", "marks", "a"]
        wrong = [name for name in of_polls if getattr(self, name) not in (None, False, "auto")]
        if wrong:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
            raise UsageError(f"{names}: goes with POLLS, not with --cohorts or --lifetimes")


@with_option_groups
def estimate(options: EstimateOptions) -> None:
    """Estimate the change rate of each item, with an interval, from a log of polls.

    POLLS may also have the columns modified, count (changes since the poll before) and reached (0 where a
    poll failed). An item's first poll only starts its first interval. The output has the columns item, rate,
    low, high, polls, changes, method; where rates changed sharply also change_points and period (the time
    since the last one), and rates are those of now. Give --cohorts or --lifetimes for other data than POLLS.
    """
    options.check()
    if options.polls is not None and options.is_of_dataset:
        from afresh.cli.planning.datasets.estimate_dataset import estimate_dataset

        estimate_dataset(options.polls, options)
    elif options.polls is not None:
        from afresh.cli.planning.poll_log_rates import estimate_log

        estimate_log(options.polls, options)
    elif options.cohorts is not None:
        _estimate_cohorts(options.cohorts, options)
    else:
        from afresh.cli.planning.lifetime_fits import fit_lifetimes

        fit_lifetimes(str(options.lifetimes), options)


def _parse_time(option: str, text: str, right: str = "a time such as 20d") -> float:
    """Return the duration that an option's text states, in seconds; raise ``UsageError`` if it is wrong or 0.
    ``right`` says what would be right, for the error message."""
    try:
        seconds = parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option} must be {right}: {error}") from None
    if seconds == 0:
        raise UsageError(f"{option} is 0: must be above 0")
    return seconds


def _estimate_cohorts(path: str, options: EstimateOptions) -> None:
    from afresh.rates.log_ratio import cohort_rates
    from afresh.tables.reading import read_table
    from afresh.tables.writing import write_table

    if options.plot is not None:
        raise UsageError("--plot draws polls and lifetimes, not cohorts")
    table = read_table(path, COHORTS)
    n, changed = table.counts("n"), table.counts("changed")
    if (changed > n).any():
        row = int((changed > n).argmax())
        raise table.fault(row, "changed", f"is {changed[row]}, more than the {n[row]} that were looked at")
    found = cohort_rates(table.text("group").tolist(), table.numbers("elapsed"), n, changed, options.level)
    groups = [str(name) for name in found.groups]
    if options.target is not None:
        numbers, counts = ("rate", "low", "high"), ("n", "changed")
        columns = {name: getattr(found, name) for name in (*numbers, *counts)}
        write_table(
            options.target,
            {
                "group": TEXT,
                **dict.fromkeys(numbers, NUMBER),
                **dict.fromkeys(counts, "count"),
                "half_life": NUMBER,
            },
            {"group": groups, **columns, "half_life": found.half_life},
        )
    if options.as_json:
        print_json({"groups": len(groups), "one_sided": int(found.one_sided.sum()), "unit": options.unit})
    elif found.one_sided.any():
        sided = ", ".join(name for name, one in zip(groups, found.one_sided, strict=True) if one)
        print_summary("cohorts", [("all or none", f"{sided}: half an observation stands in")])
