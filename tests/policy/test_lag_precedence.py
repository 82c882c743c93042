"""A view takes precedence only when its slack is used up; simulated in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from afresh.policy.lag_precedence import DueRefreshes, find_precedence
from afresh.values.arrays import Bools, Float64s

_STEP_S = 0.1


@dataclass
class ViewWorld:
    """Views that change at random; ``share`` of the time may be spent on refreshes."""

    cost_s: Float64s
    target_s: Float64s
    fresh_s: Float64s  # the mean time until a fresh view changes; 0: at once
    share: float
    seed: int = 1

    def run(self, choose: Callable[[Float64s], int | None], lasts_s: float) -> tuple[Float64s, Float64s]:
        """Return for each view the largest lag and the share of time beyond its target, if ``choose`` picks
        the next refresh by the lags (−1 for a fresh view)."""
        rng, size = np.random.default_rng(self.seed), self.cost_s.size
        changed_s = rng.exponential(self.fresh_s)
        worst, late_s, now_s = np.zeros(size), np.zeros(size), 0.0
        while now_s < lasts_s:
            lags = np.where(changed_s <= now_s, now_s - changed_s, -1.0)
            chosen = choose(lags)
            if chosen is None:
                now_s += _STEP_S
                continue
            ended_s = now_s + self.cost_s[chosen]
            worst[chosen] = max(worst[chosen], ended_s - changed_s[chosen])
            late_s[chosen] += max(ended_s - changed_s[chosen] - self.target_s[chosen], 0.0)
            changed_s[chosen] = now_s + rng.exponential(self.fresh_s[chosen])
            now_s += self.cost_s[chosen] / self.share
        return np.maximum(worst, now_s - changed_s), late_s / now_s

    def due(self, lags: Float64s) -> DueRefreshes:
        left_s = np.where(lags >= 0, self.target_s - lags, np.inf)
        return DueRefreshes(left_s, self.cost_s, self.cost_s / self.share, self.target_s, self.fresh_s)

    def by_precedence(self, lags: Float64s) -> int | None:
        """Urgent views first; otherwise the oldest per cost that breaks no deadline."""
        found = find_precedence(self.due(lags), margin_s=_STEP_S)
        if found.urgent.any():
            return int(np.argmin(np.where(found.urgent, found.due.latest_start_s, np.inf)))
        allowed: Bools = found.may_start_early() & (lags > 0)
        return int(np.argmax(np.where(allowed, lags * lags / self.cost_s, -1.0))) if allowed.any() else None

    def earliest_deadline(self, lags: Float64s) -> int | None:
        return int(np.argmin(np.where(lags > 0, self.target_s - lags, np.inf))) if (lags > 0).any() else None


def test_deadlines_hold_where_refreshing_the_earliest_one_always_fails() -> None:
    world = ViewWorld(
        np.array([1.0, *[2.0] * 15]), np.array([10.0, *[100.0] * 15]), np.full(16, 1e-3), share=1.0
    )
    eager, _ = world.run(world.earliest_deadline, 2000.0)
    assert eager[0] > 11.0 or eager[1:].max() > 101.0  # what is to be avoided
    lags, _ = world.run(world.by_precedence, 2000.0)
    assert lags[0] <= 10.0
    assert lags[1:].max() <= 100.0


@pytest.mark.parametrize("seed", range(4))
def test_views_that_change_at_random_are_within_their_targets_99_percent_of_the_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, share = 8, 0.1
    cost_s, fresh_s = rng.uniform(0.1, 1.0, size), rng.choice([0.01, 30.0, 300.0], size)
    # The targets need three quarters of the budget, and leave room for the longest refresh of another view.
    shape = rng.uniform(1.0, 4.0, size)
    scales = np.geomspace(1.0, 1e4, 1000)
    demand = np.sum(cost_s / (scales[:, None] * shape + fresh_s), axis=1)
    target_s = scales[np.argmax(demand < 0.75 * share)] * shape
    target_s = np.maximum(target_s, 1.3 * cost_s + 2.0 * cost_s.max() / share)
    world = ViewWorld(cost_s, target_s, fresh_s, share, seed)
    _, late = world.run(world.by_precedence, 5000.0)
    assert late.mean() <= 0.01, late.round(4)


def test_nothing_that_breaks_a_deadline_is_started() -> None:
    due = DueRefreshes(*(np.array([each]) for each in (20.0, 2.0, 4.0, 60.0, 1e9)))
    found = find_precedence(due)
    assert not found.urgent.any()
    assert found.may_start(np.array([17.0, 18.0])).tolist() == [True, False]
    assert find_precedence(
        DueRefreshes(*(np.array([each]) for each in (2.4, 2.0, 4.0, 60.0, 1e9)))
    ).urgent.all()


def test_without_stale_views_everything_may_start() -> None:
    due = DueRefreshes(*(np.array([each]) for each in (np.inf, 2.0, 4.0, 60.0, 5.0)))
    found = find_precedence(due)
    assert not found.urgent.any()
    assert found.may_start(np.array([1e6])).all()
