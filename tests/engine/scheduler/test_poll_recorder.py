"""A single round (``run --once``): what is due, and of the rest what the budget allows, by poll value."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.scheduler.test_picker import NOW, policy

from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.poll_recorder import PollRecorder, with_update_cost
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import LiveSettings
from afresh.values.arrays import Float64s
from afresh.values.lease import Lease
from afresh.values.outcome import STARTS_AGAIN, Observation, Outcome, Spent

DUE, LATER = 50, 40


def round_of(allowed: float, **given: object) -> tuple[Float64s, int]:
    """Until when each row is held in a round, and how many are left out: first those due, then the others."""
    due_s = np.r_[np.full(DUE, NOW - 1.0), np.full(LATER, NOW + 1.0)]
    # The later a row was polled, the less its poll is worth.
    polled_s = np.linspace(NOW - 500.0, NOW - 10.0, DUE + LATER)
    chosen = policy(DUE + LATER, "adaptive", **({"due_s": due_s, "polled_s": polled_s} | given))
    recorder = PollRecorder(
        LiveSettings(parse_settings("")), Scheduler(chosen, {1: "web", 2: "host"}), PollCosts()
    )
    left_out = recorder.begin_single_round(NOW, allowed)
    return chosen.item_rows.not_before_s, left_out


@pytest.mark.parametrize("allowed", [0.0, 10.0, float(DUE)])
def test_what_is_due_is_polled_whatever_the_budget_allows(allowed: float) -> None:
    held_s, left_out = round_of(allowed)
    assert np.all(held_s[:DUE] <= NOW)
    assert np.all(np.isposinf(held_s[DUE:]))
    assert left_out == LATER


def test_the_best_of_the_others_are_polled_as_far_as_the_budget_allows() -> None:
    held_s, left_out = round_of(DUE + 10.0)
    assert np.all(held_s[: DUE + 10] <= NOW)
    assert np.all(np.isposinf(held_s[DUE + 10 :]))
    assert left_out == LATER - 10
    assert round_of(np.inf)[1] == 0


def test_what_is_paused_is_neither_polled_nor_left_out() -> None:
    status = np.r_[np.zeros(DUE, dtype=np.int8), np.ones(LATER, dtype=np.int8)]
    assert round_of(DUE + 10.0, status=status)[1] == 0


def test_what_the_source_states_reaches_the_belief_and_lies_are_forgotten() -> None:
    chosen = policy(4, "adaptive", polled_s=np.array([np.nan, np.nan, NOW - 100.0, NOW - 100.0]))
    recorder = PollRecorder(
        LiveSettings(parse_settings("")), Scheduler(chosen, {1: "web", 2: "host"}), PollCosts()
    )
    ids, belief = chosen.item_rows.ids.tolist(), chosen.ranking.adaptive.belief

    def poll(
        row: int, time_s: float, elapsed_s: float, *, changed: bool, modified_s: float | None = None
    ) -> None:
        lease = Lease(ids[row], str(row), "web", "host", 1, NOW + 1e6)
        seen = Observation(ids[row], time_s, elapsed_s, changed, modified_s=modified_s)
        recorder.complete([Outcome(lease, time_s, -np.inf, seen)])

    poll(0, NOW, 0.0, changed=False, modified_s=NOW - 1e8)
    before = belief.posterior[1].copy()
    poll(1, NOW, 0.0, changed=False, modified_s=NOW - 1.0)  # many servers send the time of the answer
    assert np.array_equal(belief.posterior[1], before)
    assert belief.mean(np.array([0])) < 0.5 * belief.mean(np.array([1]))  # an old page changes rarely
    for after_s in range(100, 2000, 100):
        poll(2, NOW + after_s, 100.0, changed=False)
    assert belief.polls[2] == 19
    poll(2, NOW + 2000.0, 2000.0, changed=True)  # the answers since the beginning were lies
    assert belief.polls[2] == 1
    assert chosen.ranking.adaptive.items.last_poll[2] == NOW + 2000.0
    poll(2, NOW + 3000.0, STARTS_AGAIN, changed=False)  # other content settings
    assert (belief.polls[2], belief.polled[2]) == (0, False)


def test_a_change_costs_its_update_cost() -> None:
    settings = parse_settings('[[source]]\nname = "web"\nupdate_cost = 0.5')
    assert with_update_cost(Spent(1, 10, 0.1, 0.25), settings, "web").money == 0.75
    assert with_update_cost(Spent(1, 10, 0.1, 0.25), settings, "gone").money == 0.25
