"""Cho & Garcia-Molina 2000: Figures 2, 3, 5 to 7, 9, 10 and 12, and Figure 11 (§6.2) of recorded changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.model.decay import Exponential
from afresh.model.decays.parameters import check_parameter
from afresh.model.freshness import age, freshness
from afresh.model.time_course import FreshnessCourse
from afresh.papers.cho import budget_tables as tables
from afresh.papers.cho.refresh_orders import ORDER_NAMES, gamma_age, gamma_freshness
from afresh.papers.cho.sync_points import figure_5
from afresh.papers.report import PaperFigure
from afresh.plots.estimate_plots import poisson_panel
from afresh.plots.panels import Panel, Series
from afresh.rates.poisson_check import check_items, gap_histogram, gaps_of
from afresh.values.arrays import ArrayLike, Floats, Ints
from afresh.values.errors import InputError

_SEED = 2000
_SPREADS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
_POLICIES = ("optimal", "uniform", "proportional")


def figures() -> tuple[PaperFigure, ...]:
    """Return every figure of the paper that needs no recorded changes."""
    made = (_figure_2, _figure_3, figure_5, _figure_6, _figure_7, _figure_9, _figure_10, _figure_12)
    return tuple(figure() for figure in made)


def _figure_2() -> PaperFigure:
    horizon, interval, rate = 6.0, 1.5, 1.2
    gaps = Exponential(rate).sample(np.random.default_rng(_SEED), 60)
    changes = np.cumsum(gaps)
    changes = changes[changes < horizon]
    refreshes = np.arange(interval, horizon, interval)
    time = np.linspace(0, horizon, 2401)
    course = observed_course(changes, refreshes, time)
    change = "change at the source"

    def events(change_label: str, refresh_label: str) -> tuple[Series, Series]:
        dots = Series(change_label, changes, np.zeros_like(changes), "dots")
        return dots, Series(refresh_label, refreshes, refreshes, "rules")

    return PaperFigure.of(
        "Figure 2",
        "freshness and age of one element over time",
        "a sketch: freshness falls to 0 at a change and returns to 1 at the refresh; age grows from the "
        "first change missed and returns to 0.",
        f"the same for a Poisson process of rate {rate:g} (seed {_SEED}), refreshed every {interval:g}.",
        Panel("", "time", "freshness F(e; t)", (Series("", time, course.freshness), *events("", ""))),
        Panel("", "time", "age A(e; t)", (Series("", time, course.age), *events(change, "refresh"))),
    )


def _figure_3() -> PaperFigure:
    rate, interval = 1.0, 2.0
    since = np.linspace(0, interval, 201)
    fresh, old = Exponential(rate).survival(since), Exponential(rate).loss(since)
    time = np.concatenate([since, since + interval])
    polls = Series("refresh", np.array([interval]), np.array([interval]), "rules")
    return PaperFigure.of(
        "Figure 3",
        "expected freshness and age since a refresh",
        "E[F] falls from 1 towards 0 and E[A] rises from 0, more and more like the time passed; both start "
        "again at the refresh at I.",
        f"two rounds at rate {rate:g} and I = {interval:g}.",
        Panel("", "time", "E[F(e; t)]", (Series("freshness", time, np.tile(fresh, 2)), polls)),
        Panel("", "time", "E[A(e; t)]", (Series("age", time, np.tile(old, 2)), polls)),
    )


def _figure_6() -> PaperFigure:
    r = np.linspace(0, 5, 251)
    fresh = tuple(Series(name, r, freshness(r, 1.0, order)) for order, name in ORDER_NAMES.items())
    old = tuple(Series(name, r, age(r, 1.0, order)) for order, name in ORDER_NAMES.items())
    return PaperFigure.of(
        "Figure 6",
        "freshness and age by order of refreshes",
        "freshness falls and age rises with r = λ/f; fixed order is best by both, purely random worst.",
        "the same curves, the age in units of the interval I; the order of the three holds everywhere.",
        Panel("", "r = λ/f", "freshness", fresh),
        Panel("", "r = λ/f", "age / I", old),
    )


def _figure_7() -> PaperFigure:
    r = np.geomspace(0.01, 100, 161)
    fresh, old = [], []
    for delta in _SPREADS:
        ratio = gamma_freshness(r, 1.0, delta, "proportional") / gamma_freshness(r, 1.0, delta)
        fresh.append(Series(f"δ = {delta:g}", r, ratio))
        if delta < 1:
            ratio = gamma_age(r, 1.0, delta) / gamma_age(r, 1.0, delta, "proportional")
            old.append(Series(f"δ = {delta:g}", r, ratio))
    return PaperFigure.of(
        "Figure 7",
        "proportional against uniform allocation, Gamma-distributed rates",
        "surfaces over r and δ that lie below 1 everywhere: uniform is always better, the more so the wider "
        "the rates are spread; the age ratio hardly depends on r.",
        "cuts through the surfaces. From δ = 1 on the age of proportional allocation is infinite and the "
        "ratio 0.",
        Panel("", "r = λ/f", "freshness, proportional / uniform", tuple(fresh), log_x=True),
        Panel("", "r = λ/f", "age, uniform / proportional", tuple(old), log_x=True),
    )


def _figure_9() -> PaperFigure:
    share = np.linspace(0, 1, 201)
    curves = (Series(f"f₁ + f₂ = {total:g}", share, _ratio(share, total)) for total in tables.PAIR_TOTALS)
    dots = (_policy_dots(policy) for policy in _POLICIES)
    best = ", ".join(f"{x:.2f}" for x in _policy_dots("optimal").x)
    return PaperFigure.of(
        "Figure 9",
        "two elements, λ₁ = 9 and λ₂ = 1, by the share of refreshes given to e₂",
        "freshness relative to uniform at three totals f₁ + f₂; the proportional policy is a dot below 1. "
        "With few refreshes it is best to give up on e₁ (share 1), with many the best share is about 0.3.",
        f"totals of 1, 5 and 10 (the text does not give the paper's): the best shares are {best}.",
        Panel("", "share given to e₂", "freshness / uniform", (*curves, *dots)),
    )


def _ratio(share: Floats, total: float) -> Floats:
    """Return the freshness if the slow element gets ``share`` of ``total`` refreshes, relative to uniform."""
    fast, slow = tables.PAIR_RATES
    mean = (freshness(fast, (1 - share) * total) + freshness(slow, share * total)) / 2
    return np.asarray(mean / allocate(tables.PAIR_RATES, total, policy="uniform").freshness)


def _policy_dots(policy: str) -> Series:
    plans = [(total, allocate(tables.PAIR_RATES, total, policy=policy)) for total in tables.PAIR_TOTALS]
    x = np.array([plan.frequency[1] / total for total, plan in plans])
    y = np.array([_ratio(at, total).item() for at, total in zip(x, tables.PAIR_TOTALS, strict=True)])
    return Series(policy, x, y, "dots")


def _figure_10() -> PaperFigure:
    rates = np.linspace(0.01, 6, 600)
    panels = []
    for objective in ("freshness", "age"):
        plan = allocate(tables.FIVE_RATES, tables.FIVE_BUDGET, objective=objective)
        curve = Series("any rate", rates, tables.frequencies_at(rates, plan.multiplier, objective))
        dots = Series("Example 4", tables.FIVE_RATES, plan.frequency, "dots")
        panels.append(Panel(f"for {objective}", "changes per day", "refreshes per day", (curve, dots)))
    return PaperFigure.of(
        "Figure 10",
        "the best frequency of a refresh, by rate of change",
        "for freshness the curve rises, peaks near λ = 2.5 and falls to 0: what changes too often is given "
        "up; for age it rises throughout, more and more slowly. The shapes are the same for every database.",
        "both curves at the multipliers of Example 4, whose five elements are the dots.",
        *panels,
    )


def _figure_12() -> PaperFigure:
    places = np.arange(len(tables.CLASSES), dtype=np.float64)
    measured = Series("pages", places, 100 * tables.SHARES, "bars")
    shown = tuple(
        Series(policy, places, tables.MONTH_DAYS * tables.web_plan(policy, "freshness").frequency, "bars")
        for policy in _POLICIES
    )
    names = tuple(f"{days:g} d" for days in tables.INTERVALS_DAYS)
    return PaperFigure.of(
        "Figure 12",
        "how often pages change, and what each policy makes of it",
        "the share of pages by mean interval between changes, from four months of daily crawls: 23 % changed "
        "more than once a day.",
        "the shares that Table 6 is computed from, and the refreshes per page and month that each policy of "
        "Table 6 gives to each class: optimal gives none to pages that change daily.",
        Panel("", "mean interval between changes", "% of pages", (measured,), x_names=tables.CLASSES),
        Panel("", "changes every", "refreshes per page and month", shown, x_names=names, log_y=True),
    )


def observed_course(changes: ArrayLike, refreshes: ArrayLike, t: ArrayLike) -> FreshnessCourse:
    """Return the freshness (1 or 0) and the age of one copy at the times ``t``.
    ``changes`` and ``refreshes`` are times. The copy is fresh at time 0. A refresh at the time of a change
    finds the change.

    >>> course = observed_course([1.0, 1.5, 4.0], [2.0], [0.5, 1.5, 2.5, 6.0])
    >>> course.freshness, course.age
    (array([1., 0., 1., 0.]), array([0. , 0.5, 0. , 2. ]))
    """
    times = check_parameter("t", t)
    changed = np.sort(check_parameter("changes", changes))
    refreshed = np.sort(check_parameter("refreshes", refreshes))
    last = np.append(0.0, refreshed)[np.searchsorted(refreshed, times, side="right")]
    first_missed = np.append(changed, np.inf)[np.searchsorted(changed, last, side="right")]
    missed = first_missed <= times
    age = np.where(missed, times - np.where(missed, first_missed, 0.0), 0.0)
    return FreshnessCourse(times, np.where(missed, 0.0, 1.0), age)


_MEAN_GAPS_DAYS = (10.0, 20.0, 40.0, 80.0, 5.0)
_FEWEST_GAPS = 100


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """Recorded changes, in any sequence: the number of the changed ``item`` and the time in days."""

    name: str
    item: Ints
    days: Floats


def gaps_near(history: ChangeLog, interval: float) -> Floats:
    """Return the gaps between changes of the items whose mean gap is within 15 % of ``interval`` days.
    Only items with at least ten gaps are used, because n gaps with a given mean vary less than exponential
    ones: their variance is smaller by the factor (n−1)/(n+1). That suffices for a picture."""
    owner, gaps = gaps_of(history.item, history.days)
    _, which, counts = np.unique(owner, return_inverse=True, return_counts=True)
    mean = np.bincount(which, gaps, minlength=counts.size) / counts
    near = (np.abs(mean / interval - 1) <= 0.15) & (counts >= 10)
    return gaps[near[which]]


def figure_11(history: ChangeLog) -> PaperFigure:
    """Return the figure of the times between two changes, for items that change every 10 days on average.
    If there are fewer than 100 such times, items that change every 20, 40, 80 or 5 days are used.

    >>> rng = np.random.default_rng(1)
    >>> item = np.repeat(np.arange(50), 100)
    >>> made = ChangeLog("made", item, np.cumsum(rng.exponential(10, item.size)))
    >>> figure_11(made).panels[0].log_y
    True
    """
    for interval in _MEAN_GAPS_DAYS:
        gaps = gaps_near(history, interval)
        if gaps.size >= _FEWEST_GAPS:
            break
    else:
        raise InputError(f"{history.name}: too few items change often enough to show gaps between changes")
    # Count the gaps that are at most one mean gap long, at most two, and so on.
    found = gap_histogram(gaps, 4, width=float(gaps.mean()))
    both = (found.share, found.expected)
    ours, model = (", ".join(f"{100 * share:.0f}" for share in shares) for shares in both)
    return PaperFigure.of(
        f"Figure 11, {history.name}",
        "gaps between changes",
        "for pages that change every 10 days on average, the shares of gaps lie on the Poisson line.",
        f"{gaps.size} gaps of items of {history.name} that change every {interval:g} days on average. "
        f"Of these {ours} % last up to 1, 2, 3 and 4 mean gaps (Poisson: {model}). "
        f"{check_items(history.item, history.days).sentence}",
        poisson_panel(gap_histogram(gaps), title=""),
    )
