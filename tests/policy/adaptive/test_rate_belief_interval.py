"""The rate that people are shown: wide before there is evidence, right as often as it says, and refutable."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.policy.adaptive.rate_belief import RateBelief, rate_interval
from afresh.rates.poll_table import PollTable, polls_from_intervals
from afresh.values.arrays import Bools, Float64s

NONE = polls_from_intervals([], [], items=1)


def of_one_item(gaps: Float64s, changed: Bools) -> PollTable:
    return polls_from_intervals(gaps, changed, item=np.zeros(gaps.size, dtype=int))


def test_without_polls_it_is_as_wide_as_the_ladder() -> None:
    median, low, high = rate_interval(RateBelief(1, 1.0), NONE)
    assert low < 1e-2 < median < 10.0 < high


def test_the_interval_holds_the_rate_as_often_as_it_says() -> None:
    rng, belief = np.random.default_rng(5), RateBelief(1, 1.0)
    held = []
    for _ in range(400):
        rate = 10.0 ** rng.uniform(-2.0, 1.0)
        gaps = rng.exponential(1.0, 30)
        changed = rng.random(30) < -np.expm1(-rate * gaps)
        _, low, high = rate_interval(belief, of_one_item(gaps, changed))
        held.append(low <= rate <= high)
    assert 0.85 < np.mean(held) < 0.97


@pytest.mark.parametrize("guess", [1e-2, 1e2])
def test_polls_refute_a_wrong_guess(guess: float) -> None:
    gaps = np.ones(40)
    changed = np.arange(40) % 2 == 0
    _, low, high = rate_interval(RateBelief(1, 1.0), of_one_item(gaps, changed), guess=guess)
    assert low < np.log(2.0) < high < 2.0


def test_a_guess_counts_while_there_is_nothing_else() -> None:
    belief = RateBelief(1, 1.0)
    medians = [rate_interval(belief, NONE, guess=guess)[0] for guess in (0.01, 1.0, 50.0)]
    assert medians == sorted(medians)


def test_few_items_leave_doubt_that_many_do_not() -> None:
    belief = RateBelief(1, 1.0)
    belief.prior = np.where(np.arange(belief.prior.size) == 9, 1.0, 1e-6)
    belief.prior /= belief.prior.sum()
    widths = []
    for items in (1, 100_000):
        _, low, high = rate_interval(belief, NONE, of_items=items)
        widths.append(np.log(high / low))
    assert widths[0] > 5 * widths[1]
