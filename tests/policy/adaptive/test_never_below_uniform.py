"""The loss against uniform polling stays small in worlds made to mislead the adaptive policy.

Each world is small, so its score is noisy, and the bound is one point of freshness. ``bench replay_robust``
measures larger worlds with a tighter bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.policy import Policy, PolicyInput
from afresh.policy.ranking_policy import UniformPolicy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import run_policy
from afresh.replay.scores import item_scores
from afresh.values.arrays import Float64s, Ints

ITEMS, DAYS, POLLS_PER_DAY, FAMILY = 300, 600.0, 0.03, 20
BATCH = ITEMS // 20
MOST_LOST = 0.01  # of freshness
# Where half of all items change right after each poll, they look as if they were worth polls for a while.
MOST_LOST_TO_REACTIONS = 0.025


@dataclass(frozen=True, slots=True)
class World:
    """Changes of items, and the families that the policy is told of."""

    item: Ints
    time: Float64s
    families: Ints


def own_changes(rates: Float64s, begin: float, end: float, rng: np.random.Generator) -> tuple[Ints, Float64s]:
    """Poisson changes of every item at its rate."""
    item = np.repeat(np.arange(rates.size), rng.poisson(rates * (end - begin)))
    return item, rng.uniform(begin, end, item.size)


def mass_edits(group: Ints, end: float, rng: np.random.Generator) -> tuple[Ints, Float64s]:
    """Each group changes as a whole every 60 days on average, up to ``end``."""
    edits = [
        (np.flatnonzero(group == one), when)
        for one in np.unique(group)
        for when in rng.uniform(0.0, end, rng.poisson(end / 60.0))
    ]
    items = [members for members, _ in edits]
    return np.concatenate(items), np.concatenate([np.full(one.size, when) for one, when in edits])


def joined(*parts: tuple[Ints, Float64s]) -> tuple[Ints, Float64s]:
    return np.concatenate([item for item, _ in parts]), np.concatenate([time for _, time in parts])


def families_that_mean_nothing(rng: np.random.Generator) -> World:
    """Mass edits of groups; the families that the policy knows are other groups of the same size."""
    group, told = rng.permutation(ITEMS) // FAMILY, rng.permutation(ITEMS) // FAMILY
    own = own_changes(rng.gamma(0.5, 0.01, ITEMS), 0.0, DAYS, rng)
    return World(*joined(mass_edits(group, DAYS, rng), own), told[:, None])


def edits_of_a_random_part(rng: np.random.Generator) -> World:
    """One large family, of which every edit changes a random quarter."""
    parts = []
    for when in rng.uniform(0.0, DAYS, 15):
        some = np.flatnonzero(rng.random(ITEMS) < 0.25)
        parts.append((some, np.full(some.size, when)))
    own = own_changes(rng.gamma(0.5, 0.01, ITEMS), 0.0, DAYS, rng)
    return World(*joined(own, *parts), np.zeros((ITEMS, 1), dtype=np.int64))


def families_that_stop(rng: np.random.Generator) -> World:
    """Families mean everything up to the middle; from then on all items change by themselves."""
    group = rng.permutation(ITEMS) // FAMILY
    own = own_changes(rng.gamma(0.5, 0.03, ITEMS), DAYS / 2, DAYS, rng)
    return World(*joined(mass_edits(group, DAYS / 2, rng), own), group[:, None])


def rates_that_swap(rng: np.random.Generator) -> World:
    """In the middle the busiest item becomes the quietest, and so on."""
    rates = np.sort(rng.gamma(0.5, 0.04, ITEMS))
    before = own_changes(rates, 0.0, DAYS / 2, rng)
    after = own_changes(rates[::-1], DAYS / 2, DAYS, rng)
    return World(*joined(before, after), (rng.permutation(ITEMS) // FAMILY)[:, None])


WORLDS = (families_that_mean_nothing, edits_of_a_random_part, families_that_stop, rates_that_swap)


@pytest.mark.parametrize("make", WORLDS)
def test_a_misleading_world_costs_little(make: Callable[[np.random.Generator], World]) -> None:
    rng = np.random.default_rng(11)
    lost = []
    for _ in range(2):
        world = make(rng)
        history = ChangeHistory.of(ITEMS, world.item, world.time, 0.0, DAYS, unit="d")
        start = replace(PolicyInput.of(ITEMS, POLLS_PER_DAY * ITEMS), families=world.families, hour=None)
        fresh = []
        for policy in (Adaptive(start), UniformPolicy(start)):
            run = run_policy(history, policy, start.budget, batch=BATCH)
            fresh.append(item_scores(history, run.item, run.time, DAYS / 3)["freshness"].mean())
        lost.append(fresh[1] - fresh[0])
    assert np.mean(lost) < MOST_LOST


def reactive_freshness(policy: Policy, rng: np.random.Generator) -> float:
    """Freshness where half of the items change right after each of their polls, the others now and then."""
    reacts = np.arange(ITEMS) < ITEMS // 2
    stale_since, stale = np.full(ITEMS, np.inf), 0.0
    step = BATCH / (POLLS_PER_DAY * ITEMS)
    for turn in range(1, int(DAYS / step) + 1):
        now = turn * step
        moved = ~reacts & (rng.random(ITEMS) < 0.01 * step)
        stale_since[moved] = np.minimum(stale_since[moved], now)
        polled = policy.next(now, BATCH)
        changed = stale_since[polled] <= now
        stale += np.sum(now - stale_since[polled[changed]])
        policy.observe(polled, now, changed)
        stale_since[polled] = np.where(reacts[polled], now + 0.1, np.inf)
    stale += np.sum(np.maximum(DAYS - stale_since, 0.0))
    return float(1.0 - stale / (ITEMS * DAYS))


def test_changes_right_after_each_poll_cost_little() -> None:
    """No poll of these items gains anything, whatever the policy; the others must not pay much for it."""
    start = replace(PolicyInput.of(ITEMS, POLLS_PER_DAY * ITEMS), hour=None)
    adaptive, uniform = (
        reactive_freshness(policy, np.random.default_rng(5))
        for policy in (Adaptive(start), UniformPolicy(start))
    )
    assert adaptive > uniform - MOST_LOST_TO_REACTIONS


def test_no_item_waits_beyond_what_is_known_about_it() -> None:
    """After n polls an item is polled within (1 + n/5) mean intervals, but for what others are owed."""
    items, mean_interval = 60, 10.0
    families = np.zeros((items, 1), dtype=np.int64)
    start = replace(PolicyInput.of(items, items / mean_interval), families=families, hour=None)
    policy, last, polls = Adaptive(start), np.zeros(items), np.zeros(items)
    longest = np.zeros(items)
    for turn in range(1, 12 * items):
        now = turn * mean_interval / items
        polled = policy.next(now, 1)
        allowed = (1.0 + 0.2 * polls[polled]) * mean_interval
        longest[polled] = np.maximum(longest[polled], (now - last[polled]) / allowed)
        policy.observe(polled, now, polled < items // 4)  # a quarter is found changed at every poll
        last[polled] = now
        polls[polled] += 1
    assert longest.max() < 1.5
