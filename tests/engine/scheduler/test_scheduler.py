"""The scheduler as a whole: notices, items that are exchanged, what is left for a single round."""

from __future__ import annotations

import math

import numpy as np
from tests.engine.scheduler.test_picker import NOW, columns, policy

from afresh.engine.scheduler.row_policy import Tier
from afresh.engine.scheduler.scheduler import FOLLOWED_UP, Scheduler

NAMES = {1: "web", 2: "a.test"}


def test_the_first_notices_of_an_origin_are_followed_by_a_poll() -> None:
    scheduler = Scheduler(policy(30), NAMES)
    scheduler.notice([3], NOW, "feed")
    assert scheduler.policy.priorities(NOW).tier[2] == Tier.REQUESTED
    scheduler.item_rows.is_requested[:] = False
    for step in range(int(FOLLOWED_UP)):
        row, now_s = np.array([step]), NOW + 1.0 + step
        scheduler.policy.ranking.notice(row, now_s, "feed")
        scheduler.policy.ranking.learn(row, np.array([now_s + 0.5]), np.ones(1), np.zeros(1, dtype=bool))
    scheduler.notice([20], NOW + 50.0, "feed")
    assert not scheduler.item_rows.is_requested.any()  # by now it is known what they are worth
    scheduler.notice([21], NOW + 50.0, "sitemap")
    assert np.flatnonzero(scheduler.item_rows.is_requested).tolist() == [20]  # row 20 is item 21


def test_a_listing_that_announces_everything_draws_few_polls_of_many_hosts() -> None:
    hosts = np.repeat([2, 3, 4], 20)
    scheduler = Scheduler(policy(60, group=hosts), NAMES)
    scheduler.notice(list(range(1, 61)), NOW, "sitemap")
    requested = scheduler.item_rows.is_requested
    assert requested.sum() == FOLLOWED_UP
    assert set(hosts[requested]) == {2, 3, 4}
    scheduler.notice([], NOW, "sitemap")


def test_all_items_take_the_place_of_some_with_what_was_polled_meanwhile() -> None:
    some, full = Scheduler(policy(2), NAMES), Scheduler(policy(5), NAMES)
    before = some.item_rows
    polled = columns(2, polled_s=np.full(2, NOW - 5.0), due_s=np.full(2, math.inf))
    some.replace_items(full, polled)
    assert some.item_rows is full.item_rows
    assert some.item_rows is not before
    assert some.item_rows.polled_s.tolist() == [NOW - 5.0, NOW - 5.0, 900.0, 900.0, 900.0]
    assert some.policy.ranking.adaptive.rates().size == 5
    # The picker ranks the new rows, too.
    assert {some.picker.next(NOW, lambda _key, now_s: now_s) for _ in range(5)} == set(range(5))


def test_sources_with_rows_that_may_not_be_polled_are_not_waiting() -> None:
    scheduler = Scheduler(policy(3, source=np.array([1, 1, 2])), NAMES)
    scheduler.item_rows.not_before_s[2] = NOW + 10.0
    assert scheduler.waiting_sources(NOW) == {"web"}
    assert scheduler.waiting_sources(NOW + 11.0) == {"web", "a.test"}


def test_a_scheduler_of_twice_as_many_items_has_outgrown_its_families() -> None:
    scheduler = Scheduler(policy(40), NAMES)
    assert not scheduler.has_outgrown()
    scheduler.load([columns(40, first_id=41)], NAMES)
    assert scheduler.has_outgrown()
