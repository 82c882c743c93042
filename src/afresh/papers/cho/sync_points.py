"""Cho & Garcia-Molina 2000, §3, Example 3 and Figure 5: synchronization points.

Ten pages are polled once a day each: (a) all at the start of the day, (b) most of them at the start and the
others during the rest of the day, or (c) evenly over the day. The polls come from a replay of the round-robin
policy that may poll in these hours only. If changes are equally likely at every hour, all three schedules
have the same mean freshness, (1−e^{−r})/r of Table 2 with r changes per poll. Only the freshness at each hour
of the day differs.
"""

from __future__ import annotations

import math

import numpy as np

from afresh.papers.report import Check, PaperFigure, Section
from afresh.plots.panels import Panel, Series
from afresh.policy.policy import OpenTime, PolicyInput
from afresh.policy.ranking_policy import UniformPolicy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import Visits, run_policy
from afresh.values.arrays import Float64s

PAGES, MOST = 10, 7
HOURS, DAYS = 24.0, 3
RATE = 1 / HOURS  # one change of a page a day
_START = 1.0  # the first hour is the start of the day
# The allowed hours of each schedule: number of pages, first hour and last hour of the day.
SCHEDULES: dict[str, tuple[tuple[int, float, float], ...]] = {
    "(a) at the start": ((PAGES, 0.0, _START),),
    "(b) most at the start": ((MOST, 0.0, _START), (PAGES - MOST, _START, HOURS)),
    "(c) evenly": ((PAGES, 0.0, HOURS),),
}


def example_3() -> Section:
    """Return the checks of the three schedules' polls and of their mean freshness."""
    r = RATE * HOURS
    printed = f"{(1 - math.exp(-r)) / r:.6f}"
    hours = {name: hours_of(visits_of(name)) for name in SCHEDULES}
    start, most, evenly = SCHEDULES
    gaps = np.diff(hours[evenly])
    checks = [Check(f"pages a day, {name}", "10", when.size) for name, when in hours.items()]
    checks += [
        Check(f"pages in the first hour, {start}", "10", int((hours[start] <= _START).sum())),
        Check(
            f"share of the pages in the first hour, {most}", "> 0.5", float((hours[most] <= _START).mean())
        ),
        Check(f"longest gap between polls / shortest, {evenly}", "1.000000", float(gaps.max() / gaps.min())),
    ]
    checks += [Check(f"freshness, {name}", printed, mean_freshness(visits_of(name))) for name in SCHEDULES]
    return Section.of(
        "Example 3: synchronization points",
        *checks,
        note="The polls come from a replay of round robin with windows. The freshness is of pages that "
        "change once a day, compared with Table 2, which the paper derives for (c).",
    )


def figure_5() -> PaperFigure:
    """Return the figure of when the ten pages are polled, and how fresh they are during the day."""
    time = np.linspace(0.0, HOURS, 481)
    polls, courses = [], []
    for height, name in zip((3.0, 2.0, 1.0), SCHEDULES, strict=True):
        hours = hours_of(visits_of(name))
        polls.append(Series(name, hours, np.full(hours.size, height), "dots"))
        since = (time[:, None] - hours) % HOURS
        courses.append(Series(name, time, np.exp(-RATE * since).mean(axis=1)))
    return PaperFigure.of(
        "Figure 5",
        "several options for the synchronization points",
        "ten pages polled all at the start of the day (a), most of them then (b), or evenly over it (c).",
        "the polls that windows make, and the freshness expected through the day of pages that change once a "
        "day: the same on average, but (a) is best in the morning and worst at night.",
        Panel("", "hour of the day", "schedule: 3 is (a), 1 is (c)", tuple(polls)),
        Panel("", "hour of the day", "expected freshness", tuple(courses)),
    )


def visits_of(schedule: str) -> list[Visits]:
    """Return the polls of the round-robin policy in three days, one run for each span of allowed hours.

    >>> [part.item.size for part in visits_of("(b) most at the start")]
    [21, 9]
    """
    return [_run(pages, opens, closes) for pages, opens, closes in SCHEDULES[schedule]]


def hours_of(parts: list[Visits]) -> Float64s:
    """Return the times of the polls on the second day, in hours since midnight."""
    time = np.sort(np.concatenate([part.time for part in parts]))
    return np.asarray(time[(time > HOURS) & (time <= 2 * HOURS)] - HOURS)


def mean_freshness(parts: list[Visits]) -> float:
    """Return the mean of e^{−RATE·s} over all times, where s is the time since the last poll of the page."""
    pages = ((part, page) for part in parts for page in np.unique(part.item))
    gaps = np.concatenate([np.diff(part.time[part.item == page]) for part, page in pages])
    return float(-np.expm1(-RATE * gaps).sum() / (RATE * gaps.sum()))


def _run(pages: int, opens: float, closes: float) -> Visits:
    history = ChangeHistory.of(pages, [], [], 0.0, DAYS * HOURS)
    days = HOURS * np.arange(DAYS)
    budget = pages / HOURS
    open_time = OpenTime.of(days + opens, days + closes)
    return run_policy(history, UniformPolicy(PolicyInput.of(pages, budget)), budget, open_time=open_time)
