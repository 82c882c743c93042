"""A policy that is built again beside the old one, which goes on learning."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.scheduler.test_picker import policy
from tests.engine.scheduler.test_ranking import teach


def test_polls_made_while_it_was_built_are_kept() -> None:
    beside, at_once = policy(30), policy(30)
    now_s, _ = (teach(each, changing=1, rounds=30) for each in (beside, at_once))
    rebuild = beside.ranking.prepare_rebuild(0.4)
    before = beside.ranking.adaptive
    at_once.ranking.rebuild(0.4, None)
    for each in (beside, at_once):
        rows = np.array([1, 7])
        times = np.full(2, now_s + 20.0)
        each.ranking.learn(rows, times, np.full(2, 20.0), np.array([True, True]))
    assert beside.ranking.replace_policy(rebuild.build(None))
    found, wanted = beside.ranking.adaptive, at_once.ranking.adaptive
    assert found is not before
    assert found.items.last_poll.tolist() == wanted.items.last_poll.tolist()
    assert found.belief.polls.tolist() == wanted.belief.polls.tolist()
    assert found.rates() == pytest.approx(wanted.rates(), rel=0.02)
    others = np.setdiff1d(np.arange(30), [1, 7])
    assert found.rates()[others] == pytest.approx(wanted.rates()[others], rel=1e-3)
    orders = [np.argsort(-each.poll_values(now_s + 60.0))[:2].tolist() for each in (beside, at_once)]
    assert orders[0] == orders[1]


def test_what_was_forgotten_meanwhile_stays_forgotten() -> None:
    chosen = policy(30)
    teach(chosen, changing=1, rounds=30)
    rebuild = chosen.ranking.prepare_rebuild(0.4)
    chosen.ranking.forget(np.array([1]))
    assert chosen.ranking.replace_policy(rebuild.build(None))
    assert not chosen.ranking.adaptive.belief.polled[1]
    assert chosen.ranking.adaptive.belief.polled[2]


def test_a_policy_that_was_replaced_meanwhile_stays() -> None:
    chosen = policy(30)
    teach(chosen, changing=1, rounds=5)
    rebuild = chosen.ranking.prepare_rebuild(0.4)
    chosen.ranking.set_objective("age")
    newer = chosen.ranking.adaptive
    assert not chosen.ranking.replace_policy(rebuild.build(None))
    assert chosen.ranking.adaptive is newer
