"""Claims of docs/estimators.md outside its tables: few items, own paces, long histories, drift, plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from tests.rates.logs import HOUR, PROFILES, drifting, fitted, steady, steady_log
from tests.rates.populations import FAR_APART, POPULATIONS, draw_rates, poll, poll_at_own_pace

from afresh.allocation.allocate import allocate
from afresh.model.freshness import freshness
from afresh.rates.estimator import estimate_polls, find_regime
from afresh.rates.forgetting import choose_horizon
from afresh.rates.poll_table import PollTable
from afresh.rates.priors.gamma_prior import fit_gamma
from afresh.rates.views import with_views
from afresh.values.arrays import Float64s
from afresh.values.results import RateEstimates
from bench.rows import Row


def rows(*, quick: bool) -> list[Row]:
    """Return a figure for each claim; with ``quick`` they come from one seed and few items."""
    seeds, items = (1, 200) if quick else (3, 2000)
    return [
        *few_items(5 if quick else 200),
        *several_paces(items),
        *long_histories(quick),
        *regimes(1 if quick else 20),
        *other_populations(seeds, items),
        *plans_after_three_polls(seeds, items, quick),
    ]


def is_covered(found: RateEstimates, rates: Float64s) -> Float64s:
    """Return 1 where the interval contains the true rate, else 0."""
    return ((found.low <= rates) & (rates <= found.high)).astype(np.float64)


def few_items(seeds: int) -> Iterator[Row]:
    """Measure the coverage with one to three polls of a few items."""
    for items in (1, 2, 5):
        hits = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            rates = rng.gamma(1.0, 0.7, items)
            hits.append(is_covered(estimate_polls(poll(rates, 1, 3, rng)), rates).mean())
        yield Row(f"one to three polls, items: {items}", float(np.mean(hits)), "covered")


def several_paces(items: int) -> Iterator[Row]:
    """Measure fast items among slow ones, each polled three times at its own pace."""
    for method, fast, share in (("grid", 1.0, 0.1), ("gamma", 1.0, 0.1), ("grid", 24.0, 0.3)):
        rng = np.random.default_rng(4)
        rates, is_fast, polls = poll_at_own_pace(fast, 1 / 365, share, 3, rng, items=items)
        found = estimate_polls(polls, method=method)
        hit, changed = is_covered(found, rates), is_fast & (found.changes > 0)
        name = f"{method}, own paces, {share:.0%} at {fast:g} a day"
        yield Row(name, float(np.median(found.rate[is_fast] / rates[is_fast])), "× the rate")
        yield Row(f"{name}: seen to change", float(hit[changed].mean()), "covered")
        yield Row(f"{name}: all", float(hit.mean()), "covered")


def long_histories(quick: bool) -> Iterator[Row]:
    """Measure the coverage after very many polls."""
    for number, items in ((1000, 1200), (5000, 600), (20_000, 120), (100_000, 32))[: 1 if quick else None]:
        rng = np.random.default_rng(0)
        rates = np.exp(rng.uniform(np.log(0.05), np.log(5.0), items // 20 if quick else items))
        item = np.repeat(np.arange(rates.size), number)
        changed = rng.random(item.size) < -np.expm1(-rates[item])
        polls = PollTable(item, np.ones(item.size), changed, rates.size)
        for method in ("grid", "mle"):
            hit = is_covered(estimate_polls(polls, method=method), rates).mean()
            yield Row(f"{method}, {number} polls of {rates.size} items", float(hit), "covered")


def regimes(seeds: int) -> Iterator[Row]:
    """Count how often drift and seasons are detected, where they exist and where they do not."""
    worlds: dict[str, Callable[[np.random.Generator], PollTable]] = {
        "all alike, regular": lambda rng: steady(rng, 60, regular=True),
        "all alike, irregular": lambda rng: steady(rng, 60, regular=False),
        "steady": lambda rng: drifting(rng, np.inf),
        "drawn anew every 20": lambda rng: drifting(rng, 20.0),
    }
    for name, make in worlds.items():
        logs = [make(np.random.default_rng(seed)) for seed in range(seeds)]
        found = [choose_horizon(polls, fit_gamma(polls)) for polls in logs]
        horizons = [horizon for horizon in found if np.isfinite(horizon)]
        yield Row(f"{name}: called drifting", len(horizons), f"of {seeds}")
        if horizons:
            yield Row(f"{name}: horizon", float(np.median(horizons)), "")
    for fast, slow, share in ((24.0, 1 / 365, 0.3), (3.0, 0.1, 0.3), (24.0, 1 / 30, 0.1)):
        each = [find_regime(steady_log(fast, slow, share, seed), hour=HOUR) for seed in range(seeds)]
        paces = f"own paces, {share:.0%} at {fast:g} a day, others at {slow:.3g}"
        yield Row(f"{paces}: called seasonal", sum(one.season.is_supported for one in each), f"of {seeds}")
        moving = sum(bool(np.isfinite(one.horizon)) for one in each)
        yield Row(f"{paces}: called drifting", moving, f"of {seeds}")
    for profile in PROFILES:
        few = -(-2 * seeds // 5)
        seen = sum(fitted(profile, seed).is_supported for seed in range(few))
        yield Row(f"{profile}: called seasonal", seen, f"of {few}")


def other_populations(seeds: int, items: int) -> Iterator[Row]:
    """Measure coverage for nearly equal, clustered and zero rates, regular polls, and views of five items."""
    amounts = ((3, 3, 1.0, False), (3, 30, 1.0, False), (20, 60, 3.0, False), (10, 10, 5.0, True))
    names, views = [str(i) for i in range(items)], [f"v{i // 5}" for i in range(items)]
    populations = ("gamma 0.5", "lognormal", "narrow lognormal", "three points", "80 % static")
    for population, (fewest, most, scale, regular) in product(populations, amounts):
        hits, seen_to = [], []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            rates = draw_rates(population, items, rng)
            found = estimate_polls(poll(rates, fewest, most, rng, scale=scale, regular=regular))
            hits.append(is_covered(found, rates)[rates > 0].mean())
            _, both = with_views(names, found, views, names)
            true = np.concatenate((rates, rates.reshape(-1, 5).sum(axis=1)))
            seen_to.append(is_covered(both, true)[items:].mean())
        polls = f"{fewest}–{most} polls, interval {scale:g}{', regular' if regular else ''}"
        yield Row(f"{population}, {polls}", float(np.mean(hits)), "covered")
        yield Row(f"{population}, {polls}: views", float(np.mean(seen_to)), "covered")


def plans_after_three_polls(seeds: int, items: int, quick: bool) -> Iterator[Row]:
    """Compare plans made from three polls per item with uniform ones, in points of freshness."""
    gains: dict[str, list[float]] = {"the rate to plan with": [], "the mean": []}
    populations = (*POPULATIONS[:1], *FAR_APART[:1]) if quick else (*POPULATIONS, *FAR_APART)
    for seed, population, scale in product(range(seeds), populations, (1.0,) if quick else (0.2, 1.0, 5.0)):
        rng = np.random.default_rng(seed)
        rates = draw_rates(population, items, rng)
        polls = poll(rates, 3, 3, rng, scale=scale)
        mean = estimate_polls(polls).rate
        typical = min(2.0 * float(np.median(rates[rates > 1e-5])), float(rates.mean()))
        for frequency in (0.1 * float(rates.mean()), 0.1 * typical, 0.3 * typical, 2.0 * typical):
            uniform = float(np.mean(freshness(rates, np.full(items, frequency))))
            planned = estimate_polls(polls, interval=1.0 / frequency).rate
            for column, rate in zip(gains.values(), (planned, mean), strict=True):
                plan = allocate(rate, frequency * items).frequency
                column.append(100 * (float(np.mean(freshness(rates, plan))) - uniform))
    for name, points in gains.items():
        limit = -1.0 if name == "the rate to plan with" and not quick else None
        yield Row(f"plans by {name} less uniform: worst", min(points), "points", at_least=limit)
        yield Row(f"plans by {name} less uniform: mean", float(np.mean(points)), "points")
