"""The Gamma filter against exact integrals, and its batch form against one poll at a time."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.rates.estimators.gamma_filter import FEW, GammaFilter, belief_after_change
from afresh.rates.likelihood import PollEvidence, bit_evidence, count_evidence, stamp_evidence
from afresh.rates.poll_table import PollTable, polls_from_intervals
from afresh.rates.priors.gamma_prior import GammaPrior, cell_masses


@given(st.floats(1e-3, 1e6), st.floats(-12, 12), st.floats(-12, 12))
@settings(deadline=None)
def test_a_found_change_keeps_mean_and_variance(shape: float, log_rate: float, log_time: float) -> None:
    rate, time = 10.0**log_rate, 10.0**log_time
    new_shape, new_rate = (
        float(x[0]) for x in belief_after_change(*(np.array([v]) for v in (shape, rate, time)))
    )
    with mpmath.workdps(60):
        a, q = mpmath.mpf(shape), mpmath.mpf(rate) / (mpmath.mpf(rate) + mpmath.mpf(time))
        none = 1 - q**a
        mean = a / mpmath.mpf(rate) * (1 - q ** (a + 1)) / none
        square = a * (a + 1) / mpmath.mpf(rate) ** 2 * (1 - q ** (a + 2)) / none
        wanted_shape = mean**2 / (square - mean**2)
        assert new_shape == pytest.approx(float(wanted_shape), rel=1e-9)
        assert new_rate == pytest.approx(float(wanted_shape / mean), rel=1e-9)


def test_a_change_at_once_is_one_event() -> None:
    shape, rate = belief_after_change(np.array([2.0]), np.array([3.0]), np.array([1e-15]))
    assert (shape[0], rate[0]) == (pytest.approx(3.0), pytest.approx(3.0))


def test_a_change_after_ages_tells_nothing() -> None:
    shape, rate = belief_after_change(np.array([2.0]), np.array([3.0]), np.array([1e30]))
    assert (shape[0], rate[0]) == (pytest.approx(2.0), pytest.approx(3.0))


def random_polls(items: int, rng: np.random.Generator, *, told: bool) -> PollTable:
    # Very unequal numbers of polls: both the joint rounds and the one-by-one finish are used.
    number = rng.integers(0, 6, items)
    number[0] = 200
    item = np.repeat(np.arange(items), number)
    elapsed, changed = rng.exponential(1.0, item.size) + 1e-3, rng.random(item.size) < 0.5
    if not told:
        return PollTable(item, elapsed, changed, items)
    since = np.where(changed & (rng.random(item.size) < 0.5), elapsed * rng.random(item.size), np.nan)
    count = np.where(rng.random(item.size) < 0.5, np.where(changed, 2.0, 0.0), np.nan)
    return PollTable(item, elapsed, changed, items, since, count)


@pytest.mark.parametrize("horizon", [np.inf, 3.0])
@pytest.mark.parametrize("evidence", [bit_evidence, stamp_evidence, count_evidence])
def test_all_at_once_equals_one_by_one(evidence: Callable[[PollTable], PollEvidence], horizon: float) -> None:
    items = 3 * FEW
    polls = random_polls(items, np.random.default_rng(0), told=evidence is not bit_evidence)
    estimator = GammaFilter(evidence=evidence, horizon=horizon)
    rng = np.random.default_rng(1)
    prior = GammaPrior(rng.gamma(2.0, 1.0, items), rng.gamma(2.0, 1.0, items))
    together = estimator.update(estimator.start(prior, items), polls)
    single = estimator.start(prior, items)
    for k in range(polls.size):
        columns = (None if c is None else c[k : k + 1] for c in (polls.since, polls.count))
        one = PollTable(
            polls.item[k : k + 1], polls.elapsed[k : k + 1], polls.changed[k : k + 1], items, *columns
        )
        single = estimator.update(single, one)
    np.testing.assert_allclose(together.shape, single.shape, rtol=1e-9)
    np.testing.assert_allclose(together.rate, single.rate, rtol=1e-9)


def test_exact_evidence_is_the_conjugate_update() -> None:
    polls = polls_from_intervals(
        [2.0, 3.0, 5.0], [True, False, True], item=[0, 0, 0], since=[0.5, np.nan, 1.5]
    )
    stamped = GammaFilter("last-modified", stamp_evidence)
    state = stamped.update(stamped.start(GammaPrior.of(0.5, 1.0), 1), polls)
    assert (state.shape[0], state.rate[0]) == (2.5, 1.0 + 0.5 + 3.0 + 1.5)


def test_forgetting_leads_back_to_the_prior() -> None:
    prior = GammaPrior.of(0.5, 1.0)
    estimator = GammaFilter(horizon=1.0)
    busy = polls_from_intervals(np.full(50, 0.1), np.ones(50, dtype=bool), item=np.zeros(50, dtype=np.int64))
    state = estimator.update(estimator.start(prior, 1), busy)
    assert state.shape[0] > 2.0
    later = estimator.update(state, polls_from_intervals(60.0, True))  # a change within ages: no news
    assert later.shape[0] == pytest.approx(0.5, rel=0.35)
    assert float(estimator.rate(later)[0]) == pytest.approx(0.5, rel=0.3)


@given(st.floats(0.05, 50), st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_cell_masses_are_a_distribution(shape: float, rate: float) -> None:
    masses = cell_masses(GammaPrior.of(shape, rate), np.geomspace(1e-3, 1e3, 31))
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert masses.min() > 0
