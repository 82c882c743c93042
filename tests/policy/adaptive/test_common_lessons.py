"""Policies with parts of the items learn together what one policy with all items would learn alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.adaptive.common_lessons import (
    CommonLessons,
    LessonPool,
    adopt_common,
    from_common_grid,
    lessons_of,
    on_common_grid,
)
from afresh.policy.policy import PolicyInput
from afresh.rates.season import HOURS
from afresh.values.arrays import Float64s

DAY_S, HOUR_S = 86400.0, 3600.0


def polled_policy(rng: np.random.Generator, items: int, polls: int, rate_per_s: Float64s | float) -> Adaptive:
    """A policy whose items were all polled once a day, and changed at these rates."""
    policy = Adaptive(PolicyInput.of(items, items / DAY_S))
    chance = np.broadcast_to(-np.expm1(-np.asarray(rate_per_s) * DAY_S), items)
    for day in range(1, polls + 1):
        policy.observe(np.arange(items), day * DAY_S, rng.random(items) < chance)
    return policy


def exchange(policies: list[Adaptive], now: float, rounds: int = 1) -> list[CommonLessons]:
    pool, found = LessonPool(), []
    for _ in range(rounds):
        for number, policy in enumerate(policies):
            pool.add(number, lessons_of(policy))
        found = [pool.for_member(number) for number in range(len(policies))]
        for policy, common in zip(policies, found, strict=True):
            adopt_common(policy, common, now)
            if rounds > 1:
                policy.refit(now)
    return found


def test_a_new_policy_starts_from_what_the_others_know() -> None:
    rng = np.random.default_rng(1)
    slow, fast = (polled_policy(rng, 300, 40, rate / DAY_S) for rate in (0.05, 1.0))
    fresh = Adaptive(PolicyInput.of(50, 50 / (3 * DAY_S)))  # with another grid of rates
    before = float(fresh.belief.mean(np.array([0]))[0])
    exchange([slow, fast, fresh], 40 * DAY_S)
    prior, rates = fresh.belief.prior, fresh.belief.rates * DAY_S
    assert prior.sum() == pytest.approx(1.0)
    near_slow = prior[(rates > 0.01) & (rates < 0.2)].sum()
    near_fast = prior[(rates > 0.3) & (rates < 4.0)].sum()
    assert near_slow == pytest.approx(0.5, abs=0.1)
    assert near_fast == pytest.approx(0.5, abs=0.1)
    assert fresh.belief.posterior[0] == pytest.approx(prior, rel=1e-4)
    assert float(fresh.belief.mean(np.array([0]))[0]) != before


def test_many_items_of_its_own_count_more_than_the_others() -> None:
    rng = np.random.default_rng(2)
    slow, fast = (polled_policy(rng, 2000, 15, rate / DAY_S) for rate in (0.05, 1.0))
    alone = slow.belief.prior @ slow.belief.rates
    exchange([slow, fast], 15 * DAY_S)
    assert slow.belief.prior @ slow.belief.rates == alone  # until its next refit
    slow.refit(15 * DAY_S)
    together = float(slow.belief.prior @ slow.belief.rates) * DAY_S
    assert 0.05 < together < 0.2  # 2000 items of 0.05 and 200 of the mixture


def test_notices_of_an_origin_are_trusted_by_what_other_policies_saw() -> None:
    rng = np.random.default_rng(3)
    heard = Adaptive(PolicyInput.of(40, 40 / DAY_S))
    for day in range(1, 60):
        changed = rng.random(40) < 0.3
        heard.notice(np.flatnonzero(changed), day * DAY_S - 60.0, "feed")
        heard.observe(np.arange(40), day * DAY_S, changed)
    new = Adaptive(PolicyInput.of(10, 10 / DAY_S))
    new.notice([3], 60 * DAY_S, "feed")
    assert new.notices.recall.tolist() == [0.0]
    exchange([heard, new], 60 * DAY_S)
    assert new.notices.recall[0] == pytest.approx(heard.notices.recall[0])
    assert heard.notices.recall[0] > 0.8  # its own notices do not count twice
    assert new.notices.host_rates(np.array([3]))[0][0, 0] > 0.8


def seasonal_policy(rng: np.random.Generator, items: int, weeks: int) -> Adaptive:
    """A policy whose items change from 9 to 17 o'clock only, and are polled every six hours."""
    policy = Adaptive(PolicyInput.of(items, items / (6 * HOUR_S)))
    busy = (np.arange(HOURS) % 24 >= 9) & (np.arange(HOURS) % 24 < 17)
    for turn in range(1, weeks * 28 + 1):
        hours = np.arange(6 * (turn - 1), 6 * turn) % HOURS
        chance = -np.expm1(-0.15 * float(busy[hours].sum()))
        policy.observe(np.arange(items), turn * 6 * HOUR_S, rng.random(items) < chance)
    return policy


def test_a_season_that_no_policy_alone_could_prove_is_found_together() -> None:
    rng = np.random.default_rng(4)
    policies = [seasonal_policy(rng, 1, 4) for _ in range(20)]
    now = 4 * 7 * DAY_S
    for policy in policies:
        policy.refit(now)
    alone = [policy.clock.season for policy in policies]
    assert not any(season is None or season.is_supported for season in alone)
    found = exchange(policies, now, rounds=6)
    assert found[0].season is not None
    assert found[0].season.gain > 0
    season = policies[0].clock.season
    assert season is not None
    by_hour = season.profile.reshape(7, 24).mean(axis=0)
    assert by_hour[9:17].min() > 2.0 * by_hour[[0, 1, 2, 3, 4, 5, 18, 19, 20, 21, 22, 23]].max()


def test_no_season_is_found_where_there_is_none() -> None:
    rng = np.random.default_rng(5)
    policies = [polled_policy(rng, 30, 60, 0.5 / DAY_S) for _ in range(5)]
    found = exchange(policies, 60 * DAY_S, rounds=4)
    assert found[0].season is not None
    assert found[0].season.gain == 0.0


def test_messages_are_small_whatever_the_number_of_items() -> None:
    rng = np.random.default_rng(6)
    small, large = (polled_policy(rng, items, 3, 0.5 / DAY_S) for items in (100, 5_000))
    sizes = [len(pickle.dumps(lessons_of(policy))) for policy in (small, large)]
    assert abs(sizes[0] - sizes[1]) < 100
    assert max(sizes) < 16_000
    assert len(pickle.dumps(exchange([small, large], 5 * DAY_S)[0])) < 16_000


def test_a_replaced_lesson_leaves_nothing_behind() -> None:
    rng = np.random.default_rng(7)
    first, second = (lessons_of(polled_policy(rng, 50, 20, rate / DAY_S)) for rate in (0.1, 1.0))
    pool, expected = LessonPool(), LessonPool()
    pool.add("one", first)
    pool.add("one", second)
    expected.add("one", second)
    ours, theirs = pool.for_member("one"), expected.for_member("one")
    assert ours.items == theirs.items
    assert ours.prior == pytest.approx(theirs.prior, abs=1e-12)
    assert ours.season is not None
    assert theirs.season is not None
    assert ours.season.profiles == pytest.approx(theirs.season.profiles)


def test_a_prior_keeps_its_mean_between_grids() -> None:
    rates = 3e-7 * np.exp2(np.arange(18.0))
    prior = np.random.default_rng(8).dirichlet(np.ones(18))
    octaves = np.log2(rates)
    back = from_common_grid(on_common_grid(rates, prior), rates)
    assert back @ octaves == pytest.approx(prior @ octaves, abs=0.02)
