"""Whether target lags fit a budget, and which do not."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.allocation.lag_targets import LagJobs, check_lags, lag_demand


def jobs(
    targets: list[float], costs: list[float], rates: list[float], below: tuple[tuple[int, int], ...] = ()
) -> LagJobs:
    size = len(targets)
    target_s, cost_s, rate_per_s = (np.array(each, dtype=np.float64) for each in (targets, costs, rates))
    return LagJobs(target_s, cost_s, rate_per_s, np.full(size, 15.0), np.ones(size), below)


def test_a_view_that_changes_rarely_needs_little() -> None:
    always = check_lags(jobs([120.0], [6.0], [np.inf]), 1.0)
    rarely = check_lags(jobs([120.0], [6.0], [1 / 3480.0]), 1.0)
    assert always.needed == pytest.approx(6 / 120)
    assert rarely.needed == pytest.approx(6 / 3600)


def test_the_budget_that_is_said_to_do_does_and_a_little_less_does_not() -> None:
    given = jobs([120.0, 300.0, 600.0], [2.0, 4.0, 30.0], [0.1, 0.01, 1.0])
    found = check_lags(given, 0.01)
    assert not found.fits.all()
    assert check_lags(given, found.needed).fits.all()
    assert not check_lags(given, 0.99 * found.needed).fits.all()
    named = np.flatnonzero(~found.fits)
    assert np.all(found.missing[named] > 0)
    assert np.all(found.missing[found.fits] == 0)


def test_a_target_shorter_than_its_refresh_is_named_whatever_the_budget() -> None:
    found = check_lags(jobs([20.0, 3600.0], [10.0, 10.0], [1.0, 1.0]), 1.0)
    assert found.fits.tolist() == [False, True]
    assert np.isinf(found.missing[0])
    assert np.isfinite(found.needed)  # what the other target needs


def test_a_chain_is_one_job_with_the_least_target() -> None:
    given = jobs([np.inf, 600.0, 300.0], [10.0, 1.0, 2.0], [0.01, 0.02, 0.05], ((0, 1), (0, 2)))
    found = check_lags(given, 1.0)
    assert found.target_s.tolist() == [300.0, 600.0, 300.0]
    assert given.chain_cost_s.tolist() == [10.0, 11.0, 12.0]
    period_s = 300.0 + 1 / 0.05
    often = max(1 / (300.0 + 1 / 0.01), (1 - np.exp(-0.01 * period_s)) / period_s)
    expected = 10.0 * often + 1.0 / (600.0 + 1 / 0.02) + 2.0 / period_s
    assert found.demand == pytest.approx(expected)


def test_the_heavier_of_two_targets_is_kept() -> None:
    given = jobs([100.0, 100.0], [3.0, 3.0], [np.inf, np.inf])
    heavier = LagJobs(given.target_s, given.cost_s, given.rate_per_s, given.delay_s, np.array([1.0, 2.0]))
    found = check_lags(heavier, 0.05)
    assert found.fits.tolist() == [False, True]
    assert found.missing.tolist() == [pytest.approx(0.01), 0.0]
    assert lag_demand(heavier, found.fits).sum() <= 0.05


def test_both_conditions_are_named() -> None:
    """The first target lacks budget for the sum of all refreshes, and for the wait for the dear view."""
    given = jobs([120.0, 90.0, np.inf], [5.0, 5.0, 20.0], [np.inf, np.inf, 0.001])
    found = check_lags(given, 0.08)
    assert found.fits.tolist() == [False, False, False]
    assert found.wait_missing[0] == pytest.approx(20.0 / (120.0 - 5.0 - 15.0) - 0.08)
    assert found.wait_missing[1] == pytest.approx(20.0 / (90.0 - 5.0 - 15.0) - 0.08)
    assert found.demand_missing.tolist() == [0.0, 0.0, 0.0]  # each alone would be kept by this sum
    scarce = check_lags(given, 0.05)
    assert scarce.demand_missing[1] == pytest.approx(5.0 / 90.0 - 0.05)
    assert scarce.wait_missing[1] > scarce.demand_missing[1]
    assert scarce.missing[1] == scarce.wait_missing[1]


def test_a_target_that_is_too_short_also_tells_what_its_refreshes_would_lack() -> None:
    found = check_lags(jobs([20.0], [10.0], [np.inf]), 0.1)
    assert np.isinf(found.missing[0])
    assert found.least_s[0] == 25.0
    assert found.demand_missing[0] == pytest.approx(10.0 / 20.0 - 0.1)
