"""A single round (``run --once``): what is due, and a few of the items that were dropped."""

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

DUE, DROPPED = 500, 400


def holds(share: float, dropped_s: float = np.inf, **given: object) -> Float64s:
    """Until when each row is held when a round begins: first those that are due, then those dropped."""
    due_s = np.r_[np.full(DUE, NOW - 1.0), np.full(DROPPED, dropped_s)]
    chosen = policy(DUE + DROPPED, "adaptive", due_s=due_s, **given)
    recorder = PollRecorder(
        LiveSettings(parse_settings(f"[plan]\naudit_share = {share}")), Scheduler(chosen), PollCosts()
    )
    recorder.begin_single_round(NOW, np.random.default_rng(1))
    return chosen.item_rows.not_before_s


def test_what_is_due_is_polled_and_of_the_dropped_a_share() -> None:
    held_s = holds(0.1)
    assert np.all(held_s[:DUE] <= NOW)
    looked_at = np.count_nonzero(held_s[DUE:] <= NOW)
    assert looked_at == pytest.approx(DUE / 9, abs=4 * np.sqrt(DUE / 9))
    assert np.all(np.isinf(held_s[DUE:][held_s[DUE:] > NOW]))


@pytest.mark.parametrize(
    ("share", "given"),
    [
        (0.0, {}),
        (0.1, {"dropped_s": NOW + 1.0}),
        (0.1, {"weight": np.r_[np.ones(DUE), np.zeros(DROPPED)]}),
        (0.1, {"status": np.r_[np.zeros(DUE, dtype=np.int8), np.ones(DROPPED, dtype=np.int8)]}),
    ],
    ids=["no audits", "due later", "of no weight", "paused"],
)
def test_nothing_else_that_is_not_due_is_polled(share: float, given: dict[str, object]) -> None:
    held_s = holds(share, **given)  # type: ignore[arg-type]
    assert np.all(held_s[DUE:] > NOW)


def test_never_more_of_the_dropped_than_there_are() -> None:
    assert np.all(holds(0.9) <= NOW)
