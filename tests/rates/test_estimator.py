"""What every estimator must do, found in the table: a new one is tested by being there."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.rates.estimator import ESTIMATORS, Estimator, estimate_polls
from afresh.rates.estimators.gamma_filter import GammaFilter
from afresh.rates.poll_table import PollTable, polls_from_intervals
from afresh.rates.priors.gamma_prior import GammaPrior

each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=list(ESTIMATORS))
extreme_times = st.floats(1e-12, 1e12)
times = st.floats(1e-2, 1e2)  # side by side 1e−12 and 1e12 make equations that rounding alone moves


@st.composite
def histories(draw: st.DrawFn, times: st.SearchStrategy[float] = times) -> PollTable:
    """Up to three items, each with up to twelve polls, some with stamps and counts."""
    rows: list[int] = []
    for item in range(3):
        rows += [item] * draw(st.integers(0, 12))
    number = len(rows)
    elapsed = np.array(draw(st.lists(times, min_size=number, max_size=number)), dtype=np.float64)
    changed = np.array(draw(st.lists(st.booleans(), min_size=number, max_size=number)), dtype=bool)
    since = count = None
    if draw(st.booleans()):
        known = np.array(draw(st.lists(st.booleans(), min_size=number, max_size=number)), dtype=bool)
        share = np.array(draw(st.lists(st.floats(0, 1), min_size=number, max_size=number)))
        since = np.where(known & changed, share * elapsed, np.nan)
    if draw(st.booleans()):
        most = np.array(draw(st.lists(st.integers(1, 9), min_size=number, max_size=number)))
        count = np.where(changed, most, 0).astype(np.float64)
    return PollTable(np.array(rows, dtype=np.int64), elapsed, changed, 3, since, count)


def run(estimator: Estimator[Any], polls: PollTable, prior: GammaPrior) -> Any:
    return estimator.update(estimator.start(prior, polls.items), polls)


def numbers(estimator: Estimator[Any], state: Any) -> np.ndarray[Any, Any]:
    return np.array([estimator.rate(state), *estimator.interval(state, 0.9)])


@each_estimator
@given(polls=histories(extreme_times), shape=st.floats(0.05, 20), rate=st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_no_history_gives_nan_and_intervals_are_in_order(
    estimator: Estimator[Any], polls: PollTable, shape: float, rate: float
) -> None:
    state = run(estimator, polls, GammaPrior.of(shape, rate))
    found, low, high = numbers(estimator, state)
    assert not np.any(np.isnan([found, low, high]))
    assert np.all(found >= 0)
    assert np.all(low >= 0)
    assert np.all(low <= high)


@each_estimator
@given(polls=histories(extreme_times))
@settings(deadline=None, max_examples=settings().max_examples // 2)
def test_priors_learned_from_any_history_give_no_nan(estimator: Estimator[Any], polls: PollTable) -> None:
    found = estimate_polls(polls, method=estimator.name)
    assert not np.any(np.isnan([found.rate, found.low, found.high]))
    silent = found.polls == 0
    assert np.all(found.rate[silent] > 0)
    assert np.all(np.isfinite(found.high[silent]))


@each_estimator
def test_without_polls_the_prior_answers(estimator: Estimator[Any]) -> None:
    prior = GammaPrior.of(1.5, 3.0)
    found, low, high = numbers(estimator, estimator.start(prior, 2))
    expected_low, expected_high = prior.interval(0.9)
    assert found == pytest.approx(0.5, rel=0.01)
    assert low == pytest.approx(expected_low[0], rel=0.02)
    assert high == pytest.approx(expected_high[0], rel=0.02)


@each_estimator
@pytest.mark.parametrize("rate", [0.1, 0.7, 1.5])
def test_many_regular_polls_lead_to_the_rate(estimator: Estimator[Any], rate: float) -> None:
    biases = {"naive": -np.expm1(-rate) / rate, "lln": np.expm1(rate) / rate}
    wanted = rate * biases.get(estimator.name, 1.0)
    number = 40_000
    # Changes as evenly spread as can be, so that chance plays no part.
    changed = np.diff(np.floor(-np.expm1(-rate) * np.arange(number + 1))) > 0
    polls = polls_from_intervals(np.ones(number), changed, item=np.zeros(number, dtype=np.int64))
    state = run(estimator, polls, GammaPrior.of(0.5, 0.5))
    found, low, high = numbers(estimator, state)
    assert found[0] == pytest.approx(wanted, rel=0.005)
    assert low[0] < wanted < high[0] < 1.1 * low[0]


@each_estimator
@given(polls=histories(), power=st.integers(-20, 20))
@settings(deadline=None)
def test_a_change_of_the_unit_of_time_changes_rates_alike(
    estimator: Estimator[Any], polls: PollTable, power: int
) -> None:
    unit = 2.0**power
    scaled = PollTable(
        polls.item,
        polls.elapsed * unit,
        polls.changed,
        polls.items,
        None if polls.since is None else polls.since * unit,
        polls.count,
    )
    ours = numbers(estimator, run(estimator, polls, GammaPrior.of(0.7, 2.0)))
    theirs = numbers(estimator, run(estimator, scaled, GammaPrior.of(0.7, 2.0 * unit)))
    np.testing.assert_allclose(theirs * unit, ours, rtol=1e-6)


@each_estimator
@given(polls=histories(), data=st.data())
@settings(deadline=None)
def test_the_order_of_polls_does_not_matter_where_it_should_not(
    estimator: Estimator[Any], polls: PollTable, data: st.DataObject
) -> None:
    shuffled = np.array(data.draw(st.permutations(range(polls.size))), dtype=np.int64)
    order = shuffled[np.argsort(polls.item[shuffled], kind="stable")]
    other = PollTable(
        polls.item,
        polls.elapsed[order],
        polls.changed[order],
        polls.items,
        *(None if c is None else c[order] for c in (polls.since, polls.count)),
    )
    prior = GammaPrior.of(0.7, 2.0)
    ours, theirs = (numbers(estimator, run(estimator, p, prior)) for p in (polls, other))
    if not isinstance(estimator, GammaFilter):
        np.testing.assert_allclose(theirs, ours, rtol=1e-6)
    else:
        assert np.all(np.isfinite(theirs[0]))


@each_estimator
@given(polls=histories(), cut=st.integers(0, 36))
@settings(deadline=None)
def test_updates_in_parts_equal_one_update(estimator: Estimator[Any], polls: PollTable, cut: int) -> None:
    first = np.zeros(polls.size, dtype=bool)
    # The first polls of every item, so that the order within items stays.
    rank = np.arange(polls.size) - np.searchsorted(polls.item, polls.item)
    first[rank < cut // 3] = True
    prior = GammaPrior.of(0.7, 2.0)
    state = estimator.start(prior, polls.items)
    for part in (first, ~first):
        columns = (None if c is None else c[part] for c in (polls.since, polls.count))
        piece = PollTable(polls.item[part], polls.elapsed[part], polls.changed[part], polls.items, *columns)
        state = estimator.update(state, piece)
    whole = numbers(estimator, run(estimator, polls, prior))
    np.testing.assert_allclose(numbers(estimator, state), whole, rtol=1e-6)


@each_estimator
def test_states_survive_pickling(estimator: Estimator[Any]) -> None:
    polls = polls_from_intervals([1.0, 2.0, 0.5], [True, False, True], item=[0, 0, 1])
    state = run(estimator, polls, GammaPrior.of(0.7, 2.0))
    again = pickle.loads(pickle.dumps((estimator, state)))
    np.testing.assert_array_equal(numbers(*again), numbers(estimator, state))


@each_estimator
def test_more_changes_mean_a_higher_rate(estimator: Estimator[Any]) -> None:
    items = 11
    item = np.repeat(np.arange(items), items - 1)
    changed = np.concatenate([np.arange(items - 1) < k for k in range(items)])
    state = run(
        estimator, polls_from_intervals(np.ones(item.size), changed, item=item), GammaPrior.of(0.5, 0.5)
    )
    found, low, high = numbers(estimator, state)
    for column in (found, low, high):
        finite = column[np.isfinite(column)]
        assert np.all(np.diff(finite) >= 0)
    assert found[5] > 2 * found[1] > 0


def test_names_are_the_keys() -> None:
    assert all(name == estimator.name for name, estimator in ESTIMATORS.items())
