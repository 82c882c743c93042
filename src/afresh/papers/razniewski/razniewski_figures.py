"""Razniewski 2016: the curves of Figures 1, 2, 4, 5 and 6. Time is in years."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from afresh.model.decay import Decay, Exponential, Linear
from afresh.money.best_interval import best_interval
from afresh.papers.razniewski.doctor_addresses import AGES, JONES, LINEAR_RATES, RATES, SMITH, mean_freshness
from afresh.papers.razniewski.incomes import net_income
from afresh.papers.report import PaperFigure
from afresh.plots.panels import Panel, Series
from afresh.values.arrays import Floats

_RATIOS = (0.5, 1.0, 2.0, 3.0, 5.0)


def figures() -> tuple[PaperFigure, ...]:
    """Return every figure of the paper that needs no measured lifetimes."""
    return (_figure_1(), _figure_2(), _figure_4(), _figure_5(), _figure_6())


def _figure_1() -> PaperFigure:
    time = np.linspace(0, 20, 2000, endpoint=False)
    alone = (
        Series("Smith (A)", time, Linear(SMITH).survival(time)),
        Series("Jones (B)", time, Linear(JONES).survival(time)),
    )
    updated = (
        Series("", time, Linear(SMITH).survival(np.mod(time, 5))),
        Series("", time, Linear(JONES).survival(np.mod(time, 10))),
    )
    return PaperFigure.of(
        "Figure 1",
        "two addresses with and without updates",
        "the chance that each address is right, falling in a straight line to 0 within 10 and 20 years; "
        "below, as saw teeth, with updates every 5 and 10 years.",
        "the same; with updates both are right 75 % of the time.",
        Panel("without updates", "years", "probability right", alone),
        Panel("with updates every 5 (A) and 10 (B) years", "years", "probability right", updated),
    )


def _figure_2() -> PaperFigure:
    time = np.linspace(0, 20, 401)
    curves: dict[str, list[tuple[float, Decay]]] = {
        "exponential": [(float(rate), Exponential(rate)) for rate in RATES],
        "linear": [(float(rate), Linear(rate)) for rate in LINEAR_RATES],
    }
    panels = []
    for name, decays in curves.items():
        series = tuple(Series(f"λ = {rate:.3g}", time, decay.survival(time)) for rate, decay in decays)
        panels.append(Panel(name, "years", "probability right", series))
    return PaperFigure.of(
        "Figure 2",
        "exponential and linear decay",
        "the two classes of decay functions at several rates.",
        "both classes at the rates of Table 1 (the text does not give the paper's).",
        *panels,
    )


def _figure_4() -> PaperFigure:
    decay, interval = Exponential(float(RATES[0])), 3.0
    time, until = np.linspace(0, 8, 321), np.linspace(0, interval, 121)
    average = mean_freshness(decay, interval)
    corners = np.array([0, interval, interval]), np.array([average, average, 0])
    series = (
        Series("∫ z up to u", until, decay.survival(until), "area"),
        Series("z(t)", time, decay.survival(time)),
        Series("average F(u)", *corners, "dashed"),
    )
    return PaperFigure.of(
        "Figure 4",
        "average freshness as an area",
        "the area under z up to the interval u, divided by u, is the average freshness.",
        f"z at the rate of age 25 and u = {interval:g} years: the dashed rectangle has the same area, its "
        f"height {average:.3f} is the average freshness.",
        Panel("", "years since the update", "probability right", series),
    )


def _figure_5() -> PaperFigure:
    cases = {f"age {age}": (float(rate), 1.0) for age, rate in zip(AGES, RATES, strict=True)}
    return PaperFigure.of(
        "Figure 5",
        "net income by interval and age",
        "negative for small intervals, highest at roughly 3 to 5 years, then falling slowly; the slower the "
        "decay the higher and the later the maximum.",
        "the same, with the maxima of Example 4 as dots. Benefit and cost are 1.",
        _income_panel(np.linspace(0.6, 15, 577), cases),
    )


def _figure_6() -> PaperFigure:
    cases = {f"B/C = {ratio:g}": (float(RATES[0]), ratio) for ratio in _RATIOS}
    return PaperFigure.of(
        "Figure 6",
        "net income by interval and benefit/cost ratio, age 25",
        "the higher B/C, the higher the net income and the shorter the best interval.",
        "the same at C = 1 for five ratios (the text does not give the paper's), the best intervals as dots.",
        _income_panel(np.linspace(0.3, 12, 1171), cases),
    )


def _income_panel(interval: Floats, cases: Mapping[str, tuple[float, float]]) -> Panel:
    """Return a panel of net income by interval, with a dot at the best interval.
    ``cases`` maps the name of each curve to a tuple (rate, benefit)."""
    curves = [Series(name, interval, net_income(interval, *case, 1.0)) for name, case in cases.items()]
    best = [best_interval(*case, 1.0) for case in cases.values()]
    x, y = np.array([(income.interval, income.net_income) for income in best]).T
    series = (*curves, Series("best", x, y, "dots"))
    return Panel("", "update interval, years", "net income per year", series)
