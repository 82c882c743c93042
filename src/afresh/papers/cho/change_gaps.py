"""Cho & Garcia-Molina 2000, §6.2 and Figure 11, on a real history of changes: are they Poisson?"""

from __future__ import annotations

from dataclasses import dataclass

from afresh.papers.report import PaperFigure
from afresh.plots.estimate_plots import poisson_panel
from afresh.rates.poisson_check import check_items, gap_histogram, gaps_near
from afresh.values.arrays import Floats, Ints
from afresh.values.errors import InputError

_INTERVALS_DAYS = (10.0, 20.0, 40.0, 80.0, 5.0)
_FEWEST = 100


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """Changes of items: one number per item and one time in days per change, in any order."""

    name: str
    item: Ints
    days: Floats


def figure_11(history: ChangeLog) -> PaperFigure:
    """Gaps of the items that change every 10 days on average; every 20, 40, 80 or 5 where those are few.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> item = np.repeat(np.arange(50), 100)
    >>> made = ChangeLog("made", item, np.cumsum(rng.exponential(10, item.size)))
    >>> figure_11(made).panels[0].log_y
    True
    """
    for interval in _INTERVALS_DAYS:
        gaps = gaps_near(history.item, history.days, interval, tolerance=0.15)
        if gaps.size >= _FEWEST:
            break
    else:
        raise InputError(f"{history.name}: too few items change often enough to show gaps between changes")
    # How many gaps are up to one mean gap long, up to two, and so on.
    found = gap_histogram(gaps, 4, width=float(gaps.mean()))
    both = (found.share, found.expected)
    ours, model = (", ".join(f"{100 * share:.0f}" for share in shares) for shares in both)
    return PaperFigure(
        f"Figure 11, {history.name}",
        "gaps between changes",
        "for pages that change every 10 days on average, the shares of gaps lie on the Poisson line.",
        f"{gaps.size} gaps of items of {history.name} that change every {interval:g} days on average. "
        f"Of these {ours} % last up to 1, 2, 3 and 4 mean gaps (Poisson: {model}). "
        f"{check_items(history.item, history.days).sentence}",
        (poisson_panel(gap_histogram(gaps), title=""),),
    )
