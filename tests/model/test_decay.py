"""What every decay function promises; named ones are found in the table and tested by existing."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import numpy.typing as npt
import pytest

from afresh.model.decay import DECAYS, Decay, Empirical, decay_from

INTEGRALS = ("integral", "gain", "loss", "age_gain")
SPECS = [name if found.example is None else f"{name}:{found.example:g}" for name, found in DECAYS.items()]
EMPIRICAL = {
    "steps": Empirical([0.5, 1.0, 4.0], [0.8, 0.5, 0.0]),
    "steps with a plateau": Empirical([0.0, 1.0, 3.0], [0.9, 0.4, 0.1]),
    "lines": Empirical([0.0, 1.0, 2.5], [1.0, 0.5, 0.0], linear=True),
    "lines with a plateau": Empirical([1.0, 2.0], [0.5, 0.3], linear=True),
    "lifetimes": Empirical.from_lifetimes([1.0, 2.0, 2.0, 5.0], [True, True, False, True]),
}
SUBJECTS: dict[str, Decay] = {spec: decay_from(spec, 0.7) for spec in SPECS} | EMPIRICAL
every_decay = pytest.mark.parametrize("decay", SUBJECTS.values(), ids=SUBJECTS.keys())
every_spec = pytest.mark.parametrize("spec", SPECS)


def test_the_table_holds_every_decay_with_a_rate() -> None:
    assert set(DECAYS) >= {"exponential", "linear", "weibull", "lomax", "geometric"}


@every_decay
def test_survival_falls_from_one_towards_its_plateau(decay: Decay) -> None:
    t = np.append(np.linspace(0, 30, 3001), [1e12, np.inf])
    z = decay.survival(t)
    assert ((z >= 0) & (z <= 1)).all()
    assert (np.diff(z) <= 0).all()
    assert z[-1] == decay.plateau()


@every_decay
@pytest.mark.parametrize("until", [0.25, 1.75, 6.5])
def test_integral_and_moment_lie_between_the_sums_of_a_fine_grid(decay: Decay, until: float) -> None:
    # Exact bounds for any function that never grows, steps and all.
    t = np.linspace(0, until, 20_001)
    z = decay.survival(t)
    width, halves = np.diff(t), np.diff(t**2) / 2
    slack = 1e-12
    assert (z[1:] * width).sum() - slack <= float(decay.integral(until)) <= (z[:-1] * width).sum() + slack
    moment = until**2 / 2 - float(decay.age_gain(until))  # ∫s·z
    assert (z[1:] * halves).sum() - slack <= moment <= (z[:-1] * halves).sum() + slack


@every_decay
def test_the_derivative_of_the_integral_is_the_survival(decay: Decay) -> None:
    t, dt = np.linspace(0.111, 6.111, 37), 1e-5
    slope = (decay.integral(t + dt) - decay.integral(t - dt)) / (2 * dt)
    np.testing.assert_allclose(slope, decay.survival(t), atol=1e-8)


@every_decay
def test_the_marginals_are_what_they_stand_for(decay: Decay) -> None:
    t = np.linspace(0, 12, 241)
    z, integral = decay.survival(t), decay.integral(t)
    np.testing.assert_allclose(decay.gain(t), integral - t * z, atol=1e-12)
    np.testing.assert_allclose(decay.loss(t), t - integral, atol=1e-12)
    for name in INTEGRALS:
        value = getattr(decay, name)(t)
        assert value[0] == 0, name
        assert (np.diff(value) >= -1e-13).all(), name


@every_decay
def test_the_total_is_the_integral_for_ever(decay: Decay) -> None:
    total = decay.total()
    assert total == pytest.approx(float(decay.integral(np.inf)))
    assert np.isinf(total) or decay.plateau() == 0
    if np.isfinite(total):
        assert float(decay.gain(np.inf)) == pytest.approx(float(total))


@every_decay
def test_samples_follow_the_survival(decay: Decay) -> None:
    n = 20_000
    drawn = decay.sample(np.random.default_rng(7), n)
    assert drawn.shape == (n,)
    assert (drawn >= 0).all()
    grid = np.sort(np.append(np.linspace(0, 20, 401), drawn[np.isfinite(drawn)][::20]))
    beyond = 1 - np.searchsorted(np.sort(drawn), grid, side="right") / n
    # Kolmogorov: 1.95/√n is exceeded once in a thousand seeds.
    assert np.abs(beyond - decay.survival(grid)).max() < 1.95 / np.sqrt(n)
    assert np.isinf(drawn).mean() == pytest.approx(float(decay.survival(1e13)), abs=0.02)


@every_decay
def test_it_pickles(decay: Decay) -> None:
    again = pickle.loads(pickle.dumps(decay))
    t = np.linspace(0, 5, 11)
    np.testing.assert_array_equal(again.survival(t), decay.survival(t))
    np.testing.assert_array_equal(again.age_gain(t), decay.age_gain(t))


@every_decay
def test_it_is_frozen(decay: Decay) -> None:
    name = type(decay).__match_args__[0]  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        setattr(decay, name, 1.0)


@every_decay
def test_float32_times_and_empty_times_give_float64(decay: Decay) -> None:
    for name in ("survival", *INTEGRALS):
        assert getattr(decay, name)(np.ones(3, dtype=np.float32)).dtype == np.float64
        assert getattr(decay, name)(np.zeros(0)).shape == (0,)


@every_spec
def test_extreme_rates_and_times_give_numbers(spec: str) -> None:
    rates = np.array([0.0, 1e-300, 1e-12, 1.0, 1e12, 1e300])[:, None]
    t = np.array([0.0, 1e-300, 1e-12, 1.0, 1e12, 1e300, np.inf])
    decay = decay_from(spec, rates)
    for name in ("survival", *INTEGRALS):
        value: npt.NDArray[np.float64] = getattr(decay, name)(t)
        assert value.shape == (6, 7)
        assert not np.isnan(value).any(), name
        assert (value >= 0).all(), name
    assert not np.isnan(decay.total()).any()
    assert decay.sample(np.random.default_rng(1)).shape == (6, 1)
    assert decay.sample(np.random.default_rng(1), (6, 9)).shape == (6, 9)


@every_spec
def test_what_never_changes_stays_right(spec: str) -> None:
    decay = decay_from(spec, 0.0)
    t = np.array([0.0, 3.0, 1e12])
    np.testing.assert_array_equal(decay.survival(t), [1, 1, 1])
    np.testing.assert_array_equal(decay.integral(t), t)
    for name in ("gain", "loss", "age_gain"):
        np.testing.assert_array_equal(getattr(decay, name)(np.append(t, np.inf)), 0)
    assert np.isinf(decay.total())
    assert decay.plateau() == 1
    assert np.isinf(decay.sample(np.random.default_rng(1), 5)).all()


@every_spec
def test_a_faster_rate_is_never_fresher(spec: str) -> None:
    rates = np.geomspace(1e-3, 1e3, 61)[:, None]
    t = np.geomspace(1e-2, 1e2, 23)
    assert (np.diff(decay_from(spec, rates).survival(t), axis=0) <= 1e-15).all()
