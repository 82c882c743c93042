"""The value of refreshing now."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.model.decay import DECAYS, Exponential, Geometric, Lomax, decay_from
from afresh.model.freshness import freshness
from afresh.model.index import age_index, freshness_index, poisson_due, poisson_index
from afresh.values.errors import InputError

decades = st.floats(-6, 6).map(lambda e: 10.0**e)


@settings(deadline=None)
@given(rate=decades, weight=decades, cost=decades, level=st.floats(1e-6, 0.999999))
def test_an_item_falls_due_where_its_index_crosses_the_multiplier(
    rate: float, weight: float, cost: float, level: float
) -> None:
    multiplier = level * weight / (cost * rate)
    due = float(poisson_due(rate, multiplier, weight, cost))
    assert poisson_index(rate, due, weight, cost) == pytest.approx(multiplier, rel=1e-12)
    assert np.isinf(poisson_due(rate, weight / (cost * rate) * 1.000001, weight, cost))


def test_the_index_at_the_interval_is_the_marginal_freshness() -> None:
    rate, frequency, df = 1.3, 0.9, 1e-6
    slope = (freshness(rate, frequency + df) - freshness(rate, frequency - df)) / (2 * df)
    assert poisson_index(rate, 1 / frequency) == pytest.approx(slope, rel=1e-8)


def test_the_gamma_index_is_the_bayes_index() -> None:
    a, b, tau = np.array([0.5, 1.0, 2.5])[:, None], 3.0, np.array([0.1, 2.0, 50.0])
    tail = (1 + tau / b) ** -a
    lead = np.where(
        a == 1, b * np.log1p(tau / b), b / np.where(a == 1, 1, a - 1) * (1 - tail * (1 + tau / b))
    )
    np.testing.assert_allclose(freshness_index(Lomax(a, b), tau), lead - tau * tail, rtol=1e-12)
    # For τ much shorter than b: (aτ²/2b)(1 − ⅔(a+1)τ/b).
    short = 1e-6
    series = a * short**2 / (2 * b) * (1 - 2 / 3 * (a + 1) * short / b)
    np.testing.assert_allclose(freshness_index(Lomax(a, b), short), series, rtol=1e-11)


@pytest.mark.parametrize("name", DECAYS)
def test_the_index_never_falls_while_waiting(name: str) -> None:
    example = DECAYS[name].example
    decay = decay_from(name if example is None else f"{name}:{example}", [0.0, 1e-9, 0.4, 30.0])
    tau = np.append(np.geomspace(1e-9, 1e9, 200), np.inf)[:, None]
    for index in (freshness_index, age_index):
        value = index(decay, tau)
        assert not np.isnan(value).any()
        assert (np.diff(value[:-1], axis=0) >= -1e-12 * value[:-2]).all()
        assert (value[:, 0] == 0).all()


def test_weight_and_cost_scale_it() -> None:
    decay = Exponential([0.5, 2.0])
    np.testing.assert_allclose(
        freshness_index(decay, 1.0, [2.0, 3.0], 4.0), freshness_index(decay, 1.0) * [0.5, 0.75]
    )
    np.testing.assert_allclose(age_index(decay, 1.0, 6.0, [2.0, 3.0]), age_index(decay, 1.0) * [3, 2])
    assert age_index(decay, np.inf, 0.0).tolist() == [0, 0]
    assert np.isinf(age_index(Exponential(1.0), np.inf))


def test_before_the_first_step_nothing_can_have_changed() -> None:
    assert freshness_index(Geometric(0.3), 0.99) == 0
    assert freshness_index(Geometric(0.3), 1.0) == pytest.approx(0.3)


def test_types_and_errors() -> None:
    assert isinstance(poisson_index(1.0, 1.0), float)
    single = np.ones(3, dtype=np.float32)
    assert freshness_index(Exponential(1.0), single, single).dtype == np.float32
    with pytest.raises(InputError, match=r"tau is -1\.0"):
        poisson_index(1.0, -1.0)
    with pytest.raises(InputError, match=r"cost is 0\.0"):
        poisson_index(1.0, 1.0, 1.0, 0.0)
    with pytest.raises(InputError, match=r"weight is -1\.0"):
        poisson_index(1.0, 1.0, -1.0)
