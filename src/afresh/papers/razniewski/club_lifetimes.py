"""Razniewski 2016, §8.1 with Figure 7, and Table 3, with lifetimes computed from the rates in the paper.

The data on players and researchers are not published. They are replaced by lifetimes at evenly spaced
quantiles of e^{−λt}, with the rates λ of the paper. So the checks show that the estimators find these rates
in such lifetimes. They do not check the data.
"""

from __future__ import annotations

import numpy as np

from afresh.model.decay import Exponential
from afresh.papers.razniewski.bulk_updates import GROUPS, MOVED, PEOPLE, YEARS
from afresh.papers.report import Correction, PaperFigure, Section, row_checks
from afresh.plots.panels import Panel, Series
from afresh.rates.decay_fit import DecayFits, fit_decays
from afresh.rates.log_ratio import cohort_rates
from afresh.values.arrays import Floats

_CLUBS = {"Manchester United": (0.26, 789), "Bayern München": (0.36, 366)}
_SEED = 2016
_MADE = 10_000


def section_8_1() -> Section:
    found = {club: fit_decays(_at_quantiles(rate, n)) for club, (rate, n) in _CLUBS.items()}
    rates = [_exponential_rate(fits) for fits in found.values()]
    chosen = {fits.best.name for fits in found.values()}
    chance = ", ".join(f"{100 * _error_by_chance(rate, n):.1f} % for {n}" for rate, n in _CLUBS.values())
    return Section.of(
        "§8.1: how long players stay at a club",
        *row_checks("exponential rate fitted, {}", found, "0.26 0.36", rates, "/year"),
        note=f"Lifetimes at the quantiles of the stated rates; AIC selects {' and '.join(sorted(chosen))}. "
        "The paper's relative errors of 0.9 and 1.2 % are those of its records, and it does not state how "
        f"they are measured. By the area between the curves, the error by chance is {chance} players.",
    )


def table_3_again() -> Section:
    """Return the check of the shares of people that moved within five years, at the rates of Table 3."""
    rates = cohort_rates(GROUPS, np.full(4, YEARS), PEOPLE, MOVED)
    moved = [100 * float(np.mean(_at_quantiles(float(rate), _MADE) <= YEARS)) for rate in rates.rate]
    all_moved = (
        "all ten moved; the estimate ln(21)/5 is finite because it counts half a person more who stayed"
    )
    whole = Correction("95", all_moved)
    bounds = "; ".join(
        f"{group} {rate:.3f} ({low:.3f}–{high:.3f})"
        for group, rate, low, high in zip(GROUPS, rates.rate, rates.low, rates.high, strict=True)
    )
    return Section.of(
        "§8.2: Table 3 again, from cohorts made of its rates",
        *row_checks("moved within five years, {}", GROUPS, "100 63 23 11", moved, "%", {"students": whole}),
        note=f"Rates per year with 90 % bounds: {bounds}.",
    )


def figure_7() -> PaperFigure:
    rng = np.random.default_rng(_SEED)
    series = []
    for club, (rate, n) in _CLUBS.items():
        found = fit_decays(Exponential(rate).sample(rng, n))
        time = np.linspace(0, 15, 301)
        fitted = _exponential_rate(found)
        series.append(Series(f"{club}, simulated", time, found.empirical.survival(time)))
        curve = Exponential(fitted).survival(time)
        series.append(Series(f"{club}, rate {fitted:.2f}", time, curve, "dashed"))
    return PaperFigure.of(
        "Figure 7",
        "players still at their club",
        "the share of players still at the club, by years, and close to it exponential curves with the rates "
        "0.26 and 0.36.",
        f"the same for as many random lifetimes with these rates (seed {_SEED}), and curves fitted to them.",
        Panel("", "years at the club", "share still there", tuple(series)),
    )


def _at_quantiles(rate: float, n: int) -> Floats:
    """Return n lifetimes at evenly spaced quantiles of the survival function e^{−rate·t}."""
    return np.asarray(-np.log((np.arange(n) + 0.5) / n) / rate)


def _exponential_rate(found: DecayFits) -> float:
    return next(fit.rate for fit in found.fits if fit.name == "exponential")


def _error_by_chance(rate: float, n: int) -> float:
    """Return the mean relative error of an exponential curve that is fitted to n exponential lifetimes."""
    rng = np.random.default_rng(_SEED)
    runs = (fit_decays(Exponential(rate).sample(rng, n)) for _ in range(20))
    errors = [fit.relative_error for found in runs for fit in found.fits if fit.name == "exponential"]
    return float(np.mean(errors))
