"""Seasons: days, weekends, and clock time against operational time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.replay.simulated_world import clock_times, working_hours


@given(day=st.floats(0, 1), week=st.floats(0, 0.99), seconds=st.floats(-1e10, 1e10))
@settings(deadline=None)
def test_clock_and_operational_time_are_inverse(day: float, week: float, seconds: float) -> None:
    season = working_hours(day, week)
    there = season.operational([seconds])
    assert season.operational(clock_times(season, there)) == pytest.approx(there, abs=1e-3)
