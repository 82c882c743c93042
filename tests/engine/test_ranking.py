"""The adaptive policy inside the engine: it learns, grows, recalls, and survives clocks set back."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.test_choosing import NOW, columns, policy

from afresh.engine.policy import Policy
from afresh.engine.ranking import Ranking

BUDGET = 0.1


def ranked(count: int, **given: object) -> Policy:
    chosen = policy(count, **given)  # type: ignore[arg-type]
    chosen.ranking = Ranking(chosen.memory, BUDGET, "freshness", NOW)
    return chosen


def teach(chosen: Policy, changing: int, rounds: int, start_s: float = NOW) -> float:
    """Poll all rows at even times; one of them has always changed."""
    now_s = start_s
    for _ in range(rounds):
        now_s += 10.0
        for row in range(chosen.memory.size):
            chosen.observe(row, now_s, 10.0, row == changing)
    return now_s


def test_what_changes_is_worth_more() -> None:
    chosen = ranked(3)
    now_s = teach(chosen, changing=1, rounds=20)
    worth = chosen.worth(now_s + 5.0)
    assert int(np.argmax(worth)) == 1


def test_a_new_process_starts_from_the_summaries() -> None:
    taught = ranked(3)
    now_s = teach(taught, changing=1, rounds=20)
    kept = [taught.memory.evidence(row) for row in range(3)]
    sizes = np.array([len(belief) for belief in kept])
    fresh = policy(3, beliefs=b"".join(kept), belief_size=sizes, polled_s=np.full(3, now_s))
    fresh.prior = taught.prior
    ranking = Ranking(fresh.memory, BUDGET, "freshness", now_s)
    ranking.recall(*fresh.posterior())
    after = ranking.values(now_s + 30.0, np.zeros(3))
    # On its ladder of rates a Gamma is worth what the Gamma itself is, but for the ladder's ends.
    assert after == pytest.approx(fresh.worth(now_s + 30.0), rel=0.15)
    assert np.argmax(after) == np.argmax(taught.worth(now_s + 30.0))


def test_items_that_come_later_are_valued_too() -> None:
    chosen = ranked(2)
    chosen.memory.load([columns(2, first_id=3)])
    assert np.isfinite(chosen.worth(NOW + 50.0)).all()
    chosen.observe(3, NOW + 60.0, 60.0, True)
    assert np.isfinite(chosen.worth(NOW + 70.0)).all()


def test_weights_follow() -> None:
    chosen = ranked(2)
    chosen.memory.weight[1] = 10.0
    assert chosen.ranking is not None
    chosen.ranking.reweighed(np.array([1]))
    worth = chosen.worth(NOW + 100.0)
    assert worth[1] == pytest.approx(10.0 * worth[0])


def test_a_clock_set_back_stops_nothing() -> None:
    chosen = ranked(4)
    now_s = teach(chosen, changing=1, rounds=5)
    chosen.worth(now_s + 20.0)
    back_s = now_s + 20.0 - 3600.0
    chosen.memory.polled_s[:] = np.minimum(chosen.memory.polled_s, back_s)
    for row in range(3):
        chosen.observe(row, back_s + 1.0, 1.0, False)
    worth = chosen.worth(back_s + 30.0)
    assert int(np.argmax(worth[[0, 2, 3]])) == 2  # the one that was not polled since


def test_of_many_items_the_most_urgent_are_valued_and_the_others_keep_their_index() -> None:
    count = 12_000
    chosen = ranked(count, weight=np.where(np.arange(count) < 50, 100.0, 1.0))
    worth = chosen.worth(NOW + 100.0)
    assert np.isfinite(worth).all()
    assert set(np.argsort(-worth)[:50].tolist()) == set(range(50))
