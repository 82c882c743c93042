"""How often the items of a simulated world change: rates drawn from a Gamma, a power law or Cho's mix."""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import Float64s
from afresh.values.errors import UsageError

# Cho & Garcia-Molina 2000, Table 6: a page of each class changes every so many days.
CHO_SHARES = (0.23, 0.15, 0.16, 0.16, 0.30)
CHO_INTERVALS_D = (1.0, 7.0, 30.0, 120.0, 365.0)


def gamma_rates(items: int, rng: np.random.Generator, *, mean: float, cv: float) -> Float64s:
    """Gamma distributed rates; ``cv`` is their standard deviation over their mean, δ of Cho's Table 3.

    >>> rates = gamma_rates(100_000, np.random.default_rng(1), mean=0.2, cv=1.5)
    >>> round(float(rates.mean()), 2), round(float(rates.std() / rates.mean()), 1)
    (0.2, 1.5)
    """
    _check("mean", mean, mean > 0)
    _check("cv", cv, cv >= 0)
    if cv == 0:
        return np.full(items, mean)
    return rng.gamma(1 / cv**2, mean * cv**2, items)


def power_law_rates(
    items: int, rng: np.random.Generator, *, low: float, high: float, exponent: float
) -> Float64s:
    """Rates of density ∝ λ^−exponent from ``low`` to ``high``; exponent 1 is even on a logarithmic scale.

    >>> rates = power_law_rates(100_000, np.random.default_rng(1), low=0.01, high=1.0, exponent=1.0)
    >>> round(float(np.exp(np.log(rates).mean())), 2), bool(rates.min() >= 0.01), bool(rates.max() <= 1)
    (0.1, True, True)
    """
    _check("low", low, low > 0)
    _check("high", high, high >= low)
    share = rng.random(items)
    width, power = np.log(high / low), 1 - exponent
    # The distribution inverted: ln(λ/low) = ln(1+share·(e^{power·width}−1))/power, share·width at power 0.
    if abs(power * width) < 1e-8:
        return np.asarray(np.minimum(low * np.exp(share * width), high))
    return np.asarray(np.clip(low * np.exp(np.log1p(share * np.expm1(power * width)) / power), low, high))


def cho_rates(items: int, rng: np.random.Generator) -> Float64s:
    """Changes per day of web pages as Cho's Table 6 has them: every 1, 7, 30, 120 or 365 days.

    >>> rates = cho_rates(100_000, np.random.default_rng(1))
    >>> round(float(np.mean(rates == 1.0)), 2)
    0.23
    """
    return 1 / rng.choice(CHO_INTERVALS_D, size=items, p=CHO_SHARES)


def _check(name: str, given: float, right: bool) -> None:
    if not right or not np.isfinite(given):
        limits = {"mean": "above 0", "cv": "0 or more", "low": "above 0", "high": "at least as large as low"}
        raise UsageError(f"{name} is {given:g}: must be {limits[name]}, and finite")
