"""The public functions: one item, many items, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.rates.populations import draw_rates, poll

import afresh
from afresh.rates.estimator import ESTIMATORS, estimate, estimate_many
from afresh.values.errors import InputError, UsageError
from afresh.values.results import RateEstimate


@pytest.mark.parametrize("method", ESTIMATORS)
def test_one_item_by_every_method(method: str) -> None:
    found = estimate([0, 1, 2, 3.5, 4, 6], [0, 1, 0, 0, 1, 0], method=method, level=0.8)
    assert isinstance(found, RateEstimate)
    assert (found.polls, found.changes, found.method) == (5, 2, method)
    assert 0 < found.low < found.rate < found.high


def test_the_top_level_names() -> None:
    assert afresh.estimate is estimate
    assert afresh.estimate_many is estimate_many


@pytest.mark.parametrize("times", [[], [7.0]])
def test_no_interval_yet_is_the_prior(times: list[float]) -> None:
    found = estimate(times, [False] * len(times), prior=(2.0, 8.0))
    assert (found.rate, found.polls) == (0.25, 0)
    default = estimate(times, [False] * len(times))
    assert 0 < default.low < default.rate < default.high < np.inf


def test_a_wider_level_is_a_wider_interval() -> None:
    narrow, wide = (estimate(range(9), np.arange(9) % 2 == 0, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_stamps_and_counts_say_more_than_bits() -> None:
    times, changed = np.arange(0, 50, 10.0), np.ones(5, dtype=bool)
    stamped = estimate(times, changed, modified=times - 1.0, method="last-modified")
    counted = estimate(times, changed, count=np.full(5, 9), method="counts")
    bits = estimate(times, changed)
    assert stamped.rate > 1.5 * bits.rate
    assert counted.rate == pytest.approx(36.5 / 45.0)
    assert counted.changes == 36


def test_a_failed_look_is_left_out() -> None:
    with_failure = estimate([0, 1, 2, 3], [0, 0, 1, 1], reached=[1, 1, 0, 1])
    assert with_failure == estimate([0, 1, 3], [0, 0, 1])


def test_a_horizon_forgets() -> None:
    times, changed = np.arange(41.0), np.arange(41) < 20
    assert estimate(times, changed, horizon=5.0).rate < 0.3 * estimate(times, changed).rate


def test_many_items_share_what_they_learn() -> None:
    rng = np.random.default_rng(0)
    rates = draw_rates("gamma 0.5", 500, rng)
    polls = poll(rates, 1, 4, rng)
    ends = np.cumsum(polls.elapsed)
    item = np.concatenate((np.arange(501), polls.item))
    times = np.concatenate((np.zeros(501), ends))
    changed = np.concatenate((np.zeros(501, dtype=bool), polls.changed))
    found = estimate_many(item, times, changed, items=501)
    assert found.polls[-1] == 0
    assert 0 < found.low[-1] < found.rate[-1] < found.high[-1] < np.inf
    assert np.all(np.isfinite(found.high))
    assert np.all(found.rate > 0)


def test_groups_separate_fast_from_slow() -> None:
    rng = np.random.default_rng(1)
    groups = (np.arange(400) % 2).astype(np.int64)
    polls = poll(np.where(groups == 0, 0.05, 2.0), 3, 3, rng)
    starts = np.arange(400)
    item = np.concatenate((starts, polls.item, [400, 401]))
    offset = np.cumsum(polls.elapsed)
    times = np.concatenate((np.full(400, 0.0), offset, [0.0, 0.0]))
    changed = np.concatenate((np.zeros(400, dtype=bool), polls.changed, [False, False]))
    first = np.searchsorted(polls.item, starts)
    times[:400] = offset[first] - polls.elapsed[first]
    found = estimate_many(item, times, changed, groups=np.append(groups, [0, 1]))
    assert found.rate[400] < 0.2 < 1.0 < found.rate[401]


def test_the_rate_to_plan_with_is_below_the_mean_where_little_is_known() -> None:
    looks: tuple[list[int], ...] = ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1])
    mean = estimate_many(*looks).rate
    soon, late = (estimate_many(*looks, interval=t).rate for t in (1e-3, 30.0))
    assert mean[0] < soon[0] < soon[1] < mean[1]  # drawn together
    assert np.all(late < soon)
    often = (np.repeat([0, 1], 41), np.tile(np.arange(41), 2), np.arange(82) % 41 < np.repeat([5, 20], 41))
    few, many = (estimate_many(*looks).rate[0], estimate_many(*often).rate[0])
    drawn = estimate_many(*looks, interval=1e-3).rate[0], estimate_many(*often, interval=1e-3).rate[0]
    assert drawn[0] > 1.2 * few  # towards the others after one poll
    assert drawn[1] == pytest.approx(many, rel=0.05)  # hardly after forty


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: estimate([0, 1], [0, 1], method="gama"), UsageError, "did you mean 'gamma'"),
        (lambda: estimate([0, 1], [0, 1], level=1.0), InputError, "level is 1.0"),
        (lambda: estimate([0, 1], [0, 1], prior=(0.0, 1.0)), InputError, "shape of a Gamma prior"),
        (lambda: estimate([0, 1], [0, 1], prior=3), InputError, "prior is 3: must be two numbers"),  # type: ignore[arg-type]
        (lambda: estimate([0, 1], [0, 1], horizon=-1.0), InputError, "horizon is -1.0"),
        (lambda: estimate([0, 1], [0, 1], horizon=5.0, method="mle"), UsageError, "does not forget"),
        (lambda: estimate([[0, 1]], [[0, 1]]), InputError, "2 dimensions"),
        (lambda: estimate([0, 1, 2], [0, 1]), InputError, "changed has 2 values for 3 polls"),
        (lambda: estimate([0, 1], [0, 1], reached=[1]), InputError, "reached has 1 values for 2 polls"),
        (lambda: estimate([0, 1], [0, 1], modified=[1.0]), InputError, "modified has 1 values for 2 polls"),
        (lambda: estimate([0, 1], ["no", "yes"]), InputError, "changed holds 'no': must be true or false"),
        (lambda: estimate([0, 1], [0, np.nan]), InputError, r"changed\[1\] is nan: must be true or false"),
        (lambda: estimate([0, 1], [0, 2]), InputError, r"changed\[1\] is 2: must be true or false"),
        (lambda: estimate([0, 1], np.array([0, None])), InputError, "changed holds 0: must be"),
        (lambda: estimate([0, 1], [0, 1], reached=[1, np.nan]), InputError, r"reached\[1\] is nan"),
        (lambda: estimate(["a", "b"], [0, 1]), InputError, "times is not a list of numbers"),
        (lambda: estimate([0, np.inf], [0, 1]), InputError, r"times\[1\] is inf"),
        (lambda: estimate_many([0, 0], [0, 1], [0, 1], groups=[0, 1]), InputError, "groups has 2 values"),
        (lambda: estimate_many([0, 0], [0, 1], [0, 1], interval=0.0), InputError, "interval is 0.0"),
        (
            lambda: estimate_many([0, 0], [0, 1], [0, 1], interval=1.0, method="mle"),
            UsageError,
            "no posterior",
        ),
    ],
)
def test_wrong_questions_are_refused(wrong: object, error: type[Exception], message: str) -> None:
    assert callable(wrong)
    with pytest.raises(error, match=message):
        wrong()
