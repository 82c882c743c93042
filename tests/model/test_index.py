"""The value of refreshing now."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.model.decay import DECAYS, Exponential, Geometric, Lomax, decay_from
from afresh.model.freshness import freshness
from afresh.model.index import poisson_due

decades = st.floats(-6, 6).map(lambda e: 10.0**e)


@settings(deadline=None)
@given(rate=decades, weight=decades, cost=decades, level=st.floats(1e-6, 0.999999))
def test_an_item_falls_due_where_its_index_crosses_the_multiplier(
    rate: float, weight: float, cost: float, level: float
) -> None:
    multiplier = level * weight / (cost * rate)
    due = float(poisson_due(rate, multiplier, weight, cost))
    assert weight / cost * float(Exponential(rate).gain(due)) == pytest.approx(multiplier, rel=1e-12)
    assert np.isinf(poisson_due(rate, weight / (cost * rate) * 1.000001, weight, cost))


def test_the_index_at_the_interval_is_the_marginal_freshness() -> None:
    rate, frequency, df = 1.3, 0.9, 1e-6
    slope = (freshness(rate, frequency + df) - freshness(rate, frequency - df)) / (2 * df)
    assert float(Exponential(rate).gain(1 / frequency)) == pytest.approx(slope, rel=1e-8)


def test_the_gamma_index_is_the_bayes_index() -> None:
    a, b, tau = np.array([0.5, 1.0, 2.5])[:, None], 3.0, np.array([0.1, 2.0, 50.0])
    tail = (1 + tau / b) ** -a
    lead = np.where(
        a == 1, b * np.log1p(tau / b), b / np.where(a == 1, 1, a - 1) * (1 - tail * (1 + tau / b))
    )
    np.testing.assert_allclose(Lomax(a, b).gain(tau), lead - tau * tail, rtol=1e-12)
    # For τ much shorter than b: (aτ²/2b)(1 − ⅔(a+1)τ/b).
    short = 1e-6
    series = a * short**2 / (2 * b) * (1 - 2 / 3 * (a + 1) * short / b)
    np.testing.assert_allclose(Lomax(a, b).gain(short), series, rtol=1e-11)


@pytest.mark.parametrize("name", DECAYS)
def test_the_index_never_falls_while_waiting(name: str) -> None:
    example = DECAYS[name].example
    decay = decay_from(name if example is None else f"{name}:{example}", [0.0, 1e-9, 0.4, 30.0])
    tau = np.append(np.geomspace(1e-9, 1e9, 200), np.inf)[:, None]
    for value in (decay.gain(tau), decay.age_gain(tau)):
        assert not np.isnan(value).any()
        assert (np.diff(value[:-1], axis=0) >= -1e-12 * value[:-2]).all()
        assert (value[:, 0] == 0).all()


def test_before_the_first_step_nothing_can_have_changed() -> None:
    assert Geometric(0.3).gain(0.99) == 0
    assert Geometric(0.3).gain(1.0) == pytest.approx(0.3)
