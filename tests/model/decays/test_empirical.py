"""Decay straight from data: Kaplan–Meier, and the trap between lifetimes and decay."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.model.decay import Empirical, Exponential
from afresh.model.decays.empirical import kaplan_meier
from afresh.values.errors import InputError

lifetimes = st.lists(st.floats(0.01, 100), min_size=1, max_size=30)


def test_kaplan_meier_by_hand() -> None:
    # At risk 6, 5, 3, 1: factors 5/6, 4/5, 2/3, 0; the lifetimes 2+ and 5+ had not ended.
    times, survival = kaplan_meier([1, 2, 2, 3, 5, 6], [True, True, False, True, False, True])
    np.testing.assert_allclose(times, [1, 2, 3, 6])
    np.testing.assert_allclose(survival, [5 / 6, 2 / 3, 4 / 9, 0])


@settings(deadline=None)
@given(lifetimes)
def test_without_censoring_it_is_the_share_that_lives_longer(lived: list[float]) -> None:
    times, survival = kaplan_meier(lived)
    np.testing.assert_allclose(survival, [np.mean(np.array(lived) > t) for t in times], atol=1e-12)


@settings(deadline=None)
@given(lifetimes)
def test_a_refresh_at_a_random_time_finds_the_mean_excess(lived: list[float]) -> None:
    # z(t) = E[(L−t)⁺]/E[L] and ∫z = E[L²]/(2E[L]), for lifetimes L met in proportion to their length.
    decay, lived_for = Empirical.from_lifetimes(lived), np.array(lived)
    t = np.linspace(0, lived_for.max() * 1.2, 40)
    excess = np.maximum(lived_for - t[:, None], 0).mean(axis=1) / lived_for.mean()
    np.testing.assert_allclose(decay.survival(t), excess, atol=1e-12)
    np.testing.assert_allclose(decay.total(), (lived_for**2).mean() / 2 / lived_for.mean(), rtol=1e-10)


def test_lifetimes_used_as_decay_flatter() -> None:
    # Weibull lifetimes of shape 2, refreshed every 0.8 mean lifetimes: .630 in truth, .855 if S is used.
    n = 4000
    lived = np.sqrt(-np.log((np.arange(n) + 0.5) / n))
    interval = 0.8 * math.sqrt(math.pi) / 2
    true = Empirical.from_lifetimes(lived).integral(interval) / interval
    naive = Empirical(*kaplan_meier(lived)).integral(interval) / interval
    assert true == pytest.approx(0.630, abs=5e-4)
    assert naive == pytest.approx(0.855, abs=5e-4)


def test_exponential_lifetimes_are_their_own_decay() -> None:
    n = 20_000
    lived = -np.log((np.arange(n) + 0.5) / n) / 0.4
    t = np.linspace(0, 8, 30)
    for decay in (Empirical.from_lifetimes(lived), Empirical(*kaplan_meier(lived))):
        np.testing.assert_allclose(decay.survival(t), Exponential(0.4).survival(t), atol=1e-3)


def test_unfinished_long_lifetimes_give_a_lower_bound() -> None:
    rng = np.random.default_rng(3)
    lived = rng.exponential(1.0, 5000)
    seen = np.minimum(lived, 2.0)
    cut = Empirical.from_lifetimes(seen, lived <= 2.0)
    t = np.linspace(0.1, 3, 30)
    assert (cut.survival(t) < Empirical.from_lifetimes(lived).survival(t)).all()
    assert cut.survival(2.0) == 0
    kept = Empirical(*kaplan_meier(seen, lived <= 2.0))
    assert float(kept.plateau()) == pytest.approx(math.exp(-2), abs=0.02)
    assert np.isinf(kept.total())


def test_steps_and_lines_by_hand() -> None:
    steps = Empirical([1.0, 3.0], [0.5, 0.0])
    np.testing.assert_allclose(steps.integral([0.5, 1.0, 2.0, 3.0, 9.0]), [0.5, 1, 1.5, 2, 2])
    np.testing.assert_allclose(steps.age_gain([1.0, 3.0, 9.0]), [0, 2, 38])
    np.testing.assert_allclose(steps.gain([0.9, 1.0, 9.0]), [0, 0.5, 2])
    lines = Empirical([0.0, 2.0], [1.0, 0.0], linear=True)
    np.testing.assert_allclose(lines.survival([0.0, 0.5, 2.0, 3.0]), [1, 0.75, 0, 0])
    np.testing.assert_allclose(lines.age_gain([2.0, 5.0]), [4 / 3, 71 / 6])


@pytest.mark.parametrize(
    ("times", "survival", "message"),
    [
        ([1.0, 1.0], [0.5, 0.4], "times must grow"),
        ([1.0, 2.0], [0.4, 0.5], "survival must not"),
        ([1.0], [0.5, 0.4], "same length"),
        ([], [], "1 or more"),
        ([1.0], [1.5], "survival is 1.5: must be from 0 to 1"),
        ([np.nan], [0.5], "times[0] is nan"),
    ],
)
def test_points_that_are_no_survival_curve_are_refused(
    times: list[float], survival: list[float], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        Empirical(times, survival)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("lived", "ended", "message"),
    [
        ([1.0, 2.0], [False, False], "at least one must have ended"),
        ([0.0, 2.0], [True, True], "must be above 0"),
        ([1.0, 2.0], [True], "same length"),
        ([], [], "at least one must have ended"),
    ],
)
def test_lifetimes_that_say_nothing_are_refused(lived: list[float], ended: list[bool], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Empirical.from_lifetimes(lived, ended)
    assert message in str(caught.value)
