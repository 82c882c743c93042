"""Rates from cohorts: one or several looks at a group, all or none changed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from afresh.rates.log_ratio import cohort_rates

COHORTS = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0.05, 20.0), st.integers(1, 40), st.floats(0, 1)),
    min_size=1,
    max_size=12,
)


def test_razniewski_table_3() -> None:
    found = cohort_rates(["s", "a", "i", "p"], [5.0] * 4, [10, 8, 13, 19], [10, 5, 3, 2])
    assert found.rate[1:] == pytest.approx([-math.log(1 - k / n) / 5 for n, k in ((8, 5), (13, 3), (19, 2))])
    assert found.rate[0] == pytest.approx(math.log(21) / 5)
    assert found.one_sided.tolist() == [True, False, False, False]
    assert np.all((found.low < found.rate) & (found.rate < found.high))


def test_razniewski_table_1_of_large_cohorts() -> None:
    found = cohort_rates([25, 30, 40, 50], [1.0] * 4, [1000] * 4, [367, 271, 150, 93])
    assert found.rate.round(3).tolist() == [0.457, 0.316, 0.163, 0.098]
    assert found.groups == (25, 30, 40, 50)


def test_bounds_of_one_time_are_clopper_pearson() -> None:
    found = cohort_rates(["g"], [2.0], [30], [12], level=0.9)
    chance_low, chance_high = -np.expm1(-2 * found.low[0]), -np.expm1(-2 * found.high[0])
    assert binom.sf(11, 30, chance_low) == pytest.approx(0.05)
    assert binom.cdf(12, 30, chance_high) == pytest.approx(0.05)


@settings(deadline=None)
@given(rows=COHORTS, scale=st.floats(1e-6, 1e6))
def test_every_group_solves_its_equation_in_any_unit(
    rows: list[tuple[int, float, int, float]], scale: float
) -> None:
    group = [row[0] for row in rows]
    elapsed, n = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    changed = np.array([round(row[2] * row[3]) for row in rows])
    found = cohort_rates(group, elapsed, n, changed)
    assert np.all((found.rate > 0) & np.isfinite(found.rate))
    assert np.all((found.low <= found.rate * (1 + 1e-12)) & (found.rate <= found.high * (1 + 1e-12)))
    for at, name in enumerate(found.groups):
        mine = np.array(group) == name
        total, seen = int(n[mine].sum()), float(changed[mine].sum())
        if 0 < seen < total:
            expected = np.sum(n[mine] * -np.expm1(-found.rate[at] * elapsed[mine]))
            assert expected == pytest.approx(seen, rel=1e-9)
    other = cohort_rates(group, elapsed * scale, n, changed)
    assert other.rate * scale == pytest.approx(found.rate, rel=1e-9)


def test_several_times_agree_with_a_root_finder() -> None:
    t, n, k = np.array([1.0, 2.0, 5.0]), np.array([40, 30, 20]), np.array([9, 14, 15])
    found = cohort_rates(["g"] * 3, t, n, k)
    root = brentq(lambda rate: float(np.sum(n * -np.expm1(-rate * t)) - k.sum()), 1e-9, 10)
    assert found.rate[0] == pytest.approx(root)
    assert (found.n[0], found.changed[0]) == (90, 38)


@pytest.mark.parametrize("times", [(1.0, 1.0), (0.5, 4.0)])
def test_bounds_cover_at_least_what_they_promise(times: tuple[float, float]) -> None:
    rng = np.random.default_rng(3)
    runs, n = 2000, np.array([12, 9])
    t, rate = np.array(times), 0.4
    changed = rng.binomial(n, -np.expm1(-rate * t), size=(runs, 2))
    found = cohort_rates(
        np.repeat(np.arange(runs), 2).tolist(), np.tile(t, runs), np.tile(n, runs), changed.ravel()
    )
    covered = np.mean((found.low <= rate) & (rate <= found.high))
    assert 0.895 < covered < 0.99


def test_the_half_makes_ends_finite_positive_and_in_order() -> None:
    n = 12
    rates = cohort_rates(list(range(n + 1)), [2.0] * (n + 1), [n] * (n + 1), range(n + 1)).rate
    assert np.all(np.diff(rates) > 0)
    assert rates[0] == pytest.approx(0.25 / n, rel=0.05)
    assert rates[-1] == pytest.approx(math.log(2 * n + 1) / 2)


def test_all_changed_within_different_times_is_finite() -> None:
    found = cohort_rates(["g", "g"], [1e-9, 1e9], [3, 4], [3, 4])
    assert 0 < found.rate[0] < math.inf
    assert found.high[0] == math.inf


def test_no_cohorts_at_all() -> None:
    assert cohort_rates([], [], [], []).rate.size == 0


def test_an_adapted_a_is_less_biased_than_one_for_all() -> None:
    """Seven polls, exactly: |E[r̂] − r| with Table 2's a for the r̂ that is seen, and with a = 0.4 and 0.5."""
    from afresh.rates.log_ratio import adapted_a, log_ratio

    x, n = np.arange(8.0), np.full(8, 7.0)
    choose = np.array([math.comb(7, int(k)) for k in x])
    ways = {"adapted": adapted_a(x, n), "0.4": np.full(8, 0.4), "0.5": np.full(8, 0.5)}
    errors: dict[str, list[float]] = {name: [] for name in ways}
    for r in np.linspace(2.0, 3.5, 7):
        chance = choose * (-np.expm1(-r)) ** x * np.exp(-r * (7 - x))
        for name, a in ways.items():
            errors[name].append(abs(float(chance @ log_ratio(x, n, a)) / r - 1))
    assert np.mean(errors["adapted"]) < 0.6 * np.mean(errors["0.4"]) < 0.6 * np.mean(errors["0.5"])
    assert np.all(np.diff(log_ratio(x, n, adapted_a(x, n))) > 0)
