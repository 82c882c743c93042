"""Seasons: found where they are, off where they are not, and operational time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.rates.estimate import estimate_polls
from afresh.rates.observations import Float64s, Polls, polls_from_times, polls_of
from afresh.rates.season import HOURS, Season, fit_season
from afresh.values.errors import InputError

hours = np.arange(HOURS)
PROFILES = {
    "flat": np.ones(HOURS),
    "day and night": 1.0 + 0.9 * np.sin(hours / 24 * 2 * np.pi),
    "week-end": np.where(hours < 48, 0.1, 1.0),
}


def world(profile: Float64s, seed: int, items: int = 250, days: int = 60) -> Polls:
    """Items that change by the profile, polled every nine hours or so."""
    rng = np.random.default_rng(seed)
    season = Season(profile / profile.mean(), 1.0)
    rows, times, bits = [], [], []
    for item in range(items):
        looks = np.arange(9.0 * rng.random(), 24.0 * days, 9.3)
        looks = looks + 4.0 * rng.random(looks.size)
        # Poisson in operational time, which equals clock time at full weeks only: hence a margin.
        changes = np.sort(rng.random(rng.poisson(rng.gamma(1.0, 0.02) * 24 * days)) * 24 * days)
        seen = np.diff(np.searchsorted(changes, season.operational(looks))) > 0
        rows.append(np.full(looks.size, item))
        times.append(looks)
        bits.append(np.concatenate(([False], seen)))
    return polls_from_times(np.concatenate(rows), np.concatenate(times), np.concatenate(bits), items=items)


def fitted(name: str, seed: int) -> Season:
    polls = world(PROFILES[name], seed)
    return fit_season(polls, estimate_polls(polls, method="gamma").rate, hour=1.0)


@pytest.mark.parametrize("seed", range(4))
def test_no_season_is_found_where_there_is_none(seed: int) -> None:
    season = fitted("flat", seed)
    assert not season.supported
    assert np.all(season.profile == 1.0)


@pytest.mark.parametrize("name", ["day and night", "week-end"])
def test_a_season_is_found_and_looks_like_it(name: str) -> None:
    season = fitted(name, 0)
    assert season.supported
    assert season.gain > 0
    assert season.profile.mean() == pytest.approx(1.0)
    assert np.corrcoef(season.profile, PROFILES[name])[0, 1] > 0.85


def test_what_happened_once_to_all_items_is_no_season() -> None:
    rng = np.random.default_rng(1)
    item, times = np.repeat(np.arange(200), 170), np.tile(np.arange(170) * 4.0 + 1.0, 200)
    burst = (times > 200) & (times < 210)
    polls = polls_from_times(item, times, (rng.random(item.size) < 0.03) | burst)
    assert not fit_season(polls, np.full(200, 0.01), hour=1.0).supported


def test_polls_in_operational_time_keep_their_stamps_inside() -> None:
    season = Season(PROFILES["week-end"] / PROFILES["week-end"].mean(), 1.0)
    polls = polls_from_times([0, 0, 0], [0.0, 60.0, 70.0], [0, 1, 0], modified=[np.nan, 40.0, 40.0])
    applied = season.applied(polls)
    assert applied.since is not None
    assert 0 < applied.since[0] < applied.elapsed[0] < polls.elapsed[0]
    assert applied.elapsed.sum() == pytest.approx(float(season.operational(70.0) - season.operational(0.0)))


def test_polls_at_one_hour_of_the_day_cannot_show_a_season() -> None:
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(200), 50)
    times = np.tile(np.arange(50) * 24.0, 200)
    polls = polls_from_times(item, times, rng.random(item.size) < 0.4)
    assert not fit_season(polls, np.full(200, 0.02), hour=1.0).supported


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
        fit_season(polls_of(1.0, True), np.ones(1))
