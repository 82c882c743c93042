"""Season and drift looked for in logs where each item is polled at its own pace."""

from __future__ import annotations

import numpy as np
import pytest
from tests.rates.logs import HOUR, steady_log
from tests.slow_cases import with_slow_cases

from afresh.rates.estimator import find_regime
from afresh.rates.poll_table import PollTable
from afresh.rates.season import HOURS, Season
from afresh.rates.segments import Segments


@pytest.mark.parametrize(
    ("fast", "slow", "share"),
    with_slow_cases([(24.0, 1 / 365, 0.3), (3.0, 0.1, 0.3), (24.0, 1 / 30, 0.1)], kept=1),
)
def test_steady_items_polled_each_at_its_own_pace_are_neither_seasonal_nor_drifting(
    fast: float, slow: float, share: float
) -> None:
    found = [find_regime(steady_log(fast, slow, share, seed), hour=HOUR) for seed in range(10)]
    assert sum(regime.season.is_supported for regime in found) <= 1
    assert sum(np.isfinite(regime.horizon) for regime in found) <= 1


def test_a_season_is_found_among_items_polled_each_at_its_own_pace() -> None:
    rng = np.random.default_rng(3)
    by_day = np.where(np.arange(HOURS) % 24 < 12, 0.1, 1.9)
    season = Season(by_day, HOUR)
    pace = np.repeat(np.where(np.arange(300) % 3 == 0, 0.1, 0.4), 200)
    elapsed = pace * rng.exponential(1.0, pace.size)
    runs, _ = Segments.of(np.repeat(np.arange(300), 200), elapsed)
    until = np.cumsum(elapsed)
    end = until - runs.spread((until - elapsed)[runs.starts])
    passed = season.operational(end) - season.operational(end - elapsed)
    changed = rng.random(pace.size) < -np.expm1(-0.5 * passed / pace)
    found = find_regime(PollTable(np.repeat(np.arange(300), 200), elapsed, changed, 300, end=end), hour=HOUR)
    assert np.corrcoef(found.season.profile, by_day)[0, 1] > 0.9
    assert found.horizon == np.inf
