"""Estimators on made populations: coverage of 90 % intervals, error of the rate, plans against uniform."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.rates.populations import POPULATIONS, draw_rates, poll

from afresh.allocation.allocate import allocate
from afresh.model.freshness import freshness
from afresh.rates.estimate import estimate_polls

METHODS = ("zhang", "mle", "gamma", "grid")
ITEMS, SEEDS = 2000, 3


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one population: coverage, error in ln(1+rate), freshness of its plan less uniform's.

    ``planned`` is the same with the rate to plan with; NaN for methods without a posterior.
    """

    population: str
    fewest: int
    most: int
    method: str
    coverage: float
    error: float
    plan: float
    planned: float


def measure(population: str, fewest: int, most: int, method: str) -> Row:
    """Means over some seeds, polls of mean interval 1, refreshes every 1/(0.6 median rate) on average."""
    results = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        rates = draw_rates(population, ITEMS, rng)
        polls = poll(rates, fewest, most, rng)
        frequency = 0.6 * float(np.median(rates[rates > 1e-5]))
        uniform = float(np.mean(freshness(rates, np.full(ITEMS, frequency))))
        found = estimate_polls(polls, method=method)
        gains = []
        for interval in (None, 1.0 / frequency):
            if interval is not None and method not in ("gamma", "grid"):
                gains.append(np.nan)
                continue
            rate = np.minimum(estimate_polls(polls, method=method, interval=interval).rate, 1e6)
            plan = allocate(rate, frequency * ITEMS).frequency
            gains.append(float(np.mean(freshness(rates, plan))) - uniform)
        hit = float(np.mean((found.low <= rates) & (rates <= found.high)))
        error = float(np.mean(np.abs(np.log1p(np.minimum(found.rate, 1e3)) - np.log1p(rates))))
        results.append((hit, error, *gains))
    return Row(population, fewest, most, method, *(float(v) for v in np.mean(results, axis=0)))


def rows(amounts: tuple[tuple[int, int], ...] = ((3, 3), (3, 30))) -> list[Row]:
    """All populations, amounts of polls and methods."""
    return [measure(p, *amount, m) for amount in amounts for p in POPULATIONS for m in METHODS]


def main() -> None:
    """Print the table as Markdown."""
    print("| polls | population | method | coverage | error | plan − uniform | with the rate to plan with |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for row in rows():
        polls = str(row.most) if row.fewest == row.most else f"{row.fewest}–{row.most}"
        planned = "" if np.isnan(row.planned) else f"{100 * row.planned:+.1f}"
        print(
            f"| {polls} | {row.population} | {row.method} | {row.coverage:.3f} | {row.error:.3f} "
            f"| {100 * row.plan:+.1f} | {planned} |"
        )


if __name__ == "__main__":
    main()
