"""Estimators on simulated populations: coverage of 90 % intervals, error of the rate, plans against uniform.

``python -m bench.calibration`` prints the tables of docs/estimators.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.rates.populations import POPULATIONS, draw_rates, poll

from afresh.allocation.allocate import allocate
from afresh.model.freshness import freshness
from afresh.rates.estimator import estimate_polls
from bench.rows import Row

METHODS = ("zhang", "mle", "gamma", "grid")
AMOUNTS = ((3, 3), (3, 30))
SMOOTH = tuple(name for name in POPULATIONS if name.startswith("gamma") or name.endswith("lognormal"))
ITEMS, SEEDS = 2000, 3


@dataclass(frozen=True, slots=True)
class Cell:
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


def measure(
    population: str, fewest: int, most: int, method: str, *, items: int = ITEMS, seeds: int = SEEDS
) -> Cell:
    """Means over some seeds, polls of mean interval 1, refreshes every 1/(0.6 median rate) on average."""
    results = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rates = draw_rates(population, items, rng)
        polls = poll(rates, fewest, most, rng)
        frequency = 0.6 * float(np.median(rates[rates > 1e-5]))
        uniform = float(np.mean(freshness(rates, np.full(items, frequency))))
        found = estimate_polls(polls, method=method)
        gains = []
        for interval in (None, 1.0 / frequency):
            if interval is not None and method not in ("gamma", "grid"):
                gains.append(np.nan)
                continue
            rate = np.minimum(estimate_polls(polls, method=method, interval=interval).rate, 1e6)
            plan = allocate(rate, frequency * items).frequency
            gains.append(float(np.mean(freshness(rates, plan))) - uniform)
        hit = float(np.mean((found.low <= rates) & (rates <= found.high)))
        error = float(np.mean(np.abs(np.log1p(np.minimum(found.rate, 1e3)) - np.log1p(rates))))
        results.append((hit, error, *gains))
    return Cell(population, fewest, most, method, *(float(v) for v in np.mean(results, axis=0)))


def rows(*, quick: bool) -> list[Row]:
    """Return the lowest and highest coverage of the default method, and its worst plan against uniform."""
    size = {"items": 200, "seeds": 1} if quick else {"items": ITEMS, "seeds": SEEDS}
    cells = [measure(name, *amount, "grid", **size) for amount in AMOUNTS for name in POPULATIONS]
    shares = [cell.coverage for cell in cells if cell.population in SMOOTH]
    worst = 100 * min(cell.planned for cell in cells)
    low, high, lost = (None, None, None) if quick else (0.85, 0.95, -0.5)
    return [
        Row("grid, Gamma and lognormal rates: least", min(shares), "covered", at_least=low),
        Row("grid, Gamma and lognormal rates: most", max(shares), "covered", at_most=high),
        Row("grid, rates to plan with less uniform: worst", worst, "points", at_least=lost),
    ]


def main() -> None:
    """Print the table as Markdown."""
    print("| polls | population | method | coverage | error | plan − uniform | with the rate to plan with |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for row in (measure(p, *amount, m) for amount in AMOUNTS for p in POPULATIONS for m in METHODS):
        polls = str(row.most) if row.fewest == row.most else f"{row.fewest}–{row.most}"
        planned = "" if np.isnan(row.planned) else f"{100 * row.planned:+.1f}"
        print(
            f"| {polls} | {row.population} | {row.method} | {row.coverage:.3f} | {row.error:.3f} "
            f"| {100 * row.plan:+.1f} | {planned} |"
        )


if __name__ == "__main__":
    main()
