"""Polls teach what the ages of a source's items mean, so that ages which mislead soon do no harm."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.policy.adaptive import age_priors
from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.adaptive.age_priors import AgePriors, fit_prior
from afresh.policy.adaptive.rate_belief import RateBelief
from afresh.policy.policy import PolicyInput
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import Visits, run_policy
from afresh.values.arrays import Bools, Float64s, Ints

ITEMS, FREQUENCY = 400, 0.1
YOUNG, OLD = 0.1, 500.0  # ages in days


def ages(is_young: Bools) -> Float64s:
    return np.where(is_young, YOUNG, OLD)


def learn_rounds(belief: RateBelief, items: Ints, changed: Bools, rounds: int) -> None:
    """So many polls of each item, with the same results, and a refit after each."""
    every = np.full(items.size, 1.0 / FREQUENCY)
    for _ in range(rounds):
        belief.learn(items, every, changed, belief.finding(every))
        belief.refit(np.ones(len(belief.posterior), dtype=bool))


def change_chance(belief: RateBelief, items: Ints) -> Float64s:
    """The probability that a poll finds a change, an interval after the one before."""
    found = belief.change_chance(np.full(items.size, 1.0 / FREQUENCY))
    return np.asarray((belief.posteriors(items) * found).sum(axis=1))


def test_before_any_poll_young_items_are_expected_to_change_more_often() -> None:
    belief = RateBelief(3, FREQUENCY)
    belief.learn_age(np.array([0, 1]), np.array([YOUNG, OLD]))
    young, old, unknown = change_chance(belief, np.arange(3))
    assert young > unknown > old
    assert not belief.polled.any()


def test_what_the_polls_of_a_class_find_holds_for_new_items_of_the_class() -> None:
    """Here old items are those that change, as where ages are the times since the items were created."""
    belief, items = RateBelief(ITEMS + 3, FREQUENCY), np.arange(ITEMS)
    is_young = items % 2 == 0
    belief.learn_age(items, ages(is_young))
    learn_rounds(belief, items, ~is_young, 3)
    belief.learn_age(np.array([ITEMS, ITEMS + 1]), np.array([YOUNG, OLD]))
    belief.forget(np.array([ITEMS + 2]))
    young, old, unknown = change_chance(belief, ITEMS + np.arange(3))
    assert old > 5.0 * young
    assert young < unknown < old


def test_if_ages_say_nothing_classes_become_alike() -> None:
    many = 4_000
    belief, items = RateBelief(many + 2, FREQUENCY), np.arange(many)
    belief.learn_age(items, ages(items % 2 == 0))
    learn_rounds(belief, items, items % 4 < 2, 3)
    belief.learn_age(np.array([many, many + 1]), np.array([YOUNG, OLD]))
    young, old = change_chance(belief, many + np.arange(2))
    assert young == pytest.approx(old, abs=0.05)


def test_without_ages_the_prior_is_fitted_as_if_there_were_no_classes() -> None:
    """Only one class is known, and it has many items: their prior is that of all items."""
    plain, classed = (RateBelief(ITEMS, FREQUENCY) for _ in range(2))
    items = np.arange(ITEMS)
    classed.learn_age(items[:1], np.array([OLD]))
    classed.forget(items[:1])
    for belief in (plain, classed):
        learn_rounds(belief, items, items % 3 == 0, 2)
    np.testing.assert_allclose(classed.posterior, plain.posterior, atol=1e-6)
    assert classed.ages.table is None


def test_a_fitted_prior_is_the_mean_of_the_beliefs_under_it() -> None:
    rng = np.random.default_rng(1)
    sample, prior = rng.dirichlet(np.ones(5), 300), np.full(5, 0.2)
    fitted = fit_prior(sample, prior)
    under = sample * fitted / prior
    under /= under.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(under.mean(axis=0), fitted, atol=2e-3)


def test_the_class_of_an_age_does_not_depend_on_the_grid() -> None:
    found = AgePriors(4)
    found.set_ages(np.arange(3), np.array([1e-300, 16.0, 1e300]))
    rates: Float64s = np.exp2(np.arange(-6.0, 6.0))
    assert found.table_rows(np.arange(4), rates).tolist() == [12, 3, 1, 0]
    assert found.table_rows(np.array([1]), rates[1:]).tolist() == [2]
    found.grow(1)
    assert found.table_rows(np.array([4]), rates).tolist() == [0]


def freshness(rates: Float64s, visits: Visits, begin: float, end: float) -> float:
    """The expected freshness from ``begin`` to ``end`` at the true rates, given when each item was polled."""
    item = np.concatenate([np.arange(rates.size), visits.item])  # a first copy of each item at 0
    time = np.concatenate([np.zeros(rates.size), visits.time])
    order = np.lexsort((time, item))
    item, since = item[order], time[order]
    until = np.where(np.append(item[1:] != item[:-1], True), end, np.append(since[1:], end))
    from_, to = np.clip(since, begin, end), np.clip(until, begin, end)
    rate = rates[item]
    right = (np.exp(-rate * (from_ - since)) - np.exp(-rate * (to - since))) / rate
    return float(right.sum() / (rates.size * (end - begin)))


def reached(told: Float64s | None) -> float:
    """The expected freshness after ten polls of each item, in a world where ages mislead: the items that
    change often are old, the others young. ``told`` are the times of the last changes."""
    rng = np.random.default_rng(1)
    rates = np.where(np.arange(ITEMS) % 2 == 0, 0.002, 0.06)
    end = 200.0
    count = rng.poisson(rates * end)
    owner = np.repeat(np.arange(ITEMS), count)
    history = ChangeHistory.of(ITEMS, owner, rng.uniform(0.0, end, owner.size), 0.0, end)
    policy = Adaptive(PolicyInput.of(ITEMS, FREQUENCY * ITEMS))
    visits = run_policy(history, policy, FREQUENCY * ITEMS, stamps=told, batch=ITEMS // 20)
    return freshness(rates, visits, 10.0 / FREQUENCY, end)


def test_ages_that_mislead_cost_nothing_once_polls_taught_so(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = -ages(np.arange(ITEMS) % 2 == 0)
    untold = reached(None)
    assert untold - reached(stamps) < 0.002
    monkeypatch.setattr(age_priors, "AGE_ITEMS", 1e9)  # nothing is learned of the classes
    assert untold - reached(stamps) > 0.004
