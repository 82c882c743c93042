"""The picture of the Poisson check."""

from __future__ import annotations

import numpy as np

from afresh.plots.estimate_plots import poisson_figure, poisson_panel
from afresh.plots.style import render
from afresh.rates.poisson_check import gap_histogram

GAPS = np.random.default_rng(0).standard_exponential(500) * 10


def test_the_model_is_a_straight_line_on_the_logarithmic_axis() -> None:
    panel = poisson_panel(gap_histogram(GAPS, bins=20), "h")
    line, dots = panel.series
    assert panel.log_y
    assert panel.x_label == "gap between changes, hours"
    assert np.ptp(np.diff(np.log(line.y))) < 1e-9
    assert dots.mark == "dots"


def test_empty_bins_are_left_out() -> None:
    histogram = gap_histogram([1.0, 1.0, 9.0], bins=10, width=1.0)
    _, dots = poisson_panel(histogram).series
    assert dots.x.tolist() == [1.5, 9.5]
    assert np.all(dots.y > 0)


def test_the_sentence_stands_below() -> None:
    words = "Changes come in bursts: the variance of the gaps is 3 times that of the Poisson model."
    figure = poisson_figure(gap_histogram(GAPS), words)
    assert figure.get_supxlabel().replace("\n", " ") == words
    assert render(figure, "png").startswith(b"\x89PNG")
