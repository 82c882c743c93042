"""A season is learned where there is one."""

from __future__ import annotations

import numpy as np

from afresh.policy.adaptive.season_clock import SeasonClock


def test_a_season_is_learned_and_its_absence_too() -> None:
    rng = np.random.default_rng(4)
    daily, flat = SeasonClock(1.0), SeasonClock(1.0)
    last = np.zeros(200)
    for hour in np.arange(3.0, 2000.0, 3.0):
        items = rng.choice(200, 20, replace=False)
        begin, now = last[items], np.full(20, hour)
        day = np.arange(int(begin.min()), int(hour))
        noon = (day % 24 >= 10) & (day % 24 < 14)
        inside = day[:, None] >= begin
        daily.record(
            items, now, now - begin, rng.random(20) < -np.expm1(-0.05 * (noon[:, None] & inside).sum(0))
        )
        flat.record(items, now, now - begin, rng.random(20) < -np.expm1(-0.008 * (now - begin)))
        last[items] = hour
    for clock in (daily, flat):
        clock.refit(np.full(200, 0.008))
    assert flat.season is not None
    assert daily.season is not None
    assert not flat.season.is_supported
    assert daily.season.is_supported
    quarter = daily.read(np.array([168.0 + 10, 168.0 + 14]))
    assert quarter[1] - quarter[0] > 7.0
