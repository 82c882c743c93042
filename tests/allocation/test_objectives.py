"""Every objective of the table: derivative, inverse and limits, against formulas in high precision."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.objectives import OBJECTIVES, Objective, objective_for
from afresh.model.freshness import ORDERS
from afresh.values.errors import UsageError
from afresh.values.objective_names import OBJECTIVE_NAMES


def phi(r: Any) -> Any:
    return (1 - mp.exp(-r)) / r


def shuffled(loss: Any, r: Any) -> Any:
    """E[τ·loss(rτ)], where τ has a triangular density from 0 to 2: the time between refreshes in rounds."""
    return mp.quad(lambda t: min(t, 2 - t) * t * loss(r * t), [0, 1 / (1 + r), 1, 2])


def harmonic_shuffled(r: Any) -> Any:
    """The same for harmonic staleness, ∫₀ʳ (x−1+φ²)/x² dx, in closed form."""
    once, twice = (mp.e1(x) + mp.log(x) + mp.euler for x in (r, 2 * r))  # Ein
    e = mp.exp(-r)
    parts = (1 - e) ** 2 / (3 * r**3) + (e - e * e) / (3 * r**2) + (2 * e * e - e) / (3 * r)
    return (4 * twice - once) / 3 + 1 / r - parts - mp.mpf(11) / 6


# The loss of one item by its formula (the table of allocation/objectives.py), in units of λ^(1−p), r = λ/f.
LOSSES: dict[tuple[str, str], Any] = {
    ("freshness", "fixed"): lambda r: -(1 - mp.exp(-r)) / r,
    ("freshness", "memoryless"): lambda r: -1 / (1 + r),
    ("age", "fixed"): lambda r: r * (mp.mpf(1) / 2 - 1 / r + (1 - mp.exp(-r)) / r**2),
    ("age", "memoryless"): lambda r: r * r / (1 + r),
    ("harmonic", "fixed"): lambda r: mp.e1(r) + mp.log(r) + mp.euler - 1 + (1 - mp.exp(-r)) / r,
    ("harmonic", "memoryless"): lambda r: mp.log(1 + r),
    ("missed", "fixed"): lambda r: r / 2,
    ("missed", "memoryless"): lambda r: r,
    ("lag", "fixed"): lambda r: r * r / 6,
    ("lag", "memoryless"): lambda r: r * r,
    ("freshness", "shuffled"): lambda r: -(1 - phi(r) ** 2) / r,
    ("age", "shuffled"): lambda r: r * (mp.mpf(1) / 3 + (mp.mpf(1) / 2 - 1 / r) ** 2 - (phi(r) / r) ** 2),
    ("harmonic", "shuffled"): lambda r: harmonic_shuffled(r),
    ("missed", "shuffled"): lambda r: 7 * r / 12,
    ("lag", "shuffled"): lambda r: r * r / 4,
}

every = pytest.mark.parametrize("key", sorted(OBJECTIVES), ids="-".join)
ratios = st.floats(-6, 3).map(lambda x: 10.0**x)


@pytest.mark.parametrize("name", OBJECTIVE_NAMES)
@pytest.mark.parametrize("r", [0.3, 4.0])
def test_shuffled_losses_are_the_mean_over_the_time_between_refreshes(name: str, r: float) -> None:
    wanted = float(shuffled(LOSSES[name, "fixed"], mp.mpf(r)))
    assert float(LOSSES[name, "shuffled"](mp.mpf(r))) == pytest.approx(wanted, rel=1e-9)


def test_every_objective_has_its_formula() -> None:
    assert set(OBJECTIVES) == set(LOSSES)
    assert set(OBJECTIVES) == {(name, order) for name in OBJECTIVE_NAMES for order in ORDERS}


@every
@given(r=ratios)
@settings(deadline=None)
def test_value_and_marginal_are_the_formula_and_its_derivative(key: tuple[str, str], r: float) -> None:
    objective, loss = OBJECTIVES[key], LOSSES[key]
    with mp.workdps(60):
        exact = mp.mpf(r)
        slope = mp.diff(loss, exact, h=exact * mp.mpf(10) ** -15)
        value, marginal = float(-loss(exact)), float(exact**2 * slope)
    assert float(objective.value(r)) == pytest.approx(value, rel=1e-13)
    assert float(objective.marginal(r)) == pytest.approx(marginal, rel=1e-12)


@every
@given(r=st.floats(-9, 6).map(lambda x: 10.0**x))
@settings(deadline=None)
def test_inverse_undoes_the_marginal(key: tuple[str, str], r: float) -> None:
    objective = OBJECTIVES[key]
    y = float(objective.marginal(r))
    if y < 0.999 * objective.top:  # nearer to the top a double has not the digits
        assert float(objective.inverse(y)) == pytest.approx(r, rel=1e-9 if objective.top == 1 else 1e-13)


@every
def test_limits(key: tuple[str, str]) -> None:
    objective = OBJECTIVES[key]
    assert objective.marginal(0.0) == 0
    assert objective.inverse(0.0) == 0
    assert objective.marginal(np.inf) == objective.top
    assert np.isinf(objective.inverse(np.inf))
    if np.isfinite(objective.top):
        assert np.isinf(objective.inverse([objective.top, 2 * objective.top])).all()
    assert objective.value(0.0) == (1 if key[0] == "freshness" else 0)
    assert objective.value(np.inf) == (0 if key[0] == "freshness" else -np.inf)


@every
def test_marginal_and_inverse_rise_over_the_whole_range(key: tuple[str, str]) -> None:
    objective: Objective = OBJECTIVES[key]
    r = np.logspace(-12, 12, 2000)
    assert (np.diff(objective.marginal(r)) >= 0).all()
    y = np.logspace(-30, 20, 2000)
    with np.errstate(invalid="ignore"):  # ∞ − ∞ past the top
        assert not (np.diff(objective.inverse(y)) < 0).any()
    assert not np.isnan(objective.value(r)).any()


def test_names_and_orders() -> None:
    with pytest.raises(UsageError, match="unknown objective 'fresh': did you mean 'freshness'"):
        objective_for("fresh", "fixed")
    with pytest.raises(UsageError, match="unknown order 'shuffeld': did you mean 'shuffled'"):
        objective_for("age", "shuffeld")
