"""Shocks: found where families change together, silent where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.policy.adaptive.shocks import BINS, Shocks, with_general_family
from afresh.values.arrays import Bools, Float64s, Ints


def polled(shocks: Shocks, changed_at: Float64s, rounds: int, rng: np.random.Generator) -> None:
    """Every item once a round, at a random moment; ``changed_at`` has a row of change times per item."""
    items = changed_at.shape[0]
    last = np.zeros(items)
    for turn in range(1, rounds + 1):
        for item in rng.permutation(items):
            now = 10.0 * turn + 10.0 * rng.random()
            shocks.advance(now)
            one = np.array([item])
            since, until = last[one], np.array([now])
            found: Bools = np.array([np.any((changed_at[item] > last[item]) & (changed_at[item] <= now))])
            shocks.learn(shocks.exposure(one, since, until), since, until, found, 0.02 * (until - since))
            last[item] = now
        shocks.refit()


def test_joint_changes_are_found_and_independent_ones_are_not() -> None:
    rng = np.random.default_rng(1)
    apart = np.sort(rng.uniform(0.0, 1200.0, (6, 24)))
    one_family = np.zeros((6, 1), dtype=np.int64)
    weights = []
    for times in (np.tile(apart[0], (6, 1)), apart):
        shocks = Shocks(one_family, 10.0, 0.0)
        polled(shocks, times, 120, rng)
        weights.append(shocks.probability[0])
    assert weights[0] > 0.9
    assert weights[1] < 0.3


def test_a_find_makes_the_rest_of_the_family_urgent_and_quiet_polls_clear_it() -> None:
    shocks = Shocks(np.zeros((40, 1), dtype=np.int64), 10.0, 0.0)
    shocks.evidence[0] = 10.0  # known to have shocks
    shocks.refit()
    rest = np.array([39])

    def felt() -> float:
        return float(shocks.exposure(rest, np.array([0.0]), np.array([9.0])).total()[0])

    quiet = felt()
    three = np.arange(3)
    since, now = np.full(3, 8.0), np.full(3, 9.0)
    shocks.learn(shocks.exposure(three, since, now), since, now, np.ones(3, dtype=bool), np.full(3, 1e-3))
    alarmed = felt()
    assert alarmed > quiet + 0.3
    others = np.arange(3, 33)
    since, now = np.full(30, 7.0), np.full(30, 9.0)
    shocks.learn(shocks.exposure(others, since, now), since, now, np.zeros(30, dtype=bool), np.full(30, 1e-3))
    assert felt() < 0.4 * alarmed


def test_time_passes_and_the_oldest_bins_go() -> None:
    shocks = Shocks(np.zeros((2, 1), dtype=np.int64), 10.0, 0.0)
    far = shocks.bin_width * BINS * 7.3
    shocks.advance(far)
    one = np.array([0])
    total = shocks.exposure(one, np.array([0.0]), np.array([far])).raw[0, 0]
    assert total == pytest.approx(shocks.mean[0] * far / shocks.bin_width, rel=0.35)


def test_families_grow_with_new_items() -> None:
    shocks = Shocks(np.array([[0, 3], [0, -1]]), 10.0, 0.0)
    before = shocks.kind.size
    shocks.evidence[0] = 5.0
    shocks.grow(np.array([[0, -1], [8, 3]]))
    assert shocks.kind.size == before + 1
    assert shocks.family_row[2, 0] == shocks.family_row[0, 0] == 0
    assert shocks.family_row[3, 1] == shocks.family_row[0, 1]
    assert shocks.evidence[0] == 5.0


def test_many_small_rises_of_a_large_family_add_up_to_a_review() -> None:
    """Of a thousand members a quarter changed: each find raises all by little, and together they matter."""
    members, rng = 1000, np.random.default_rng(3)
    shocks = Shocks(np.zeros((members, 1), dtype=np.int64), 10.0, 0.0)
    shocks.evidence[0] = 10.0  # known to have shocks
    shocks.refit()
    reviews, largest_rise = 0, 0.0
    since, now, other = np.array([0.0]), np.array([9.0]), np.array([members - 1])
    for item in range(100):
        one = np.array([item])
        before = float(shocks.exposure(other, since, now).total()[0])
        found = rng.random(1) < (0.0 if item < 60 else 0.25)
        risen = shocks.learn(shocks.exposure(one, since, now), since, now, found, np.full(1, 1e-2))
        if item >= 60:
            largest_rise = max(largest_rise, float(shocks.exposure(other, since, now).total()[0]) - before)
            reviews += int(risen.size == members)
    assert largest_rise < 0.02  # none of them would have been enough alone in version 0.1.0
    assert reviews > 1


def test_families_are_trusted_as_far_as_they_predict() -> None:
    shocks = Shocks(np.zeros((40, 1), dtype=np.int64), 10.0, 0.0)
    assert shocks.trust == 0.5
    every, little, much = np.ones(40, dtype=bool), np.full(40, 0.1), np.full(40, 1.0)
    for _ in range(5):
        shocks.compare(much, little, every, 40)
    assert shocks.trust > 0.99
    for _ in range(40):  # now they expect changes that do not come
        shocks.compare(much, little, ~every, 40)
    assert shocks.trust < 0.1
    for _ in range(40):
        shocks.compare(much, little, every, 40)
    assert shocks.trust > 0.9


def test_one_surprising_batch_neither_makes_nor_ends_the_trust_in_families() -> None:
    """The polls after one edit are not independent: twenty that families predict worse are not proof."""
    shocks = Shocks(np.zeros((200, 1), dtype=np.int64), 10.0, 0.0)
    every, little, much = np.ones(20, dtype=bool), np.full(20, 0.1), np.full(20, 1.0)
    shocks.compare(much, little, ~every, 200)
    assert 0.1 < shocks.trust < 0.5


def test_a_member_that_shocks_never_change_feels_less_of_them() -> None:
    """Each edit changes the same half of the family: the other half is expected to stay as it is."""
    shocks = Shocks(np.zeros((20, 1), dtype=np.int64), 10.0, 0.0)
    shocks.evidence[0] = 10.0  # known to have shocks
    shocks.refit()
    every, is_hit = np.arange(20), np.arange(20) < 10
    for turn in range(1, 9):
        since, now = np.full(20, 10.0 * turn - 10.0), np.full(20, 10.0 * turn)
        shocks.advance(10.0 * turn)
        for some, found in ((every[:5], True), (every[10:], False), (every[5:10], True)):
            exposure = shocks.exposure(some, since[some], now[some])
            shocks.learn(
                exposure, since[some], now[some], np.full(some.size, found), np.full(some.size, 1e-2)
            )
    share = shocks.member_share(every)
    assert share[~is_hit].max() < 0.3 * share[is_hit].min()
    total = shocks.exposure(every, since, now).total()
    assert total[~is_hit].max() < 0.3 * total[is_hit].min()
    rate = shocks.rate(every)
    assert rate[~is_hit].max() < 0.3 * rate[is_hit].min()
    shocks.grow(np.zeros((1, 1), dtype=np.int64))
    assert shocks.member_share(np.array([20])).tolist() == [1.0]  # nothing is known of a new member


def general_family(narrow: Ints) -> Shocks:
    """The shocks of narrow families, which are known to have shocks, and of the general family."""
    shocks = Shocks(with_general_family(narrow, len(narrow)), 10.0, 0.0, is_last_general=True)
    shocks.evidence[:-1] = 5.0
    shocks.refit()
    return shocks


def poll(shocks: Shocks, items: Ints, since: float, now: float, changed: bool, own: float = 0.05) -> None:
    """Poll these items together, all with the same result."""
    last, when = np.full(items.size, since), np.full(items.size, now)
    shocks.advance(now)
    exposure = shocks.exposure(items, last, when)
    shocks.learn(exposure, last, when, np.full(items.size, changed), np.full(items.size, own))


def expected(shocks: Shocks, item: int, since: float, now: float) -> float:
    return float(shocks.exposure(np.array([item]), np.array([since]), np.array([now])).total()[0])


def test_an_edit_of_items_whose_names_have_nothing_in_common_is_felt_by_all() -> None:
    shocks = general_family(np.full((40, 1), -1))
    before = expected(shocks, 39, 5.0, 9.0)
    poll(shocks, np.arange(6), 5.0, 9.0, changed=True)
    assert expected(shocks, 39, 5.0, 9.0) > before + 0.2


def test_polls_of_one_edited_directory_do_not_raise_all_others() -> None:
    """Once the directory is known to be edited, it explains its changes, and little is left for the rest."""
    directory = np.repeat([0, 1], 20)[:, None]
    risen = {}
    for is_last_general in (True, False):
        shocks = general_family(directory)
        shocks.is_last_general = is_last_general
        for begin in range(0, 20, 2):
            poll(shocks, np.arange(begin, begin + 2), 5.0, 9.0, changed=True)
        risen[is_last_general] = expected(shocks, 39, 5.0, 9.0)
        assert expected(shocks, 0, 5.0, 9.0) > 1.0
    assert risen[True] < 0.8 * risen[False]


def test_a_change_that_the_general_family_expects_is_little_evidence_for_a_narrower_one() -> None:
    families = np.array([0] * 5 + [-1] * 35)[:, None]
    gained = []
    for polled_before in (0, 12):
        shocks = general_family(families)
        for begin in range(10, 10 + polled_before, 2):
            poll(shocks, np.arange(begin, begin + 2), 5.0, 9.0, changed=True)
        narrow = int(np.flatnonzero(shocks.kind == 0)[0])
        before = float(shocks.evidence[narrow])
        poll(shocks, np.arange(5), 5.0, 9.0, changed=True)
        gained.append(float(shocks.evidence[narrow]) - before)
    assert 0.0 < gained[1] < 0.5 * gained[0]


def test_a_find_raises_items_of_the_general_family_as_far_as_they_change_by_themselves() -> None:
    shocks = general_family(np.full((40, 1), -1))
    shocks.mean_own_rate = 1.0
    shocks.set_own_rates(np.arange(40), np.where(np.arange(40) < 20, 0.1, 1.9))
    slow, busy = (expected(shocks, item, 5.0, 9.0) for item in (0, 39))
    poll(shocks, np.arange(20, 23), 5.0, 9.0, changed=True)
    raised_slow, raised_busy = (expected(shocks, item, 5.0, 9.0) for item in (0, 39))
    assert raised_busy - busy > 0.05
    assert raised_slow - slow < 0.2 * (raised_busy - busy)
    for _ in range(10):  # polls tell more than rates: the slow ones take part in every edit
        poll(shocks, np.arange(3), 5.0, 9.0, changed=True)
    assert expected(shocks, 0, 5.0, 9.0) > 2.0 * expected(shocks, 5, 5.0, 9.0)
