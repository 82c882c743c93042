"""Notices made for a history have the recall and the false share asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.policy import PolicyInput
from afresh.policy.ranking_policy import UniformPolicy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import LIES, NoticeLog, make_notices, mark_lying, run_policy
from afresh.replay.scores import score_visits
from afresh.values.arrays import ArrayLike
from afresh.values.errors import UsageError

ITEM = np.repeat(np.arange(50), 200)
TIME = np.random.default_rng(3).uniform(0, 100, ITEM.size)


def notices(recall: float, false: float) -> tuple[set[tuple[int, float]], int]:
    """The notices as pairs, and how many there are."""
    item, time = make_notices(
        ITEM, TIME, 80, 0.0, 100.0, np.random.default_rng(5), recall=recall, false=false
    )
    assert np.all(np.diff(time) >= 0)
    assert item.min(initial=0) >= 0
    assert item.max(initial=0) < 80
    return set(zip(item.tolist(), time.tolist(), strict=True)), item.size


def test_recall_and_false_share() -> None:
    pairs, count = notices(0.8, 0.1)
    true = len(pairs & set(zip(ITEM.tolist(), TIME.tolist(), strict=True)))
    assert true / ITEM.size == pytest.approx(0.8, abs=0.02)
    assert 1 - true / count == pytest.approx(0.1, abs=0.01)


def test_false_ones_may_be_of_items_that_never_change() -> None:
    pairs, _ = notices(0.8, 0.5)
    assert {item for item, _ in pairs} == set(range(80))


def test_lying_hosts_announce_nothing_true_and_much_else() -> None:
    is_lying = mark_lying(np.arange(80) % 8, 0.5, np.random.default_rng(1))
    assert np.bincount(np.arange(80) % 8, is_lying).tolist().count(10.0) == 4
    item, time = make_notices(
        ITEM, TIME, 80, 0.0, 100.0, np.random.default_rng(5), recall=0.9, false=0.0, is_lying=is_lying
    )
    changes = set(zip(ITEM.tolist(), TIME.tolist(), strict=True))
    is_true = np.array([pair in changes for pair in zip(item.tolist(), time.tolist(), strict=True)])
    lies = is_lying[item]
    assert is_true[~lies].all()
    assert not is_true[lies].any()
    lying_changes = np.count_nonzero(is_lying[ITEM])
    assert np.count_nonzero(~lies) == pytest.approx(0.9 * (ITEM.size - lying_changes), rel=0.02)
    assert np.count_nonzero(lies) == pytest.approx(LIES * lying_changes, rel=0.02)
    with pytest.raises(UsageError, match="lying is 2"):
        mark_lying(ITEM, 2.0, np.random.default_rng(1))


def test_notices_are_told_with_their_origins() -> None:
    told: list[tuple[list[int], str]] = []

    class Listener(UniformPolicy):
        def notice(self, items: ArrayLike, now: ArrayLike, origin: str = "") -> None:
            del now
            told.append((np.asarray(items).tolist(), origin))

    log = NoticeLog(np.array([3, 4, 5]), np.array([1.0, 2.0, 9.0]), np.array([1, 0, 1]), ("feed", "sitemap"))
    history = ChangeHistory.of(9, [0], [1.5], 0.0, 10.0)
    run_policy(history, Listener(PolicyInput.of(9, 0.2)), 0.2, notices=log, batch=1)
    assert told == [([4], "feed"), ([3], "sitemap")]


def test_half_of_the_hosts_may_lie() -> None:
    """One rate for all would make notices worthless; learned of each host, those of honest ones are kept."""
    rng, items, days, budget = np.random.default_rng(8), 60, 120.0, 5.0
    item, time, hosts = rng.integers(0, items, 500), rng.uniform(0.0, days, 500), np.arange(items) % 6
    history = ChangeHistory.of(items, item, time, 0.0, days)
    is_lying = mark_lying(hosts, 0.5, rng)
    log = NoticeLog(
        *make_notices(item, time, items, 0.0, days, rng, recall=0.9, false=0.05, is_lying=is_lying)
    )
    start, fresh = replace(PolicyInput.of(items, budget), hour=None), []
    for one, notices in ((start, None), (start, log), (replace(start, hosts=hosts), log)):
        visits = run_policy(history, Adaptive(one), budget, notices=notices, batch=5)
        scores = score_visits(history, visits.item, visits.time, days / 3, np.random.default_rng(1))
        fresh.append(scores.freshness)
    alone, one_rate, by_host = fresh
    assert by_host > max(alone, one_rate) + 0.05


def test_all_or_nothing() -> None:
    assert notices(1.0, 0.0)[1] == ITEM.size
    assert notices(0.0, 0.5)[1] == 0


@pytest.mark.parametrize(
    ("recall", "false", "words"), [(1.1, 0.0, "recall is 1.1"), (1.0, 1.0, "false is 1")]
)
def test_what_is_no_share_is_refused(recall: float, false: float, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        notices(recall, false)
