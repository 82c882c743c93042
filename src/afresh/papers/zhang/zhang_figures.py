"""Zhang, Tang, Yang & Li 2007: the curves of Figures 2 and 4, and the mean estimate and polls of SAA."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from afresh.papers.report import PaperFigure
from afresh.papers.zhang.bias_tables import expectation, spread
from afresh.papers.zhang.simulated_pages import MORE_POLLS, SEED, EstimatorTrial, simulate_saa
from afresh.plots.panels import Panel, Series
from afresh.values.arrays import Floats

_POLLS = (3, 7, 15, 35)
_RUNS = 4000


def figures(pages: Mapping[str, EstimatorTrial]) -> tuple[PaperFigure, ...]:
    """Return every figure that shows numbers; ``pages`` are the trials of Figure 4, by estimator name."""
    return (_figure_2(), _figure_4(pages), _saa())


def _figure_2() -> PaperFigure:
    r, label = np.linspace(0.02, 4, 200), "r, changes per poll interval"
    biases = []
    for a in (0.5, 0.4):
        curves = (Series(f"{n} polls", r, expectation(r, n, a) / r) for n in _POLLS)
        unbiased = Series("no bias", r, np.ones_like(r), "dashed")
        biases.append(Panel(f"a = {a:g}", label, "E[r̂]/r", (*curves, unbiased)))
    wide = r[r >= 0.2]
    by_a = tuple(Series(f"a = {a:g}", wide, spread(wide, 7, a)) for a in (0.7, 0.5, 0.4, 0.2))
    spreads = Panel("Seven polls", label, "σ/r", by_a)
    return PaperFigure.of(
        "Figure 2",
        "bias of the log family",
        "E[r̂]/r for a = 0.5 falls as r grows, fastest for small n.",
        "the same by exact sums, beside a = 0.4, which stays near 1 for longer, and the spread it costs.",
        *biases,
        spreads,
    )


def _figure_4(pages: Mapping[str, EstimatorTrial]) -> PaperFigure:
    edges = np.arange(0, 3.01, 0.25)
    middle = (edges[1:] + edges[:-1]) / 2
    made = [trial for trial in pages.values() if trial.name != MORE_POLLS]
    shares = [Series(t.name, middle, np.histogram(t.ratio, edges)[0] / t.ratio.size, "bars") for t in made]
    places = np.arange(len(made), dtype=float)
    polls = Series("", places, np.array([trial.polls for trial in made]), "bars")
    return PaperFigure.of(
        "Figure 4",
        "estimate against truth",
        "the ratio of estimate to true rate for 185 pages of .com sites: SAA's lies closest around 1, X/T's "
        "least so.",
        f"the ratio for simulated pages (seed {SEED}), and the polls that each estimator spends, with the "
        "first visit.",
        Panel("How near", "estimate / true rate", "share of the pages", tuple(shares)),
        Panel("At what price", "", "polls per page", (polls,), x_names=tuple(t.name for t in made)),
    )


def _saa() -> PaperFigure:
    ratios = np.geomspace(0.03, 30, 19)
    rng = np.random.default_rng(SEED)
    rates = np.repeat(ratios, _RUNS)
    kinds = {"disjoint ranges, capped": False, "the paper's letter": True}
    runs = {name: simulate_saa(rates, 1.0, rng, paper=paper) for name, paper in kinds.items()}

    def over(name: str, values: Floats) -> Series:
        return Series(name, ratios, values.reshape(-1, _RUNS).mean(axis=1))

    x = "λ/f₀, changes per poll interval at the start"
    means = [over(name, run.rate / rates) for name, run in runs.items()]
    polls = [over(name, run.polls.astype(np.float64)) for name, run in runs.items()]
    return PaperFigure.of(
        "§3, SAA",
        "how well and how fast SAA finds a rate from a wrong guess",
        "no figure; that its estimate stays in the range where the estimator is good.",
        "mean of λ̂/λ over simulated Poisson pages: a little high for slow pages, a quarter low for fast "
        "ones; and the polls spent.",
        Panel("Estimate", x, "mean of λ̂/λ", tuple(means), log_x=True),
        Panel("Polls", x, "mean polls spent", tuple(polls), log_x=True),
    )
