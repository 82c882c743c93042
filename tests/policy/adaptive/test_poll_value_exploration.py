"""Polls for the sake of what they teach: items that are always found changed are told apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.policy.adaptive.poll_value import Exploration, PollValue
from afresh.policy.policy import PolicyInput
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import replay
from afresh.values.objective_names import OBJECTIVE_NAMES

RATES = np.exp2(np.arange(-6.0, 8.0))


@settings(deadline=None)
@given(
    st.sampled_from(OBJECTIVE_NAMES),
    st.lists(st.floats(0.0, 1.0), min_size=RATES.size, max_size=RATES.size),
    st.floats(1e-3, 1e3),
    st.floats(1e-3, 10.0),
)
def test_a_bit_is_never_worth_less_than_nothing(
    objective: str, weights: list[float], elapsed: float, price: float
) -> None:
    belief = np.array([weights], dtype=np.float32) + 1e-3
    belief /= belief.sum()
    exploration = Exploration(PollValue(objective, RATES), 1.0)
    information = exploration.information(belief, np.array([elapsed]), np.array([price]))
    assert np.all(np.isfinite(information))
    assert np.all(information >= 0)


def test_what_is_known_teaches_nothing() -> None:
    exploration = Exploration(PollValue("freshness", RATES), 1.0)
    sure = np.eye(RATES.size, dtype=np.float32)
    assert exploration.information(sure, np.array([0.7]), np.full(RATES.size, 0.3)).max() < 1e-5


def test_daily_and_weekly_pages_are_told_apart() -> None:
    """Cho's mix at one poll a month: by its index alone the policy captures less than a third."""
    rng = np.random.default_rng(5)
    days = np.repeat([1.0, 7.0, 30.0, 120.0, 365.0], [92, 60, 64, 64, 120])
    length = 900.0
    counts = rng.poisson(length / days)
    history = ChangeHistory.of(
        days.size, np.repeat(np.arange(days.size), counts), rng.uniform(0, length, counts.sum()), 0.0, length
    )
    start = PolicyInput(days.size / 30.0, np.ones(days.size), np.ones(days.size), hour=None)
    (adaptive,) = replay(history, ["adaptive"], start, warm_up=0.5, batch=10)
    assert adaptive.after.captured > 0.5
