"""Populations of rates and polls of them, for the tests that measure."""

from __future__ import annotations

import numpy as np

from afresh.rates.poll_table import PollTable
from afresh.values.arrays import Bools, Float64s

POPULATIONS = (
    "gamma 0.2",
    "gamma 0.5",
    "gamma 2",
    "lognormal",
    "wide lognormal",
    "two points",
    "two near points",
    "pareto",
    "mostly static",
)
NARROW_AND_ODD = ("narrow lognormal", "three points")
WITH_STATIC = ("80 % static", "30 % static")
FAR_APART = ("0.02 and 3", "half 0.05, half 3", "0.05 and 6")


def draw_rates(population: str, items: int, rng: np.random.Generator) -> Float64s:
    """Rates of so many items."""
    match population:
        case "gamma 0.2":
            rates = rng.gamma(0.2, 1.0, items)
        case "gamma 0.5":
            rates = rng.gamma(0.5, 1.0, items)
        case "gamma 2":
            rates = rng.gamma(2.0, 0.25, items)
        case "lognormal":
            rates = np.exp(rng.normal(-1.5, 1.2, items))
        case "wide lognormal":
            rates = np.exp(rng.normal(-2.0, 2.0, items))
        case "two points":
            rates = np.where(rng.random(items) < 0.7, 0.05, 2.0)
        case "two near points":
            rates = np.where(rng.random(items) < 0.5, 0.1, 0.5)
        case "pareto":
            rates = 0.05 * (1.0 + rng.pareto(1.1, items))
        case "narrow lognormal":
            rates = np.exp(rng.normal(-1.0, 0.3, items))
        case "three points":
            rates = rng.choice([0.02, 0.2, 2.0], items)
        case "0.02 and 3":
            rates = np.where(rng.random(items) < 0.7, 0.02, 3.0)
        case "half 0.05, half 3":
            rates = np.where(rng.random(items) < 0.5, 0.05, 3.0)
        case "0.05 and 6":
            rates = np.where(rng.random(items) < 0.7, 0.05, 6.0)
        case "80 % static":
            rates = np.where(rng.random(items) < 0.8, 0.0, rng.gamma(1.0, 1.0, items))
        case "30 % static":
            rates = np.where(rng.random(items) < 0.3, 0.0, rng.gamma(2.0, 0.25, items))
        case _:
            rates = np.where(rng.random(items) < 0.8, 1e-6, rng.gamma(1.0, 1.0, items))
    return rates


def poll(
    rates: Float64s,
    fewest: int,
    most: int,
    rng: np.random.Generator,
    *,
    scale: float = 1.0,
    regular: bool = False,
) -> PollTable:
    """Between ``fewest`` and ``most`` polls of each item at intervals of mean ``scale``, irregular or not."""
    item = np.repeat(np.arange(rates.size), rng.integers(fewest, most + 1, rates.size))
    elapsed = scale * (np.ones(item.size) if regular else 0.1 + 0.9 * rng.exponential(1.0, item.size))
    changed = rng.random(item.size) < -np.expm1(-rates[item] * elapsed)
    return PollTable(item, elapsed, changed, rates.size)


def poll_at_own_pace(
    fast: float, slow: float, share: float, number: int, rng: np.random.Generator, *, items: int = 2000
) -> tuple[Float64s, Bools, PollTable]:
    """Rates around two means, which items are the fast ones, and polls of each at its own kind's pace."""
    is_fast = rng.random(items) < share
    typical = np.where(is_fast, fast, slow)
    rates = typical * np.exp(rng.normal(0.0, 0.5, items))
    item = np.repeat(np.arange(items), number)
    elapsed = 0.7 * (rng.exponential(1.0, item.size) + 1e-9) / typical[item]
    changed = rng.random(item.size) < -np.expm1(-rates[item] * elapsed)
    return rates, is_fast, PollTable(item, elapsed, changed, items)
