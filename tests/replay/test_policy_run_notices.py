"""Notices made for a history have the recall and the false share asked for."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.replay.policy_run import make_notices
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


def test_all_or_nothing() -> None:
    assert notices(1.0, 0.0)[1] == ITEM.size
    assert notices(0.0, 0.5)[1] == 0


@pytest.mark.parametrize(
    ("recall", "false", "words"), [(1.1, 0.0, "recall is 1.1"), (1.0, 1.0, "false is 1")]
)
def test_what_is_no_share_is_refused(recall: float, false: float, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        notices(recall, false)
