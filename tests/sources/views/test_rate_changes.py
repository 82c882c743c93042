"""Sharp changes of a table's rate: what the tally forgets, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.sources.views.rates import table_rates
from afresh.sources.views.tracker import ViewTracker

_EACH_S = 5.0


def _rate(tracker: ViewTracker) -> float:
    return float(table_rates(tracker.tallies).rate[0])


def _read(tracker: ViewTracker, rate_per_s: float, readings: int, seed: int = 1) -> None:
    for rows in np.random.default_rng(seed).poisson(rate_per_s * _EACH_S, readings):
        tracker.count_writes("t", (_EACH_S, int(rows)))


@pytest.mark.parametrize("rate_per_s", [0.06, 0.2])
def test_after_an_idle_night_the_rate_is_that_of_the_day(rate_per_s: float) -> None:
    tracker = ViewTracker()
    _read(tracker, 0.0, 3000)
    _read(tracker, rate_per_s, 60)
    assert rate_per_s / 2 < _rate(tracker) < 2 * rate_per_s


def test_a_short_idle_phase_is_forgotten_within_two_minutes() -> None:
    """Ten idle minutes, and then two minutes of a change each five seconds."""
    tracker = ViewTracker()
    _read(tracker, 0.0, 120)
    _read(tracker, 0.2, 24)
    assert 0.1 < _rate(tracker) < 0.4


def test_after_a_busy_day_the_rate_falls() -> None:
    tracker = ViewTracker()
    _read(tracker, 0.2, 1000)
    _read(tracker, 0.01, 200)
    assert _rate(tracker) == pytest.approx(0.01, rel=0.6)


def test_a_constant_rate_keeps_its_long_memory() -> None:
    tracker = ViewTracker()
    _read(tracker, 0.05, 3000)
    assert tracker.tallies["t"].readings > 2500


def test_the_last_readings_are_saved() -> None:
    """Each process of a cron job reads once: a change of the rate is found all the same."""
    tracker = ViewTracker()
    _read(tracker, 0.0, 1000)
    tracker = _restarted(tracker)
    for turn in range(30):
        _read(tracker, 0.2, 1, seed=turn)
        tracker = _restarted(tracker)
    assert _rate(tracker) == pytest.approx(0.2, rel=0.5)


def _restarted(tracker: ViewTracker) -> ViewTracker:
    packed = tracker.pack().replace(b'"time_s":null', b'"time_s":5.0')  # as after a reading
    return ViewTracker.unpack(packed)
