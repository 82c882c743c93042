"""A single round (``run --once``): what is due, and of the rest what the budget allows, by poll value."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.scheduler.test_picker import NOW, policy

from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import LiveSettings
from afresh.values.arrays import Float64s

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
