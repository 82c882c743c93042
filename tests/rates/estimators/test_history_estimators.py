"""Maximum likelihood and moment matching against scipy, item by item."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2
from tests.rates.populations import draw_rates, poll

from afresh.rates.estimators.history_estimators import likelihood_interval, matching_rate, most_likely
from afresh.rates.poll_table import PollTable, polls_from_intervals
from afresh.values.arrays import Float64s


@pytest.fixture(scope="module")
def polls() -> PollTable:
    rng = np.random.default_rng(4)
    return poll(draw_rates("wide lognormal", 300, rng), 1, 40, rng)


def own(polls: PollTable, item: int) -> tuple[Float64s, Float64s]:
    mine = polls.item == item
    return polls.elapsed[mine & polls.changed], polls.elapsed[mine & ~polls.changed]


def log_likelihood(log_rate: float, changed: Float64s, quiet: Float64s) -> float:
    rate = np.exp(log_rate)
    return float(np.sum(np.log(-np.expm1(-rate * changed))) - rate * quiet.sum())


def test_the_maximum_solves_the_equation(polls: PollTable) -> None:
    found = most_likely(polls)
    inner = 0
    for item in range(polls.items):
        changed, quiet = own(polls, item)
        if changed.size == 0:
            assert found[item] == 0.0
        elif quiet.size == 0:
            assert np.isinf(found[item])
        else:
            inner += 1
            score = lambda x, c=changed, q=quiet: np.sum(c / np.expm1(np.exp(x) * c)) - q.sum()  # noqa: E731
            wanted = np.exp(brentq(score, -30.0, 3.0, xtol=1e-14))
            assert found[item] == pytest.approx(wanted, rel=1e-10)
    assert inner > 100


def test_the_interval_is_where_the_likelihood_has_dropped(polls: PollTable) -> None:
    low, high = likelihood_interval(polls, 0.9)
    best = most_likely(polls)
    drop = chi2.ppf(0.9, 1) / 2
    for item in range(polls.items):
        changed, quiet = own(polls, item)
        top = log_likelihood(np.log(best[item]), changed, quiet) if 0 < best[item] < np.inf else 0.0
        for end in (low[item], high[item]):
            if 0 < end < np.inf:
                assert log_likelihood(np.log(end), changed, quiet) == pytest.approx(top - drop, abs=1e-8)
        assert (low[item] == 0) == (changed.size == 0)
        assert np.isinf(high[item]) == (quiet.size == 0)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_intervals_of_any_length_side_by_side(unit: float) -> None:
    polls = polls_from_intervals(
        np.array([1e-6, 1.0, 1e6, 1e3, 2.0]) * unit,
        [True, False, True, False, True],
        item=[0, 0, 0, 0, 0],
    )
    rate = most_likely(polls)[0] * unit
    changed, quiet = np.array([1e-6, 1e6, 2.0]), 1001.0
    wanted = brentq(
        lambda x: np.sum(np.exp(-x * changed) * changed / -np.expm1(-x * changed)) - quiet, 1e-5, 1
    )
    assert rate == pytest.approx(wanted, rel=1e-9)
    low, high = likelihood_interval(polls, 0.9)
    assert 0 < low[0] * unit < rate < high[0] * unit < np.inf


def test_matching_makes_the_expected_changes_those_found(polls: PollTable) -> None:
    share = polls.changes_per_item() / np.maximum(polls.polls_per_item(), 1)
    found = matching_rate(polls, share)
    inner = (share > 0) & (share < 1)
    finite = np.where(inner, found, 1.0)
    expected = np.bincount(polls.item, -np.expm1(-finite[polls.item] * polls.elapsed), minlength=polls.items)
    np.testing.assert_allclose(expected[inner], polls.changes_per_item()[inner], rtol=1e-10)
    assert np.all(found[share == 0] == 0)
    assert np.all(np.isinf(found[share == 1]))


def test_regular_polls_give_the_closed_form() -> None:
    polls = polls_from_intervals(np.full(10, 2.0), np.arange(10) < 3, item=np.zeros(10, dtype=np.int64))
    wanted = -np.log(0.7) / 2.0
    assert most_likely(polls)[0] == pytest.approx(wanted, rel=1e-12)
    assert matching_rate(polls, np.array([0.3]))[0] == pytest.approx(wanted, rel=1e-12)
