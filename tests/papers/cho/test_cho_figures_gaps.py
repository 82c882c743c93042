"""Cho & Garcia-Molina 2000, Figure 11 on a history."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.papers.cho.cho_figures import ChangeLog, figure_11, gaps_near
from afresh.values.errors import InputError


def history(mean_gap: float, power: float = 1.0) -> ChangeLog:
    gaps = np.random.default_rng(3).standard_exponential((60, 80)) ** power
    gaps *= mean_gap / gaps.mean()
    return ChangeLog("made", np.repeat(np.arange(60), 80), np.cumsum(gaps, axis=1).ravel())


def test_poisson_changes_lie_on_the_line() -> None:
    figure = figure_11(history(10.0))
    assert "change every 10 days on average" in figure.ours_shows
    assert "last up to 1, 2, 3 and 4 mean gaps (Poisson: 63, 23, 9, 3)" in figure.ours_shows
    assert "look Poisson (95% would if all were)" in figure.ours_shows
    line, dots = figure.panels[0].series
    expected = np.interp(dots.x, line.x, line.y)
    frequent = expected > 0.02
    assert np.max(np.abs(np.log(dots.y[frequent] / expected[frequent]))) < 0.4


def test_bursts_are_told() -> None:
    assert "% change in bursts" in figure_11(history(10.0, power=2.0)).ours_shows


def test_items_with_a_mean_gap_near_the_asked_one() -> None:
    rng = np.random.default_rng(6)
    times = np.cumsum(rng.standard_exponential((200, 101)) * np.repeat([10.0, 30.0], 100)[:, None], axis=1)
    near = gaps_near(ChangeLog("made", np.repeat(np.arange(200), 101), times.ravel()), 10.0)
    assert 50 * 100 < near.size <= 100 * 100
    assert near.mean() == pytest.approx(10, rel=0.03)
    assert gaps_near(ChangeLog("made", np.array([0]), np.array([1.0])), 10.0).size == 0


def test_another_interval_is_taken_where_ten_days_are_rare() -> None:
    assert "change every 40 days on average" in figure_11(history(40.0)).ours_shows


def test_a_history_without_enough_changes_is_refused() -> None:
    with pytest.raises(InputError, match="made: too few items change often enough"):
        figure_11(ChangeLog("made", np.array([0, 0]), np.array([1.0, 2.0])))
