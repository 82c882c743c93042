"""Recall and false rate of each source of notices are learned."""

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
    assert told.recall == pytest.approx(notices.recall[0])
    assert told.evidence_share == pytest.approx(1.0)


def test_sources_of_notices_are_told_apart() -> None:
    """A good source, one that invents, and one that came late: each gets its own recall and false rate."""
    rng = np.random.default_rng(7)
    notices, items = NoticeModel(500, 1.0), np.arange(500)
    for turn in range(60):
        changes = rng.poisson(0.3, 500)
        notices.add(np.repeat(items, rng.binomial(changes, 0.9)), "good")
        notices.add(np.repeat(items, rng.poisson(0.3, 500)), "invents")
        if turn >= 30:
            notices.add(np.repeat(items, rng.binomial(changes, 0.5)), "late")
        notices.learn(items, np.ones(500), changes > 0, np.full(500, 0.3))
    assert notices.sources == ["good", "invents", "late"]
    np.testing.assert_allclose(notices.recall, [0.9, 0.0, 0.5], atol=0.06)
    np.testing.assert_allclose(notices.false_rate, [0.0, 0.3, 0.0], atol=0.03)
    notices.add(np.array([3, 3]), "invents")
    assert notices.evidence(np.array([3]), np.array([0.3])).announced[0, 0] < 0.1
    notices.add(np.array([3]), "good")
    told = notices.evidence(np.array([3]), np.array([0.3]))
    assert told.announced[0, 0] > 2.0
    assert told.recall == pytest.approx(0.95, abs=0.04)
    assert told.evidence_share == pytest.approx(told.recall / 1.4, rel=0.1)
