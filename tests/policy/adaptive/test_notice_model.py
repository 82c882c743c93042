"""Recall and false rate are learned of each origin of notices and of each host."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.policy.adaptive.notice_model import NoticeModel


def test_recall_and_false_rate_are_learned() -> None:
    rng = np.random.default_rng(3)
    notices, items = NoticeModel(500, 1.0), np.arange(500)
    for _ in range(40):
        changes = rng.poisson(0.3, 500)
        number = rng.binomial(changes, 0.8) + rng.poisson(0.03, 500)
        notices.add(np.repeat(items, number))
        notices.learn(items, np.ones(500), changes > 0, np.full(500, 0.3))
    assert notices.recall[0] == pytest.approx(0.8, abs=0.05)
    assert notices.false_rate[0] == pytest.approx(0.03, rel=0.15)
    told = notices.evidence(items[:1], np.array([0.3]))
    assert told.announced[0, 0] == 0.0
    assert told.recall == pytest.approx(notices.recall[0], abs=0.01)
    assert told.evidence_share == pytest.approx(1.0)


def test_origins_of_notices_are_told_apart() -> None:
    """A good origin, one that invents, and one that came late: each gets its own recall and false rate."""
    rng = np.random.default_rng(7)
    notices, items = NoticeModel(500, 1.0), np.arange(500)
    for turn in range(60):
        changes = rng.poisson(0.3, 500)
        notices.add(np.repeat(items, rng.binomial(changes, 0.9)), "good")
        notices.add(np.repeat(items, rng.poisson(0.3, 500)), "invents")
        if turn >= 30:
            notices.add(np.repeat(items, rng.binomial(changes, 0.5)), "late")
        notices.learn(items, np.ones(500), changes > 0, np.full(500, 0.3))
    assert notices.origins == ["good", "invents", "late"]
    np.testing.assert_allclose(notices.recall, [0.9, 0.0, 0.5], atol=0.06)
    np.testing.assert_allclose(notices.false_rate, [0.0, 0.3, 0.0], atol=0.03)
    notices.add(np.array([3, 3]), "invents")
    assert notices.evidence(np.array([3]), np.array([0.3])).announced[0, 0] < 0.1
    notices.add(np.array([3]), "good")
    told = notices.evidence(np.array([3]), np.array([0.3]))
    assert told.announced[0, 0] > 2.0
    assert told.recall == pytest.approx(0.95, abs=0.04)
    assert told.evidence_share == pytest.approx(told.recall / 1.4, rel=0.1)


HONEST, LYING, SILENT, NEW = range(4)
ITEMS = np.arange(400)
HOST = ITEMS % 4


def learned_of_hosts(turns: int = 60) -> NoticeModel:
    """One host announces its changes, one announces anything, one nothing, and one is not polled yet."""
    rng = np.random.default_rng(11)
    notices = NoticeModel(ITEMS.size, 1.0)
    notices.set_hosts(ITEMS, 1000 - HOST)  # hosts are any numbers
    polled = ITEMS[HOST != NEW]
    for _ in range(turns):
        changes = rng.poisson(0.3, ITEMS.size)
        true = rng.binomial(changes * (HOST == HONEST), 0.9)
        invented = rng.poisson(np.choose(HOST, [0.01, 1.5, 0.0, 0.0]))
        notices.add(np.repeat(ITEMS, true + invented), "sitemap")
        notices.learn(polled, np.ones(polled.size), changes[polled] > 0, np.full(polled.size, 0.3))
    return notices


def test_each_host_is_believed_as_far_as_its_notices_were_right() -> None:
    notices = learned_of_hosts()
    recall, false_rate = (rates[:, 0] for rates in notices.host_rates(np.arange(4)))
    assert recall[HONEST] == pytest.approx(0.9, abs=0.05)
    assert recall[LYING] < 0.3
    np.testing.assert_allclose(false_rate[[HONEST, LYING]], [0.01, 1.5], rtol=0.3)
    notices.add(np.array([HONEST, LYING]), "sitemap")
    announced = notices.evidence(np.array([HONEST, LYING]), np.array([0.3])).announced[:, 0]
    assert announced[HONEST] > 2.0
    assert announced[LYING] < 0.1


def test_silence_tells_nothing_of_a_host_that_never_announced_anything() -> None:
    notices = learned_of_hosts()
    told = notices.evidence(np.arange(4), np.array([0.3]))
    assert told.recall[HONEST] > 0.8
    assert told.recall[[SILENT, NEW], 0].tolist() == [0.0, 0.0]
    assert told.evidence_share[[SILENT, NEW], 0].tolist() == [1.0, 1.0]
    # The first notice of a host is worth what notices of its origin are worth.
    notices.add(np.array([NEW]), "sitemap")
    recall, _ = notices.host_rates(np.array([NEW]))
    assert recall[0, 0] == pytest.approx(notices.recall[0])
    assert 0.1 < notices.recall[0] < 0.8


def test_hosts_may_come_later_and_keep_what_was_learned() -> None:
    notices = learned_of_hosts()
    before = notices.host_rates(np.arange(3))
    notices.grow(2)
    notices.set_hosts(np.array([400, 401]), np.array([7, 1000]))  # a new host, and the honest one
    np.testing.assert_array_equal(notices.host_rates(np.arange(3)), before)
    recall, _ = notices.host_rates(np.array([400, 401]))
    assert recall[:, 0].tolist() == [0.0, before[0][0, 0]]


def test_items_that_change_between_any_two_polls_do_not_hide_the_recall() -> None:
    """How often they change is not known: a rate far too high must not make notices seem to be missing."""
    rng = np.random.default_rng(5)
    notices, items = NoticeModel(200, 1.0), np.arange(200)
    true_rate, believed = np.where(items < 100, 0.3, 4.0), np.where(items < 100, 0.3, 100.0)
    for _ in range(50):
        changes = rng.poisson(true_rate)
        notices.add(np.repeat(items, rng.binomial(changes, 0.8)))
        notices.learn(items, np.ones(200), changes > 0, believed)
    assert 0.65 < notices.recall[0] < 0.85
    assert notices.followed[0] == pytest.approx(0.8 * 50 * (30 + 400), rel=0.1)


def test_a_waiting_notice_tells_nothing_of_the_other_items_of_its_host() -> None:
    """Or what a page says of an item would depend on which other items it shows."""
    notices, both = learned_of_hosts(), np.array([NEW, NEW + 1])
    notices.set_hosts(both, np.array([5000, 5000]))
    before = notices.host_rates(both[1:])
    notices.take_pending(both[:1], np.ones((1, 1)), ["sitemap"])
    np.testing.assert_array_equal(notices.host_rates(both[1:]), before)
    assert notices.host_rates(both[:1])[0][0, 0] > 0
    notices.learn(both[:1], np.ones(1), np.array([True]), np.ones(1))
    assert notices.host_rates(both[1:])[0][0, 0] > 0
