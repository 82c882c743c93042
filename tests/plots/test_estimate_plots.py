"""The pictures of the Poisson check and of fitted decay functions."""

from __future__ import annotations

import numpy as np

from afresh.model.decay import Exponential, Lomax, Weibull
from afresh.plots.estimate_plots import decay_panels, poisson_panel
from afresh.plots.line_plot import captioned_figure
from afresh.plots.style import render
from afresh.rates.decay_fit import fit_decays
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
    figure = captioned_figure([poisson_panel(gap_histogram(GAPS))], words, 62)
    assert figure.get_supxlabel().replace("\n", " ") == words
    assert render(figure, "png").startswith(b"\x89PNG")


def test_the_observed_curve_is_drawn_as_steps_beside_the_best_classes() -> None:
    found = fit_decays(Exponential(0.26).sample(np.random.default_rng(2), 300))
    lifetimes, copies = decay_panels(found, "y", most=2)
    observed, *fits = lifetimes.series
    assert [fit.label for fit in fits] == [fit.words for fit in found.fits[:2]]
    assert observed.y[0] == 1
    assert observed.y[-1] == 0
    assert np.all(np.diff(observed.y) <= 0)
    level = np.diff(observed.x) > 0
    assert np.all(np.diff(observed.y)[level] == 0)
    assert lifetimes.x_label == copies.x_label == "time, years"


def test_a_copy_refreshed_in_mid_life_lies_below_the_lifetime_of_an_ageing_item() -> None:
    found = fit_decays(Weibull(0.3, 2.0).sample(np.random.default_rng(2), 800))
    _, copies = decay_panels(found)
    _, mid_life, restarted = copies.series
    assert np.all(mid_life.y <= restarted.y + 1e-9)


def test_an_infinite_mean_lifetime_leaves_out_its_curve() -> None:
    found = fit_decays(Lomax(0.6, 1.0).sample(np.random.default_rng(3), 2000))
    assert found.best.name == "lomax"
    _, copies = decay_panels(found)
    assert len(copies.series) == 2


def test_the_finding_on_decay_stands_below() -> None:
    found = fit_decays([1.0, 2.0, 5.0], [1, 0, 1])
    figure = captioned_figure(decay_panels(found, "d"), found.sentence, 120)
    assert figure.get_supxlabel() == found.sentence
    assert render(figure, "svg").startswith(b"<?xml")
