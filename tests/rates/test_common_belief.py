"""Parts of the items, estimated with what all tell together, have the rates of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.rates.common_belief import PollTotals, learn_common
from afresh.rates.estimator import ESTIMATORS, estimate_polls
from afresh.rates.likelihood import rate_grid
from afresh.rates.poll_table import PollTable, polls_from_times


@pytest.fixture(scope="module")
def polls() -> PollTable:
    rng = np.random.default_rng(2)
    item = np.repeat(np.arange(400), 25)
    times = np.cumsum(rng.standard_exponential(item.size).reshape(400, 25), axis=1).ravel()
    changed = rng.random(item.size) < -np.expm1(-rng.gamma(0.5, 1.0, 400)[item])
    return polls_from_times(item, times, changed)


@pytest.mark.parametrize("method", ["grid", "gamma", "mle"])
def test_parts_have_the_rates_of_the_whole(polls: PollTable, method: str) -> None:
    common = learn_common(polls, lambda _: PollTotals.of(polls), ESTIMATORS[method], hour=1 / 24)
    whole, _ = common.estimate(polls, 0.9)
    parts = [common.estimate(polls.between(first, first + 100), 0.9)[0] for first in range(0, 400, 100)]
    for name in ("rate", "low", "high", "polls"):
        together = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_allclose(together, getattr(whole, name), rtol=1e-12)


@pytest.mark.parametrize("method", ["grid", "gamma", "mle"])
def test_without_season_drift_and_jumps_rates_are_those_of_the_polls(polls: PollTable, method: str) -> None:
    common = learn_common(
        polls,
        lambda _: PollTotals.of(polls),
        ESTIMATORS[method],
        hour=1 / 24,
        horizon=np.inf,
        season=False,
        seeks_jumps=False,
    )
    found, alone = common.estimate(polls, 0.9)[0], estimate_polls(polls, method=method)
    np.testing.assert_allclose(found.rate, alone.rate, rtol=1e-9)


def test_totals_of_parts_add_up(polls: PollTable) -> None:
    parts = [PollTotals.of(polls.between(first, first + 200)) for first in (0, 200)]
    together = sum(parts, start=PollTotals())
    np.testing.assert_allclose(together.grid(), rate_grid(polls), rtol=1e-12)
    assert together.latest == polls.end.max() if polls.end is not None else False
