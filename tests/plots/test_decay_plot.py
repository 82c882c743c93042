"""The picture of fitted decay functions."""

from __future__ import annotations

import numpy as np

from afresh.model.decay import Exponential, Lomax, Weibull
from afresh.plots.estimate_plots import decay_figure, decay_panels
from afresh.plots.style import render
from afresh.rates.decay_fit import fit_decays


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


def test_the_finding_stands_below() -> None:
    found = fit_decays([1.0, 2.0, 5.0], [1, 0, 1])
    figure = decay_figure(found, "d")
    assert figure.get_supxlabel() == found.sentence
    assert render(figure, "svg").startswith(b"<?xml")
