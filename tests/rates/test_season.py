"""Seasons: found where they are, off where they are not, and operational time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rates.logs import PROFILES, fitted

from afresh.rates.poll_table import polls_from_intervals, polls_from_times
from afresh.rates.season import HOURS, Season, fit_season
from afresh.values.errors import InputError


@pytest.mark.parametrize("seed", range(4))
def test_no_season_is_found_where_there_is_none(seed: int) -> None:
    season = fitted("flat", seed)
    assert not season.is_supported
    assert np.all(season.profile == 1.0)


@pytest.mark.parametrize("name", ["day and night", "week-end"])
def test_a_season_is_found_and_looks_like_it(name: str) -> None:
    season = fitted(name, 0)
    assert season.is_supported
    assert season.gain > 0
    assert season.profile.mean() == pytest.approx(1.0)
    assert np.corrcoef(season.profile, PROFILES[name])[0, 1] > 0.85


def test_what_happened_once_to_all_items_is_no_season() -> None:
    rng = np.random.default_rng(1)
    item, times = np.repeat(np.arange(200), 170), np.tile(np.arange(170) * 4.0 + 1.0, 200)
    burst = (times > 200) & (times < 210)
    polls = polls_from_times(item, times, (rng.random(item.size) < 0.03) | burst)
    assert not fit_season(polls, np.full(200, 0.01), hour=1.0).is_supported


def test_polls_in_operational_time_keep_their_stamps_inside() -> None:
    season = Season(PROFILES["week-end"] / PROFILES["week-end"].mean(), 1.0)
    polls = polls_from_times([0, 0, 0], [0.0, 60.0, 70.0], [0, 1, 0], modified=[np.nan, 40.0, 40.0])
    applied = season.apply_to(polls)
    assert applied.since is not None
    assert 0 < applied.since[0] < applied.elapsed[0] < polls.elapsed[0]
    assert applied.elapsed.sum() == pytest.approx(float(season.operational(70.0) - season.operational(0.0)))


def test_a_stamp_that_is_unknown_stays_unknown_in_operational_time() -> None:
    """``afresh estimate`` failed on a log with a season in which only some polls had a stamp."""
    season = Season(PROFILES["week-end"] / PROFILES["week-end"].mean(), 1.0)
    polls = polls_from_times([0, 0, 0], [0.0, 60.0, 70.0], [0, 1, 1], modified=[np.nan, np.nan, 65.0])
    since = season.apply_to(polls).since
    assert since is not None
    assert np.isnan(since).tolist() == [True, False]


def test_polls_at_one_hour_of_the_day_cannot_show_a_season() -> None:
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(200), 50)
    times = np.tile(np.arange(50) * 24.0, 200)
    polls = polls_from_times(item, times, rng.random(item.size) < 0.4)
    assert not fit_season(polls, np.full(200, 0.02), hour=1.0).is_supported


@given(
    st.lists(st.floats(0.01, 10), min_size=HOURS, max_size=HOURS),
    st.lists(st.floats(-1e5, 1e5), min_size=2, max_size=20),
)
def test_operational_time_grows_and_keeps_full_weeks(shape: list[float], times: list[float]) -> None:
    profile = np.array(shape) / np.mean(shape)
    season = Season(profile, 3600.0)
    ordered = np.sort(times)
    assert np.all(np.diff(season.operational(ordered)) >= -1e-6)
    week = HOURS * 3600.0
    shifted = season.operational(ordered + week)
    np.testing.assert_allclose(shifted, season.operational(ordered) + week, atol=1e-6)


def test_intervals_without_times_are_refused() -> None:
    with pytest.raises(InputError, match="needs the times"):
        fit_season(polls_from_intervals(1.0, True), np.ones(1))
