"""Each family's own formulas, against exact integrals of 200 digits."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.model.decay import Decay, Exponential, Geometric, Linear, Lomax, Weibull, decay_from
from afresh.values.errors import InputError, UsageError

Triple = tuple[Any, Any, Any]
decades = st.floats(-12, 12).map(lambda e: 10.0**e)


def check(decay: Decay, t: float, exact: Triple, tolerance: float) -> None:
    """Every integral of the protocol from the exact z, ∫z and ∫s·z."""
    t, (z, integral, moment) = mp.mpf(t), exact
    wanted = {
        "survival": z,
        "integral": integral,
        "gain": integral - t * z,
        "loss": t - integral,
        "age_gain": t * t / 2 - moment,
    }
    for name, value in wanted.items():
        got = float(getattr(decay, name)(float(t)))
        if name == "survival":
            assert abs(got - value) < 1e-14, name
        elif abs(value) > 1e-280:
            assert abs(got / value - 1) < tolerance, (name, got, mp.nstr(value, 17))
        else:
            assert got < 1e-279, name


@settings(deadline=None)
@given(rate=decades, t=decades)
def test_exponential(rate: float, t: float) -> None:
    with mp.workdps(150):
        lam, x = mp.mpf(rate), mp.mpf(rate) * t
        z = mp.exp(-x)
        check(Exponential(rate), t, (z, (1 - z) / lam, (1 - (1 + x) * z) / lam**2), 3e-15)


@settings(deadline=None)
@given(rate=decades, t=decades)
def test_linear(rate: float, t: float) -> None:
    with mp.workdps(150):
        lam = mp.mpf(rate)
        u = min(mp.mpf(t), 1 / lam)
        exact = (1 - lam * u, u - lam * u**2 / 2, u**2 / 2 - lam * u**3 / 3)
        check(Linear(rate), t, exact, 3e-15)


@settings(deadline=None)
@given(rate=decades, x=st.floats(-10, 10), shape=st.floats(0.1, 12))
def test_weibull(rate: float, x: float, shape: float) -> None:
    t = 10.0**x / rate
    with mp.workdps(450):
        lam, k = mp.mpf(rate), mp.mpf(shape)
        v = (lam * t) ** k
        integral, moment = (mp.gammainc(j / k, 0, v) / k / lam**j for j in (1, 2))
        check(Weibull(rate, shape), t, (mp.exp(-v), integral, moment), 2e-13)


@settings(deadline=None)
@given(
    scale=decades,
    x=st.floats(-14, 12),
    shape=st.one_of(
        st.floats(-2, 9).map(lambda e: 10.0**e), st.sampled_from([1.0, 2.0, 1 + 1e-12, 2 - 1e-9])
    ),
)
def test_lomax(scale: float, x: float, shape: float) -> None:
    t = 10.0**x * scale / max(1.0, shape)
    with mp.workdps(150):
        a, b = mp.mpf(shape), mp.mpf(scale)
        base = 1 + t / b

        def grown(c: Any) -> Any:
            return mp.log(base) if c == 0 else (base**c - 1) / c

        exact = (base**-a, b * grown(1 - a), b * b * (grown(2 - a) - grown(1 - a)))
        # Differences of near numbers remain for shapes near 0 only, at 2⁻⁵²/shape.
        check(Lomax(shape, scale), t, exact, 2e-13 + 1e-14 / shape)


@settings(deadline=None)
@given(
    p=st.one_of(st.floats(-12, 0).map(lambda e: 10.0**e), st.sampled_from([0.04, 1.0])),
    step=decades,
    steps=st.integers(0, 400),
    part=st.floats(0.01, 0.99),
)
def test_geometric(p: float, step: float, steps: int, part: float) -> None:
    t = (steps + part) * step
    with mp.workdps(150):
        q, s, n, at = 1 - mp.mpf(p), mp.mpf(step), steps, mp.mpf(t)
        z = q**n
        integral = s * sum(q**i for i in range(n)) + (at - n * s) * z
        moment = s**2 * sum(q**i * (i + mp.mpf(1) / 2) for i in range(n)) + z * (at**2 - (n * s) ** 2) / 2
        # t less its whole steps is only known to a rounding of t.
        check(Geometric(p, step), t, (z, integral, moment), 2e-12)


@settings(deadline=None)
@given(
    p=st.one_of(st.floats(-6, 0).map(lambda e: 10.0**e), st.sampled_from([0.04, 1.0])),
    step=decades,
    share=st.floats(-12, -1e-3).map(lambda e: 10.0**e),
)
def test_one_step_less_than_the_shortest_interval_gains_too_little(
    p: float, step: float, share: float
) -> None:
    decay = Geometric(p, step)
    wanted = share * decay.total()
    found = decay.shortest_interval(wanted)
    # Half a step on either side: the same whole steps, and one less.
    assert decay.gain(found + step / 2) >= wanted
    assert decay.gain(found - step / 2) < wanted
    assert decay.shortest_interval(decay.total()) == np.inf
    assert Geometric(0.0, step).shortest_interval(wanted) == np.inf


def test_a_weibull_of_shape_one_is_exponential_and_a_steep_lomax_nearly() -> None:
    t = np.geomspace(1e-6, 20, 50)
    for name in ("survival", "integral", "gain", "loss", "age_gain"):
        exact = getattr(Exponential(2.0), name)(t)
        np.testing.assert_allclose(getattr(Weibull(2.0, 1.0), name)(t), exact, rtol=1e-13)
        np.testing.assert_allclose(getattr(Lomax(1e15, 0.5e15), name)(t), exact, rtol=1e-11)


def test_two_linear_addresses_and_three_updates_are_right_three_quarters_of_the_time() -> None:
    # Razniewski 2016, §2: updated twice and once in ten years, wrong after ten and twenty at the latest.
    right = Linear([1 / 10, 1 / 20]).integral([5.0, 10.0]) / [5.0, 10.0]
    np.testing.assert_allclose(right, [0.75, 0.75])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("weibul:2", "unknown decay 'weibul': did you mean 'weibull'?"),
        ("exponential:2", "exponential takes no shape, write 'exponential'"),
        ("weibull", "weibull needs a shape, such as 'weibull:0.8'"),
        ("lomax:", "lomax needs a shape, such as 'lomax:1.5'"),
        ("lomax:wide", "lomax needs a shape, such as 'lomax:1.5'"),
        ("", "unknown decay ''"),
    ],
)
def test_a_bad_spec_says_what_would_be_right(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        decay_from(spec, 1.0)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "rate", "message"),
    [
        ("exponential", [1.0, -1.0], "rate[1] is -1.0"),
        ("linear", np.nan, "rate is nan"),
        ("weibull:0", 1.0, "shape is 0.0: must be from 0.02 to 100"),
        ("weibull:nan", 1.0, "shape is nan"),
        ("lomax:-1", 1.0, "shape is -1.0"),
        ("geometric", np.inf, "rate is inf"),
    ],
)
def test_a_bad_parameter_is_named(spec: str, rate: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        decay_from(spec, rate)
    assert message in str(caught.value)


def test_a_named_decay_starts_with_the_rate_as_its_hazard() -> None:
    rate, t = 0.3, 1e-6
    for spec in ("exponential", "linear", "lomax:1.5", "weibull:1"):
        assert float(decay_from(spec, rate).loss(t)) == pytest.approx(rate * t * t / 2, rel=1e-5)
    assert float(decay_from("geometric", rate).survival(3.0)) == pytest.approx(np.exp(-3 * rate))
