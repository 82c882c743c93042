"""What was learned outlives the process: exact as a whole, sensible in part, refused where it is wrong."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.adaptive.saved_state import FAMILY_KEYS
from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.values.errors import InputError

NAMES = [f"{top}/{folder}/page{number}" for top in "ab" for folder in "xyz" for number in range(8)]
ITEMS, DAY = len(NAMES), 86400.0


def a_start(budget: float = 10 / DAY) -> PolicyInput:
    return replace(PolicyInput.of(ITEMS, budget), families=families_of(NAMES))


def run(policy: Adaptive, begin: int, end: int, seed: int = 1) -> list[list[int]]:
    """So many batches, with changes that depend on item and time alone, and notices of two sources."""
    polled = []
    for turn in range(begin, end):
        rng = np.random.default_rng([seed, turn])
        now = 0.4 * DAY * (turn + 1)
        policy.notice(rng.integers(0, ITEMS, 2), now, "feed")
        policy.notice(rng.integers(0, ITEMS, 1), now, "map")
        items = policy.next(now, 4)
        policy.observe(items, now, rng.random(ITEMS)[items] < 0.1 + 0.6 * (items % 8 == 0))
        polled.append(items.tolist())
    return polled


@cache
def _learned(turns: int) -> Adaptive:
    policy = Adaptive(a_start())
    run(policy, 0, turns)
    return policy


def learned(turns: int = 300) -> Adaptive:
    """A policy after so many batches, for this test alone."""
    return deepcopy(_learned(turns))


def restored(policy: Adaptive, start: PolicyInput | None = None) -> Adaptive:
    other = Adaptive(start or a_start())
    every = np.arange(ITEMS)
    other.restore(policy.shared(), every, policy.rows(every))
    return other


def test_the_stored_keys_are_those_of_every_version_so_far() -> None:
    """A store written by an older version has these keys: renaming an attribute must not rename a key."""
    policy = learned(20)
    assert set(policy.shared()) == {
        "version", "items", "budget", "learned_for", "bound", "since_rekey", "since_refit", "refit_gap",
        "belief.rates", "belief.horizon", "belief.prior",
        "calibration.frequency", "calibration.found", "calibration.expected", "calibration.ratio",
        "calibration.all_found", "calibration.all_ratio",
        "notices.sources", "notices.heard", "notices.quiet_heard", "notices.time", "notices.quiet_time",
        "notices.changes", "notices.frequency", "notices.followed",
        "notices.hosts", "notices.host_counts", "notices.everywhere",
        "season.profile", "season.gain", "season.item", "season.now", "season.elapsed", "season.changed",
        "season.lengths",
        "shocks.width", "shocks.origin", "shocks.share", "shocks.pool", "shocks.labels", "shocks.all_found",
        "shocks.all_seen", "shocks.evidence", "shocks.found", "shocks.seen", "shocks.support", "shocks.rise",
        "shocks.own_rate",
    }  # fmt: skip
    assert set(policy.rows([0])) == {
        "last", "evidence", "lowest", "polled", "polls", "rate_class", "quiet", "notices", "look", "spared",
        "age", "shocks.exposed", "shocks.felt",
    }  # fmt: skip


def test_a_restored_policy_goes_on_exactly() -> None:
    policy = learned()
    other = restored(policy)
    for name, value in policy.shared().items():
        np.testing.assert_array_equal(other.shared()[name], value, err_msg=name)
    np.testing.assert_array_equal(other.belief.posterior, policy.belief.posterior)
    assert policy.notices.origins == ["feed", "map"]
    assert run(other, 300, 500) == run(policy, 300, 500)


def test_what_polls_taught_about_ages_is_restored() -> None:
    policy, every = Adaptive(a_start()), np.arange(ITEMS)
    policy.observe_ages(every[1:], 0.0, np.asarray(DAY * np.exp2(every[1:] % 7), dtype=np.float64))
    run(policy, 0, 300)
    other = restored(policy)
    np.testing.assert_array_equal(other.belief.posterior, policy.belief.posterior)
    assert policy.belief.ages.table is not None
    np.testing.assert_array_equal(other.shared()["belief.age_priors"], policy.belief.ages.table)
    assert run(other, 300, 500) == run(policy, 300, 500)


def test_rows_of_a_version_that_knew_no_ages_are_restored() -> None:
    policy, every = learned(), np.arange(ITEMS)
    older = {name: one for name, one in policy.rows(every).items() if name != "age"}
    other = Adaptive(a_start())
    other.restore(policy.shared(), every, older)
    assert not other.belief.ages.any_known
    assert run(other, 300, 320) == run(policy, 300, 320)


def test_ages_are_kept_on_another_grid_and_without_what_all_items_taught() -> None:
    policy, every = Adaptive(a_start()), np.arange(ITEMS)
    policy.observe_ages(every, 0.0, np.full(ITEMS, 5.0 * DAY))
    run(policy, 0, 300)
    other = Adaptive(a_start(100 / DAY))
    other.restore(None, every, policy.rows(every))
    np.testing.assert_array_equal(other.belief.ages.octave, policy.belief.ages.octave)
    other.refit(130 * DAY)
    np.testing.assert_allclose(other.belief.posterior.sum(axis=1), 1.0, rtol=1e-5)
    ratio = other.belief.mean(every) / policy.belief.mean(every)
    assert np.all((ratio > 0.4) & (ratio < 2.5))


def test_rows_of_a_version_that_did_not_tell_members_apart_are_restored() -> None:
    policy, every = learned(), np.arange(ITEMS)
    assert policy.shocks is not None
    assert policy.shocks.member_share(every).std() > 0.01
    older = {name: one for name, one in policy.rows(every).items() if not name.startswith("shocks.")}
    other = Adaptive(a_start())
    other.restore(policy.shared(), every, older)
    assert other.shocks is not None
    assert np.all(other.shocks.member_share(every) == 1.0)
    np.testing.assert_array_equal(other.belief.posterior, policy.belief.posterior)
    assert run(other, 300, 320)


def test_families_of_a_version_that_knew_no_general_family_are_restored() -> None:
    policy, every = learned(), np.arange(ITEMS)
    assert policy.shocks is not None
    shared = policy.shared()
    kinds = policy.shocks.share.size
    number, kind = np.divmod(shared["shocks.labels"], kinds)
    narrow = kind < kinds - 1
    older = shared | {
        "shocks.share": shared["shocks.share"][:-1],
        "shocks.pool": shared["shocks.pool"][:-1],
        "shocks.labels": (number * (kinds - 1) + kind)[narrow],
    }
    older |= {key: shared[key][narrow] for key in FAMILY_KEYS}
    other = Adaptive(a_start())
    other.restore(older, every, policy.rows(every))
    assert other.shocks is not None
    assert other.shocks.labels.tolist() == policy.shocks.labels.tolist()
    np.testing.assert_array_equal(other.shocks.found[:-1][narrow], policy.shocks.found[:-1][narrow])
    assert policy.shocks.found[:-1][~narrow].sum() > 0
    assert other.shocks.found[:-1][~narrow].sum() == 0  # of all items together nothing was known
    assert run(other, 300, 320)


def test_what_was_learned_of_the_notices_of_each_host_is_kept() -> None:
    hosts = np.arange(ITEMS) % 5
    policy = Adaptive(replace(a_start(), hosts=hosts))
    run(policy, 0, 300)
    other = restored(policy, replace(a_start(), hosts=hosts))
    np.testing.assert_array_equal(
        other.notices.host_rates(np.arange(5)), policy.notices.host_rates(np.arange(5))
    )
    assert run(other, 300, 500) == run(policy, 300, 500)
    # Items come and go: a host that is still there is known, by its number.
    fewer = Adaptive(replace(PolicyInput.of(3, 1 / DAY), hosts=np.array([99, 4, 2])))
    fewer.restore({key: one for key, one in policy.shared().items() if not key.startswith("shocks.")})
    recall, false_rate = policy.notices.host_rates(np.array([4, 2]))
    np.testing.assert_allclose(fewer.notices.host_rates(np.arange(3))[1][1:], false_rate)
    np.testing.assert_array_equal(fewer.notices.host_rates(np.arange(3))[0][1:], recall)


def test_what_was_learned_of_notices_before_hosts_were_told_apart_holds_for_all() -> None:
    shared = learned().shared()
    new = ("notices.hosts", "notices.host_counts", "notices.everywhere", "notices.followed")
    policy = Adaptive(replace(a_start(), hosts=np.arange(ITEMS) % 5))
    policy.restore({key: one for key, one in shared.items() if key not in new})
    np.testing.assert_allclose(
        policy.notices.host_rates(np.array([0, 1]))[0], np.tile(policy.notices.recall, (2, 1))
    )
    assert policy.notices.followed.tolist() == shared["notices.heard"].tolist()
    before = policy.notices.evidence(np.arange(5), policy.belief.rates).recall.max()
    # An origin that is never heard again is soon taken to announce nothing, also after a restart.
    for turn in range(1, 20):
        policy.observe(np.arange(ITEMS), (400.0 + turn) * DAY, np.ones(ITEMS, dtype=bool))
    other = Adaptive(replace(a_start(), hosts=np.arange(ITEMS) % 5))
    other.restore(policy.shared())
    assert before > 0.01
    assert other.notices.evidence(np.arange(5), policy.belief.rates).recall.max() < before / 5


def test_rows_alone_keep_the_rates_even_on_another_ladder() -> None:
    policy, every = learned(), np.arange(ITEMS)
    same, other = Adaptive(a_start()), Adaptive(a_start(23 / DAY))
    for one in (same, other):
        one.restore(None, every, policy.rows(every))
    assert other.belief.rates[0] == pytest.approx(2.3 * same.belief.rates[0])
    mine, its = (one.belief.posteriors(every) @ np.log(one.belief.rates) for one in (same, other))
    assert np.corrcoef(mine, its)[0, 1] > 0.98
    busy = every % 8 == 0  # of quiet ones no poll tells how slow they are: that is the prior's
    np.testing.assert_allclose(its[busy], mine[busy], atol=0.25)  # a step of the ladder is ln 2


def test_shared_alone_keeps_the_prior_for_items_not_seen_before() -> None:
    policy = learned()
    other = Adaptive(a_start())
    other.restore(policy.shared())
    np.testing.assert_allclose(other.belief.posterior, np.tile(policy.belief.prior, (ITEMS, 1)), rtol=1e-6)
    np.testing.assert_array_equal(other.notices.recall, policy.notices.recall)
    assert run(other, 300, 340)


def test_rows_of_some_items_in_another_order_and_families_by_name() -> None:
    """Items come and go between two processes: what is known of the others and of their families stays."""
    policy = learned()
    assert policy.shocks is not None
    policy.shocks.evidence[:-1] = np.arange(policy.shocks.labels.size) / 10.0
    kept = np.arange(ITEMS)[::-1][:-10]
    names = [NAMES[one] for one in kept] + ["new/x/page"]
    other = Adaptive(replace(PolicyInput.of(len(names), 10 / DAY), families=families_of(names)))
    assert other.shocks is not None
    other.restore(policy.shared(), np.arange(kept.size), policy.rows(kept))
    np.testing.assert_array_equal(other.belief.posterior[:-1], policy.belief.posterior[kept])
    np.testing.assert_array_equal(other.items.last_poll[:-1], policy.items.last_poll[kept])
    for label, evidence in zip(other.shocks.labels, other.shocks.evidence[:-1], strict=True):
        np.testing.assert_array_equal(
            evidence, policy.shocks.evidence[:-1][policy.shocks.labels == label][:1]
        )
    assert other.clock.recent_count == 0  # its polls had other numbers


def test_rows_saved_before_a_refit_meet_the_prior_of_today() -> None:
    policy, every = learned(), np.arange(ITEMS)
    early = policy.rows(every)
    policy.refit(1e9)
    other = Adaptive(a_start())
    other.restore(policy.shared(), every, early)
    np.testing.assert_allclose(other.belief.posterior, policy.belief.posterior, rtol=1e-4, atol=1e-7)


def test_another_budget_moves_the_level() -> None:
    policy = learned()
    other = restored(policy, a_start(20 / DAY))
    assert other.shadow_price == pytest.approx(policy.shadow_price / 4.0)


def test_what_does_not_fit_is_refused_in_words() -> None:
    policy, every = learned(20), np.arange(ITEMS)
    shared, rows = policy.shared(), policy.rows(every)
    with pytest.raises(InputError, match="version 7, this afresh reads"):
        Adaptive(a_start()).restore({**shared, "version": np.array(7)})
    with pytest.raises(InputError, match=r"belief.prior has the shape \(3,\)"):
        Adaptive(a_start()).restore({**shared, "belief.prior": np.ones(3)})
    with pytest.raises(InputError, match=r"season\.profile is missing"):
        Adaptive(a_start()).restore({name: one for name, one in shared.items() if name != "season.profile"})
    with pytest.raises(InputError, match=r"evidence has the shape \(48, 18\), not \(3, any\)"):
        Adaptive(a_start()).restore(None, [0, 1, 2], rows)
    with pytest.raises(InputError, match="no item 48"):
        Adaptive(a_start()).restore(None, [48], rows)


def test_gamma_summaries_are_recalled() -> None:
    policy = Adaptive(a_start())
    frequency = 10 / DAY / ITEMS
    policy.set_gamma_belief([3, 4], [20.0, 2.0], [20.0 / frequency, 20.0 / frequency], [5.0, 6.0])
    mean = policy.belief.mean(np.array([3, 4]))
    np.testing.assert_allclose(mean, np.array([1.0, 0.1]) * frequency, rtol=0.1)
    assert policy.items.last_poll[[3, 4]].tolist() == [5.0, 6.0]
    assert policy.belief.polled[[3, 4]].all()
    with pytest.raises(InputError, match="shape and a rate above 0"):
        policy.set_gamma_belief([3], [0.0], [1.0], [0.0])


def test_a_copy_made_elsewhere_restarts_the_clock_and_teaches_nothing() -> None:
    policy = learned()
    before = policy.belief.posterior.copy()
    item = policy.next(200 * DAY, 1)
    policy.notice(item, 200 * DAY, "feed")
    policy.mark_copied(item, 200 * DAY)
    assert policy.next(200 * DAY, 1) != item
    assert policy.items.last_poll[item] == 200 * DAY
    assert policy.poll_values(item, 200 * DAY) == 0.0
    np.testing.assert_array_equal(policy.belief.posterior, before)


def test_what_was_quiet_for_long_is_taken_to_last() -> None:
    """Polled each day for eight years, an item that never changed is not expected to within the month."""
    policy = Adaptive(replace(PolicyInput.of(2, 2.0), hour=None))
    for day in range(1, 3000):
        policy.observe([0, 1], float(day), [False, day % 3 == 0])
    assert policy.belief.horizon == pytest.approx(3 * 2999)
    assert policy.rates()[0] < 1 / 300
    assert policy.rates()[1] == pytest.approx(np.log(3 / 2), rel=0.3)
