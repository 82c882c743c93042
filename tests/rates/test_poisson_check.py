"""Is it Poisson? The statistic by its definition, its p value by simulation, the sentences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.stats import kstest

from afresh.rates.poisson_check import (
    PoissonChecks,
    check_gaps,
    check_items,
    gap_histogram,
    gaps_of,
    observed_gaps,
)
from afresh.rates.poll_table import PollTable
from afresh.values.errors import InputError


def check_one(gaps: ArrayLike) -> PoissonChecks:
    """The check of one item with these gaps between its changes."""
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    return check_items(np.zeros(times.size), times, least=5)


GAPS = st.lists(st.floats(1e-3, 1e3), min_size=5, max_size=60)


@settings(deadline=None)
@given(gaps=GAPS, scale=st.floats(1e-6, 1e6))
def test_the_statistic_is_the_kolmogorov_distance_in_any_unit(gaps: list[float], scale: float) -> None:
    found = check_one(gaps)
    wanted = kstest(gaps, "expon", args=(0, np.mean(gaps))).statistic
    assert found.statistic[0] == pytest.approx(wanted, abs=1e-9)
    dispersion = np.var(gaps, ddof=1) / np.mean(gaps) ** 2
    assert found.dispersion[0] == pytest.approx(dispersion, rel=1e-6, abs=1e-9)
    assert 1e-4 <= found.p_value[0] * (1 + 1e-12) <= 1 + 1e-9
    assert check_one(np.array(gaps) * scale).statistic[0] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("n", [6, 12, 40, 300])
def test_p_values_of_true_poisson_gaps_are_uniform(n: int) -> None:
    runs = 4000
    gaps = np.random.default_rng(n).standard_exponential((runs, n))
    times = np.cumsum(np.concatenate([np.zeros((runs, 1)), gaps], axis=1), axis=1)
    found = check_items(np.repeat(np.arange(runs), n + 1), times.ravel(), least=n)
    assert found.item.size == runs
    for level in (0.01, 0.05, 0.1, 0.25):
        rejected = np.mean(found.p_value < level)
        assert abs(rejected - level) < 0.004 + 3.5 * math.sqrt(level * (1 - level) / runs)
    assert 0.4 < np.median(found.p_value) < 0.6


@pytest.mark.parametrize(
    ("power", "says"), [(1.0, "1 (100%) look Poisson"), (2.0, "in bursts"), (0.4, "more regularly")]
)
def test_sentences_say_what_the_gaps_do(power: float, says: str) -> None:
    gaps = np.random.default_rng(8).standard_exponential(400) ** power
    found = check_one(gaps)
    assert says in found.sentence
    assert (found.p_value[0] >= 0.05) == (power == 1.0)
    assert (found.dispersion[0] > 1.25) == (power == 2.0)


def test_gaps_that_vary_alike_but_are_not_exponential() -> None:
    # Two values whose variance is about their squared mean, far from exponential in shape.
    found = check_one([1e-3, 2.0] * 100)
    assert found.dispersion[0] == pytest.approx(1.0, abs=0.01)
    assert found.p_value[0] < 0.001


def test_many_items_agree_with_one_at_a_time() -> None:
    rng = np.random.default_rng(2)
    item = rng.integers(0, 40, 2500)
    times = rng.random(2500) * 100
    found = check_items(item, times, least=20)
    assert found.few == 40 - found.item.size
    for at, name in enumerate(found.item):
        one = check_one(np.diff(np.sort(times[item == name])))
        assert found.gaps[at] == one.gaps[0]
        assert found.statistic[at] == pytest.approx(one.statistic[0])
        assert found.p_value[at] == pytest.approx(one.p_value[0])
        assert found.dispersion[at] == pytest.approx(one.dispersion[0])
        assert found.mean_gap[at] == pytest.approx(one.mean_gap[0])


def test_order_of_changes_does_not_matter_and_an_instant_counts_once() -> None:
    owner, gaps = gaps_of([3, 1, 3, 3, 1], [7.0, 0.0, 4.0, 7.0, 2.5])
    assert owner.tolist() == [1, 3]
    assert gaps.tolist() == [2.5, 3.0]


def test_bursts_are_told_of_many_items() -> None:
    rng = np.random.default_rng(1)
    gaps = np.concatenate([rng.standard_exponential((50, 60)), rng.standard_exponential((50, 60)) ** 3])
    words = check_items(np.repeat(np.arange(100), 60), np.cumsum(gaps, axis=1).ravel()).sentence
    assert words.startswith("Of 100 items with at least 10 gaps, ")
    assert "change in bursts" in words


def test_false_alarms_of_a_true_model_are_not_explained() -> None:
    times = np.cumsum(np.random.default_rng(4).standard_exponential((300, 30)), axis=1)
    words = check_items(np.repeat(np.arange(300), 30), times.ravel()).sentence
    assert words.endswith("look Poisson (95% would if all were).")
    assert "300 (100%)" not in words


def polled(
    times: NDArray[np.float64], interval: float, polls: int, rng: np.random.Generator | None = None
) -> PollTable:
    """The polls of items whose changes are at ``times`` (a row each): every ``interval``, or at random."""
    items = len(times)
    elapsed = (
        np.full((items, polls), interval) if rng is None else rng.uniform(0, 2 * interval, (items, polls))
    )
    ends = np.cumsum(elapsed, axis=1)
    seen = np.stack([np.searchsorted(row, end) for row, end in zip(times, ends, strict=True)])
    changed = np.diff(seen, axis=1, prepend=0) > 0
    item = np.repeat(np.arange(items), polls)
    return PollTable(item, elapsed.ravel(), changed.ravel(), items, end=ends.ravel())


@pytest.mark.parametrize("is_regular", [True, False])
def test_chos_own_design_is_judged(is_regular: bool) -> None:
    """Polls every day for 128 days of pages that change every ten days on average (Fig. 11)."""
    rng = np.random.default_rng(10)
    changes = np.cumsum(10 * rng.standard_exponential((1500, 60)), axis=1)
    found = check_gaps(observed_gaps(polled(changes, 1.0, 128, None if is_regular else rng)))
    assert found.item.size > 900
    assert 0.005 < np.mean(found.p_value < 0.05) < 0.05
    assert found.sentence.endswith("look Poisson (at least 95% would if all were).")
    assert np.median(found.dispersion) == pytest.approx(0.9, abs=0.1)  # of 13 gaps with their own mean
    regular = np.cumsum(10 * rng.gamma(4, 1 / 4, (300, 60)), axis=1)
    assert "change more regularly" in check_gaps(observed_gaps(polled(regular, 1.0, 300))).sentence


def test_a_gap_between_polls_is_nearly_a_gap_where_polls_are_many() -> None:
    rng = np.random.default_rng(3)
    changes = np.cumsum(rng.standard_exponential((20, 50)), axis=1)
    exact = check_items(np.repeat(np.arange(20), 50), changes.ravel())
    seen = check_gaps(observed_gaps(polled(changes, 0.001, 80_000)))
    np.testing.assert_allclose(seen.statistic, exact.statistic, atol=0.01)
    np.testing.assert_allclose(seen.dispersion, exact.dispersion, rtol=0.05)


def test_the_reason_why_nothing_can_be_judged_is_the_right_one() -> None:
    rng = np.random.default_rng(4)
    often = np.cumsum(0.5 * rng.standard_exponential((7, 400)), axis=1)
    found = check_gaps(observed_gaps(polled(often, 1.0, 100)))
    assert (found.item.size, found.few, found.coarse) == (0, 0, 7)
    assert found.sentence.startswith("No item can be judged: 7 items have fewer than 3 polls for each change")
    rare = np.cumsum(60 * rng.standard_exponential((7, 40)), axis=1)
    assert check_gaps(observed_gaps(polled(rare, 1.0, 100))).sentence.startswith("No item has 10 gaps")


def test_too_few_changes_are_said() -> None:
    found = check_items([0, 0, 1], [1.0, 2.0, 3.0])
    assert (found.item.size, found.few) == (0, 2)
    assert found.sentence.startswith("No item has 10 gaps")
    assert check_items([], []).few == 0


def test_histogram_shares_add_up_and_follow_the_line() -> None:
    gaps = np.random.default_rng(3).standard_exponential(200_000) * 10
    found = gap_histogram(gaps, bins=20)
    assert found.edges[-1] == pytest.approx(math.log(1000) * gaps.mean())
    assert found.expected.sum() == pytest.approx(0.999)
    assert found.share.sum() == pytest.approx(0.999, abs=0.001)
    np.testing.assert_allclose(found.share, found.expected, rtol=0.15)
    drops = np.diff(np.log(found.expected))
    assert drops == pytest.approx(np.full(19, -math.log(1000) / 20))


def test_other_wrong_questions_are_refused() -> None:
    with pytest.raises(InputError, match="too few to judge"):
        check_items([0], [1.0], least=2)
    with pytest.raises(InputError, match="one bin or more"):
        gap_histogram([1.0], bins=0)
    with pytest.raises(InputError, match="bin width"):
        gap_histogram([1.0], width=0.0)
