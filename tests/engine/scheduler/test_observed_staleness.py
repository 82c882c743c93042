"""What the refresh of an observed item gains, by objective, and which refreshes target lags demand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.scheduler.test_picker import NOW, policy

from afresh.engine.scheduler.lag_tiers import LagTargets
from afresh.engine.scheduler.observed_staleness import ObservedStaleness, RefreshTerms
from afresh.engine.scheduler.row_policy import RowPolicy, Tier
from afresh.engine.settings.refresh_goals import RefreshGoal
from afresh.sources.capabilities import StalenessReport
from afresh.values.arrays import Float64s

AGE = RefreshGoal("age")


def report(
    stale_for_s: float | None, rate: float, cost_s: float, below: tuple[str, ...] = ()
) -> StalenessReport:
    since_s = None if stale_for_s is None else NOW - stale_for_s
    return StalenessReport(5.0, True, since_s, True, rate, rate, rate, cost_s, below, 1.0, since_s)


def seen(reports: list[StalenessReport], *goals: RefreshGoal) -> ObservedStaleness:
    named = {f"v{row}": row for row in range(len(reports))}
    given = goals or (AGE,) * len(reports)
    below = {row: [named[key] for key in one.below] for row, one in enumerate(reports)}
    return ObservedStaleness.of(dict(enumerate(reports)), below, dict(enumerate(given)))


def terms_of(costs: list[float], share: float = 1.0) -> RefreshTerms:
    cost = np.array(costs)
    return RefreshTerms(np.ones(cost.size), cost, cost / share)


def values(staleness: ObservedStaleness, costs: list[float], share: float = 1.0) -> Float64s:
    return staleness.correct_values(np.zeros(len(costs)), terms_of(costs, share), NOW)


def test_by_age_the_gain_grows_until_every_view_has_its_turn() -> None:
    dear, cheap = report(600.0, 1.0, 60.0), report(1.0, 0.1, 0.1)
    worth = values(seen([dear, cheap]), [60.0, 0.1])
    assert worth[0] == pytest.approx((600.0 / 1.0 + 600.0**2 / 2) / 60.0)
    assert worth[0] > worth[1] > 0
    lost = values(seen([dear, cheap], RefreshGoal(), RefreshGoal()), [60.0, 0.1], share=0.05)
    assert lost[0] == -np.inf  # by freshness the same view is given up
    assert lost[1] > 0


def test_a_view_is_stale_since_before_the_reading_that_finds_it_so() -> None:
    """After a refresh of a minute, the first reading finds changes that came during the refresh."""
    looked = StalenessReport(5.0, True, NOW, True, 0.1, 0.1, 0.1, 60.0, complete_s=NOW - 61.0)
    worth = values(seen([looked]), [60.0])
    since_s = 61.0 - 1 / 0.1 + 61.0 / np.expm1(6.1)  # the first of about six changes
    assert worth[0] == pytest.approx((since_s / 0.1 + since_s**2 / 2) / 60.0)
    rare = StalenessReport(5.0, True, NOW, True, 1e-6, 1e-6, 1e-6, 60.0, complete_s=NOW - 4.0)
    assert values(seen([rare]), [60.0])[0] == pytest.approx((2.0 / 1e-6 + 2.0) / 60.0, rel=1e-5)
    unknown = StalenessReport(5.0, True, NOW - 4.0, True, 1.0, 1.0, 1.0, 60.0)  # no reading found it complete
    assert values(seen([unknown]), [60.0])[0] == pytest.approx((4.0 + 8.0) / 60.0)


def test_what_brings_a_given_up_view_back_is_known() -> None:
    reports = [report(600.0, 1.0, 60.0), report(1.0, 0.1, 0.1)]
    staleness, terms = seen(reports, RefreshGoal(), RefreshGoal()), terms_of([60.0, 0.1], 0.05)
    factor = staleness.gain_shortage(terms)
    assert factor[1] == 1.0
    weight = np.array([1.01 * factor[0], 1.0])
    heavier = RefreshTerms(weight, terms.cost, terms.paid_off_s)
    assert staleness.correct_values(np.zeros(2), heavier, NOW)[0] > 0


def test_a_view_over_a_view_is_one_job_with_it() -> None:
    lower, upper = report(50.0, 0.1, 2.0), report(100.0, 0.2, 1.0, below=("v0",))
    worth = values(seen([lower, upper]), [2.0, 1.0])
    gain = [50.0 / 0.1 + 50.0**2 / 2, 100.0 / 0.2 + 100.0**2 / 2]
    assert worth[0] == pytest.approx(gain[0] / 2.0)
    assert worth[1] == pytest.approx(sum(gain) / 3.0)
    # A lower view that changes all the time does not keep the upper one waiting.
    hectic = values(seen([report(0.5, 5.0, 2.0), upper]), [2.0, 1.0])
    assert hectic[1] > hectic[0]


def observed_policy(staleness: ObservedStaleness, share: float) -> RowPolicy:
    chosen = policy(staleness.rows.size, polled_s=np.full(staleness.rows.size, NOW - 100.0))
    cost_s = staleness.cost_s
    chosen.staleness, chosen.money.paid_off_s = staleness, cost_s / share
    chosen.money.lags = LagTargets(staleness, np.ones(cost_s.size), cost_s / share, share)
    return chosen


def test_a_view_without_time_left_goes_first_and_nothing_starts_that_breaks_a_target() -> None:
    goal = RefreshGoal("age", target_lag_s=120.0, delay_s=6.0, behind_s=1.0)
    reports = [report(110.0, 0.01, 2.0), report(5000.0, 1.0, 5.0), report(20.0, 0.1, 1.0)]
    staleness = seen(reports, goal, AGE, AGE)
    found = observed_policy(staleness, 0.1).priorities(NOW)
    assert found.tier.tolist() == [Tier.RANKED, Tier.BARRED, Tier.BARRED]  # 6.5 s are left for the first one
    late = seen([report(117.0, 0.01, 2.0), *reports[1:]], goal, AGE, AGE)
    chosen = observed_policy(late, 0.1)
    assert chosen.priorities(NOW).tier[0] == Tier.URGENT
    assert chosen.held_back == "targets"
    early = seen([report(10.0, 0.01, 2.0), *reports[1:]], goal, AGE, AGE)
    assert observed_policy(early, 0.1).priorities(NOW).tier.tolist() == [Tier.RANKED] * 3


def test_a_target_that_does_not_fit_gives_no_precedence() -> None:
    goal = RefreshGoal("age", target_lag_s=20.0, delay_s=6.0)
    staleness = seen([report(19.0, 1.0, 15.0), report(1.0, 1.0, 0.1)], goal, AGE)
    chosen = observed_policy(staleness, 0.1)
    lags = chosen.money.lags
    assert lags is not None
    assert not lags.feasibility.fits[0]
    assert np.isinf(lags.feasibility.missing[0])
    assert chosen.priorities(NOW).tier.tolist() == [Tier.RANKED, Tier.RANKED]
