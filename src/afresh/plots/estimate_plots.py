"""Plots of estimates: the check whether changes are Poisson, and decay functions fitted to lifetimes."""

from __future__ import annotations

import numpy as np

from afresh.model.decay import Decay
from afresh.plots.panels import Panel, Series
from afresh.rates.decay_fit import DecayFits
from afresh.rates.poisson_check import GapHistogram
from afresh.values.arrays import Floats
from afresh.values.units import UNIT_NAMES


def poisson_panel(gaps: GapHistogram, unit: str = "d", title: str = "Gaps between changes") -> Panel:
    """Return a panel of the gaps between changes: observed shares as dots, a Poisson model as a line."""
    middle = (gaps.edges[1:] + gaps.edges[:-1]) / 2
    seen = gaps.share > 0  # because a logarithmic axis cannot show 0
    model = Series("Poisson model", middle, gaps.expected)
    observed = Series("observed", middle[seen], gaps.share[seen], "dots")
    label = f"gap between changes, {UNIT_NAMES[unit]}s"
    return Panel(title, label, "share of gaps", (model, observed), log_y=True)


_POINTS = 400


def decay_panels(found: DecayFits, unit: str = "d", *, most: int = 3) -> tuple[Panel, Panel]:
    """Return a tuple of two panels: lifetimes, as observed and by the ``most`` best decay functions; and the
    probability that a copy is right, by the time since its refresh."""
    longest = float(np.asarray(found.empirical.times)[-1])
    time = np.linspace(0, longest, _POINTS)
    steps = np.unique(np.concatenate([np.asarray(found.empirical.times), [0.0, longest]]))
    x = np.repeat(steps, 2)[1:]
    y = np.repeat(found.empirical.survival(steps), 2)[:-1]
    observed = Series("observed", x, y)
    fits = [fit for fit in found.fits if np.isfinite(fit.aic)][:most]
    curves = [Series(fit.words, time, fit.decay.survival(time), "dashed") for fit in fits]
    label, right = f"time, {UNIT_NAMES[unit]}s", "chance that the copy is right"
    copies = [_curve("refreshed at any time, observed", found.since_refresh, time)]
    if np.isfinite(found.best.decay.total()):  # if infinite, a copy made at a random time is never wrong
        copies.append(_curve(f"the same, {found.best.name}", found.best.since_refresh(), time, dashed=True))
    copies.append(_curve("refresh restarts the lifetime", found.best.decay, time, dashed=True))
    lifetimes = Panel("How long a lifetime lasts", label, "share still going", (observed, *curves))
    return lifetimes, Panel("How long a copy stays right", label, right, tuple(copies))


def _curve(label: str, decay: Decay, time: Floats, *, dashed: bool = False) -> Series:
    return Series(label, time, decay.survival(time), "dashed" if dashed else "line")
