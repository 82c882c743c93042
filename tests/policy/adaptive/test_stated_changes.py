"""What sources state teaches where the bit of a poll tells nothing new, and at the first look."""

from __future__ import annotations

import numpy as np

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.adaptive.stated_changes import StatedChanges
from afresh.policy.policy import PolicyInput

NONE = np.full(2, np.nan)


def test_items_that_change_between_all_polls_are_told_apart_by_stamps_and_by_counts() -> None:
    rng, rates = np.random.default_rng(1), np.array([3.0, 30.0])
    by_bits, by_stamps, by_counts = (Adaptive(PolicyInput.of(2, 2.0)) for _ in range(3))
    for day in range(1, 40):
        since, count = rng.exponential(1 / rates), rng.poisson(rates)
        count, since = np.maximum(count, 1), np.minimum(since, 1.0)
        both, now = np.ones(2, dtype=bool), float(day)
        by_bits.observe([0, 1], now, both)
        by_stamps.observe([0, 1], now, both, StatedChanges(since, NONE))
        by_counts.observe([0, 1], now, both, StatedChanges(NONE, count.astype(float)))
    assert by_bits.rates()[1] / by_bits.rates()[0] < 1.01
    for policy in (by_stamps, by_counts):
        assert np.all((policy.rates() > 0.5 * rates) & (policy.rates() < 2.0 * rates))


def test_a_recent_change_after_a_long_time_is_no_sign_of_a_high_rate() -> None:
    """It may be the last of a burst."""
    policies = [Adaptive(PolicyInput.of(2, 2.0)) for _ in range(2)]
    for day in range(1, 60):
        changed = np.array([day % 20 == 0, False])
        policies[0].observe([0, 1], float(day), changed)
        policies[1].observe([0, 1], float(day), changed, StatedChanges(np.array([0.01, 60.0]), NONE))
    bits, stamps = (policy.rates()[0] for policy in policies)
    assert stamps < 1.2 * bits


def test_statements_that_contradict_the_poll_teach_nothing() -> None:
    policies = [Adaptive(PolicyInput.of(2, 2.0)) for _ in range(2)]
    for day in range(1, 30):
        both = np.ones(2, dtype=bool)
        policies[0].observe([0, 1], float(day), both)
        policies[1].observe(
            [0, 1], float(day), both, StatedChanges(np.array([5.0, 0.0]), np.array([0.0, np.nan]))
        )
    assert np.array_equal(policies[0].belief.posterior, policies[1].belief.posterior)


def test_the_age_at_the_first_look_is_evidence_that_polls_soon_outweigh() -> None:
    policy = Adaptive(PolicyInput.of(2, 2.0))
    policy.observe_ages([0, 1], 0.0, np.array([0.1, 300.0]))
    young, old = policy.rates()
    assert old < 0.2 * young
    assert not policy.belief.polled.any()
    for day in range(1, 40):
        policy.observe([0, 1], float(day), np.array([False, True]))
    assert policy.rates()[1] > policy.rates()[0]


def test_what_is_forgotten_is_as_if_it_had_never_been_learned() -> None:
    policy = Adaptive(PolicyInput.of(2, 2.0))
    for day in range(1, 20):
        policy.observe([0, 1], float(day), np.array([True, True]))
    policy.forget([0])
    assert np.allclose(policy.belief.posterior[0], policy.belief.prior)
    assert (policy.belief.polled.tolist(), policy.belief.polls.tolist()[0]) == ([False, True], 0)
    assert policy.items.last_poll.tolist() == [19.0, 19.0]


def test_the_price_follows_if_the_ages_of_many_items_are_learned_at_once() -> None:
    """Items that are all old change rarely, so that a poll gains less than of items of which nothing is
    known: with the price of before, no item would seem worth a poll in the first round."""
    policies = [Adaptive(PolicyInput.of(200, 10.0)) for _ in range(2)]
    unknown = policies[0].shadow_price
    for policy, items in zip(policies, (np.arange(200), np.arange(5)), strict=True):
        policy.observe_ages(items, 0.0, np.full(items.size, 5000.0))
    assert policies[0].shadow_price < 0.7 * unknown
    assert policies[1].shadow_price == unknown  # a few items do not change it
